# SPDX-License-Identifier: BSD-3-Clause
"""Folders whose index, config.json or files are not what their names say: refused or noted in words that help."""

import io
import json
import zipfile

import pytest
from dialect_files import WEIGHT, read_safetensors, refusal, write_safetensors
from qcts_program import qcts

SHARD = "model-0000{}-of-0000{}.safetensors"


def folder_with(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    write_safetensors(folder / SHARD.format(1, 2), {"a.weight": WEIGHT})
    return folder


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
@pytest.mark.parametrize("text", ['{"weight_map": {}}', '{"weight_map": {}, "metadata": {"total_size": 8}}'])
def test_an_index_that_names_nothing_is_refused(name, text, tmp_path):
    folder = folder_with(tmp_path)
    (folder / name).write_text(text)
    assert refusal(folder)["detail"] == f"{name}: its weight_map names no tensor"
    qcts("check", folder, code=1)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("total", [2, 4])
def test_an_index_that_names_fewer_shards_than_their_names_number_is_noted(there, total, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    names = [SHARD.format(i + 1, total) for i in range(total)]
    for i, name in enumerate(names[: total if there else 1]):
        write_safetensors(folder / name, {f"l{i}.weight": WEIGHT})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"l0.weight": names[0]}}))
    more = f" and {total - 2} more" if total > 2 else ""
    wanted = f"names 1 of the {total} shards that {names[0]} is one of: tensors of {names[1]}{more} are missing"
    assert wanted in qcts("check", folder).stderr
    index.write_text(json.dumps({"weight_map": {f"l{i}.weight": name for i, name in enumerate(names)}}))
    assert " shards that " not in qcts("check", folder, code=0 if there else 1).stderr


@pytest.mark.parametrize("text", ["[]", "3", '"text"', "[{}]"])
def test_a_config_that_is_no_object_is_refused(text, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {"a.weight": WEIGHT})
    (folder / "config.json").write_text(text)
    assert refusal(folder)["detail"] == "config.json is not a JSON object"


def zip_around(name):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(name, b"x" * 16)
    return data.getvalue()


def torch_file(legacy):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data = io.BytesIO()
    torch.save({"a.weight": torch.zeros(2, 4)}, data, _use_new_zipfile_serialization=not legacy)
    return data.getvalue()


WRONG = {
    "torch": ("model.safetensors", lambda: torch_file(False), "it is a torch.save file, whose name should end in .bin"),
    "legacy": ("model.safetensors", lambda: torch_file(True), "it is a torch.save file, whose name should end in .bin"),
    "zip": ("model.safetensors", lambda: zip_around("x.safetensors"), "it is a zip archive that contains x.safetensors"),
    "npz": ("model.safetensors", lambda: zip_around("x.npy"), "it is a NumPy archive (.npz)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_shard_of_another_format_is_named(case, tmp_path):
    """Protects: transformers chooses the reader by the name, and the refusal says so."""
    name, data, text = WRONG[case]
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / name).write_bytes(data())
    assert text in refusal(folder)["detail"]


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt"])
def test_safetensors_under_the_name_of_a_pickle_are_named(name, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    write_safetensors(folder / name, {"a.weight": WEIGHT})
    assert "it is a safetensors file, whose name should end in .safetensors" in refusal(folder)["detail"]
    qcts("check", folder / name)  # the advice


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_of_torch_is_read_whatever_its_name(legacy, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(torch_file(legacy))
    qcts("check", path)
    qcts("dequantize", path, tmp_path / "out.safetensors")
    assert read_safetensors(tmp_path / "out.safetensors") == {"a.weight": WEIGHT}


@pytest.mark.parametrize("length", [0x180, 0x280, 0x380, 0x480, 0x580])
def test_a_header_whose_length_looks_like_a_pickle_is_safetensors(length, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", {"a.weight": WEIGHT})
    data = path.read_bytes()
    header = data[8 : -len(WEIGHT[2])].rstrip()
    path.write_bytes(length.to_bytes(8, "little") + header + b" " * (length - len(header)) + WEIGHT[2])
    qcts("check", path)
    path.write_bytes(path.read_bytes()[: length // 2])
    assert refusal(path)["class"] == "Truncated"
