# SPDX-License-Identifier: BSD-3-Clause
"""Everything torch.save can write, in both of its containers, is saved again byte for byte and read as torch reads it."""

import json
import zipfile
from collections import OrderedDict

import pytest
from qcts_program import inspect, pinned, qcts

torch = pinned("torch", "2.13")

from torch_samples import CONTAINERS, OBJECTS, assert_same_tensors, counting, read, same  # noqa: E402


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("what", OBJECTS)
def test_what_torch_saves_is_kept_and_read(what, container, tmp_path):
    state = OBJECTS[what]()
    file, copy = tmp_path / "model.pt", tmp_path / "copy.pt"
    torch.save(state, file, **CONTAINERS[container])
    done = qcts("resave", file, copy)
    assert copy.read_bytes() == file.read_bytes() and "taken over" not in done.stderr
    seen = inspect(file)
    assert seen["format"] == f"torch_{container}"
    assert_same_tensors(seen, state)
    diff = json.loads(qcts("diff", file, copy, "--json").stdout)
    assert diff["e2"]["equal"] and diff["e3"]["equal"]


@pytest.mark.parametrize("what", OBJECTS)
def test_both_containers_hold_the_same(what, tmp_path):
    state = OBJECTS[what]()
    for container, options in CONTAINERS.items():
        torch.save(state, tmp_path / f"{container}.pt", **options)
    diff = json.loads(qcts("diff", tmp_path / "zip.pt", tmp_path / "legacy.pt", "--json").stdout)
    assert diff["e2"]["equal"] and not diff["e3"]["equal"]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("what", ["views", "attributes", "adamw", "sparse", "state_dict", "dtypes", "storages", "quantized"])
def test_compact_files_are_read_by_torch(what, container, tmp_path):
    state = OBJECTS[what]()
    file, copy = tmp_path / "model.pt", tmp_path / "copy.pt"
    torch.save(state, file, **CONTAINERS[container])
    qcts("resave", "--compact", file, copy)
    try:
        before = read(file)
    except AttributeError:  # torch's own legacy reader has no dtype for byte storages
        assert container == "legacy"
    else:
        assert same(before, read(copy))
    seen, compact = inspect(file), inspect(copy)
    hashes = lambda s: {(t["name"], p["name"]): p["sha256"] for t in s["tensors"] for p in t["payload"]}  # noqa: E731
    assert hashes(seen) == hashes(compact)
    again = tmp_path / "again.pt"
    qcts("resave", "--compact", copy, again)
    assert again.read_bytes() == copy.read_bytes(), "the second pass must change nothing"


@pytest.mark.parametrize("container", CONTAINERS)
def test_compact_drops_what_no_view_sees_and_keeps_the_sharing(container, tmp_path):
    base = counting((100_000,))
    state = {
        "a": base[10:20],
        "b": base[15:25],
        "far": base[90_000:90_010:3],
        "m": base[50_000:50_012].view(3, 4).t(),
    }
    file, copy = tmp_path / "model.pt", tmp_path / "copy.pt"
    torch.save(state, file, **CONTAINERS[container])
    report = json.loads(qcts("resave", "--compact", "--json", file, copy).stdout)
    kept = 15 + 10 + 12
    assert report["dropped_bytes"] == 4 * (100_000 - kept) and report["changed_storages"] == 1
    assert copy.stat().st_size < 4096
    back = read(copy)
    assert same(back, state)
    assert len({tensor.untyped_storage().data_ptr() for tensor in back.values()}) == 1
    back["a"][5] = -1
    assert back["b"][0] == -1, "overlapping views must still share memory"


class Own:
    def __init__(self):
        self.weight, self.note = counting((2, 2)), "kept"


@pytest.mark.parametrize("container", CONTAINERS)
def test_allowed_classes_are_kept_and_others_named_with_their_offset(container, tmp_path):
    file, copy = tmp_path / "model.pt", tmp_path / "copy.pt"
    torch.save({"own": Own(), "x": counting((3,))}, file, **CONTAINERS[container])
    name = f"{Own.__module__}.Own"
    refusal = json.loads(qcts("inspect", file, "--json", code=1).stdout)["refusal"]
    pickle = zipfile.ZipFile(file).read("model/data.pkl") if container == "zip" else file.read_bytes()
    assert refusal["class"] == "PickleGlobal" and name in refusal["detail"]
    assert refusal["offset"] == pickle.index(b"c" + Own.__module__.encode() + b"\nOwn\n")
    qcts("resave", "--allow", name, file, copy)
    assert copy.read_bytes() == file.read_bytes()
    qcts("resave", "--allow", "os.system", file, copy, code=1)


def test_legacy_files_serve_every_command(tmp_path):
    model = torch.nn.Linear(64, 32, dtype=torch.bfloat16)
    file = tmp_path / "model.pt"
    torch.save(OrderedDict(weight=model.weight.detach(), bias=model.bias.detach()), file, **CONTAINERS["legacy"])
    qcts("dequantize", file, tmp_path / "dense.safetensors")
    qcts("quantize", file, tmp_path / "q.pt", "--scheme", "int8_row", "--include", "weight")
    assert [t["scheme"] for t in inspect(tmp_path / "q.pt")["tensors"]] == ["int8_row", None]
    assert inspect(tmp_path / "dense.safetensors")["tensors"][0]["shape"] in ([32], [32, 64])


def test_directories_of_legacy_shards_are_read(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    weights = {"a.weight": counting((2, 3)), "b.weight": counting((3,))}
    names = {}
    for index, (key, tensor) in enumerate(weights.items()):
        names[key] = f"pytorch_model-{index + 1:05}-of-00002.bin"
        torch.save({key: tensor}, folder / names[key], _use_new_zipfile_serialization=index == 0)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    (folder / "config.json").write_text("{}")
    seen = inspect(folder)
    assert_same_tensors(seen, weights)
    qcts("resave", folder, tmp_path / "copy")
    for file in folder.iterdir():
        assert (tmp_path / "copy" / file.name).read_bytes() == file.read_bytes()


def holders():
    """Returns values that hold themselves: a list, a dict by a list, an OrderedDict, and two dicts that name each other."""
    itself, named, ordered, above, below = [counting((2,))], {"w": counting((3,))}, OrderedDict(w=counting((2,))), {}, {}
    itself.append(itself)
    named["places"] = [1, named]
    ordered["root"] = ordered
    above["below"], below["above"], below["w"] = below, above, counting((4,))
    return {"itself": itself, "named": named, "ordered": ordered, "above": above, "below": below}


@pytest.mark.parametrize("container", CONTAINERS)
def test_values_that_hold_themselves_are_kept(container, tmp_path):
    file, copy, other = (tmp_path / name for name in ("model.pt", "copy.pt", "other.pt"))
    torch.save(holders(), file, **CONTAINERS[container])
    qcts("resave", file, copy)
    assert copy.read_bytes() == file.read_bytes()
    names = [tensor["name"] for tensor in inspect(file)["tensors"]]
    assert names == ["itself.0", "named.w", "ordered.w", "above.below.w", "below.w"]
    qcts("check", file)
    assert json.loads(qcts("diff", file, copy, "--json").stdout)["e2"]["equal"]
    qcts("dequantize", file, tmp_path / "dense.safetensors")
    assert [tensor["name"] for tensor in inspect(tmp_path / "dense.safetensors")["tensors"]] == sorted(names)
    changed = holders()
    changed["itself"][1] = [changed["itself"][0]]
    torch.save(changed, other, **CONTAINERS[container])
    assert "what holds it" in qcts("diff", file, other, code=1).stdout
