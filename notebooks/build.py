"""Build every notebook from its percent source: NN_name.py -> NN_name.ipynb, executed, the same bytes each time.

python notebooks/build.py            all notebooks
python notebooks/build.py 00 02      those whose names start so
python notebooks/build.py --check    are sources and notebooks in step? (executes nothing)
"""

import argparse
import base64
import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", PYTHONHASHSEED="0", TQDM_DISABLE="1", PYDEVD_DISABLE_FILE_VALIDATION="1")

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from fedtheory.core.files import write_atomic

HERE = Path(__file__).resolve().parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python", "pygments_lexer": "ipython3"}
CELL_SECONDS = 120


def read_source(path: Path) -> nbformat.NotebookNode:
    """The cells of a percent source, with ids that depend on their text only."""
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        name = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[name] = seen.get(name, 0) + 1
        cell.id = name if seen[name] == 1 else f"{name}-{seen[name]}"
        tags = cell.metadata.get("tags")
        folded = {"jupyter": {"source_hidden": True}} if tags and "hide-input" in tags else {}
        cell.metadata = nbformat.from_dict({"tags": list(tags), **folded} if tags else {})
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def manifest(notebook: nbformat.NotebookNode) -> dict[str, object]:
    """What a committed notebook says of its own outputs, so that an edited, moved or dropped one is noticed."""
    whole, figures = hashlib.sha256(), []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        whole.update(json.dumps([cell.id, cell.outputs], sort_keys=True).encode())
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                figures.append(hashlib.sha256(base64.b64decode(output["data"]["image/png"])).hexdigest()[:16])
    return {"figures": figures, "outputs": whole.hexdigest()[:16]}


def build(source: Path) -> Path:
    """Execute a source in a fresh kernel and write the notebook beside it.

    Raises CellExecutionError where a cell fails, RuntimeError where one writes to stderr.
    """
    notebook = read_source(source)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        startup_timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(source.parent)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        coalesce_streams=True,  # else a busy machine cuts a line into two outputs
    )
    client.execute()
    count = 0
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time stamps
        if cell.cell_type != "code":
            continue
        count += 1
        if cell.execution_count != count:
            raise RuntimeError(f"{source.name}: cell {count} was executed as number {cell.execution_count}")
        for output in cell.outputs:
            output.pop("transient", None)
            if output.get("name") == "stderr":
                raise RuntimeError(f"{source.name}, cell {count} wrote to stderr:\n{output['text']}")
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    notebook.metadata["fedtheory"] = manifest(notebook)
    nbformat.validate(notebook)
    target = source.with_suffix(".ipynb")
    write_atomic(target, (nbformat.writes(notebook).rstrip("\n") + "\n").encode())
    return target


def out_of_step(source: Path) -> str | None:
    """Why the notebook beside a source is not the one made from it; None where it is."""
    target = source.with_suffix(".ipynb")
    if not target.exists():
        return f"{target.name} is missing"
    built = nbformat.read(target, as_version=4)
    wanted = read_source(source)
    if len(built.cells) != len(wanted.cells):
        return f"{target.name} has {len(built.cells)} cells, its source {len(wanted.cells)}"
    for number, (have, want) in enumerate(zip(built.cells, wanted.cells), 1):
        if any(have[part] != want[part] for part in ("cell_type", "source", "id", "metadata")):
            return f"{target.name}: cell {number} differs from its source"
    return None


def sources(names: Sequence[str] = ()) -> list[Path]:
    """The percent sources, NN_*.py, whose names start with one of the given ones.

    Raises SystemExit for a name that fits none.
    """
    found = sorted(HERE.glob("[0-9][0-9]_*.py"))
    for name in names:
        if not any(path.stem.startswith(name) for path in found):
            raise SystemExit(f"no notebook starts with {name!r}; there are: {', '.join(path.stem for path in found)}")
    return [path for path in found if not names or path.stem.startswith(tuple(names))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 where a notebook is out of step or fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of names, such as 00 or 02_fedsub (default: all)")
    parser.add_argument("--check", action="store_true", help="compare without executing")
    options = parser.parse_args(arguments)
    failed = 0
    for source in sources(options.names):
        if options.check:
            reason = out_of_step(source)
            print(reason or f"{source.stem}: in step", file=sys.stderr if reason else sys.stdout)
            failed += reason is not None
            continue
        started = time.time()
        try:
            target = build(source)
        except (CellExecutionError, RuntimeError) as error:
            print(f"{source.stem}: {error}", file=sys.stderr)
            failed += 1
            continue
        print(f"{source.stem}: {time.time() - started:.1f} s, {target.stat().st_size / 1000:.0f} kB", flush=True)
    if options.check and failed:
        print("run: python notebooks/build.py", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
