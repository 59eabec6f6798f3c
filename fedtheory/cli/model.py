"""model"""

import argparse
from pathlib import Path

from fedtheory.cli.output import print_json
from fedtheory.problems.models import packaged


def save(options: argparse.Namespace) -> None:
    """model"""
    model = packaged.save(options.model, options.folder)
    written = sum(path.stat().st_size for path in Path(options.folder).iterdir())
    if options.json:
        print_json({"folder": options.folder, "bytes": written, **vars(model)})
        return
    print(f"{model.title}, licence {model.licence}; from {model.package} {model.version}, {model.size / 1e6:.0f} MB")
    print(f"{options.folder}: {model.parameters / 1e6:.1f} million parameters, float32, {written / 1e6:.0f} MB")
