# SPDX-License-Identifier: BSD-3-Clause
"""`qcts diff`: 1 for every kind of value in which two files differ, by its path and with both values; 0 for the same spelled differently,
and what one of the two has no place for is listed (--strict: a difference)."""

import collections
import json
import math
import struct
import sys
import types
import zipfile

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from qcts_program import qcts  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


def diff(a, b, *words, code):
    return json.loads(qcts("diff", a, b, "--json", *words, code=code).stdout)


def saved(folder, *objects, **options):
    paths = [folder / f"{name}.pt" for name in "ab"]
    for path, value in zip(paths, objects, strict=True):
        torch.save(value, path, **options)
    return paths


def where(found):
    return [": ".join(part for part in (d["path"], d["field"]) if part) for d in found["e2"]["differences"]]


def x():
    return torch.arange(8.0)


def metadata(version):
    state = torch.nn.Linear(2, 2, bias=False).state_dict()
    state["weight"].zero_()
    state._metadata[""]["version"] = version
    return state


def conjugated(lazily):
    z = torch.complex(torch.ones(2), torch.zeros(2))
    return {"z": z.conj() if lazily else z}


def tagged(note):
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.note = note
    return {"p": parameter}


def tied(tie):
    whole = x()
    return {"embed": whole, "head": whole.view(8) if tie else whole.clone()}


def one_list(shared):
    items = [1]
    return {"a": items, "b": items if shared else [1]}


NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
OTHER_NAN = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)
# name: two objects and where they differ
PAIRS = {
    "number": (
        {"optimizer": {"param_groups": [{"lr": 0.1}]}},
        {"optimizer": {"param_groups": [{"lr": 1.1}]}},
        "optimizer.param_groups[0].lr",
    ),
    "step": ({"state": {0: {"step": 1}}}, {"state": {0: {"step": 2}}}, "state[0].step"),
    "flag": ({"amsgrad": False}, {"amsgrad": True}, "amsgrad"),
    "kind_of_number": ({"n": 1}, {"n": 1.0}, "n"),
    "flag_as_number": ({"n": 1}, {"n": True}, "n"),
    "string": ({"name": "adam"}, {"name": "adamw"}, "name"),
    "bytes": ({"b": b"ab"}, {"b": b"ac"}, "b"),
    "none": ({"n": None}, {"n": False}, "n"),
    "list_for_tuple": ({"betas": (0.9, 0.99)}, {"betas": [0.9, 0.99]}, "betas: type"),
    "set": ({"s": {1, 2}}, {"s": {1, 3}}, "s: member"),
    "minus_zero": ({"n": 0.0}, {"n": -0.0}, "n"),
    "nan_payload": ({"n": math.nan}, {"n": NAN}, "n"),
    "tensor_nan_payload": (
        {"x": torch.tensor([math.nan])},
        {"x": OTHER_NAN},
        "x: element 0",
    ),
    "kind_of_dict": ({"a": 1}, collections.OrderedDict(a=1), "type"),
    "order_of_keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "order, place 0"),
    "key_missing": ({"a": 1, "b": 2}, {"a": 1}, "b"),
    "module_metadata": (metadata(1), metadata(2), '_metadata[""].version'),
    "dtype": ({"x": x()}, {"x": x().half()}, "x: dtype"),
    "shape": ({"x": x()}, {"x": x().view(2, 4)}, "x: shape"),
    "stride": ({"x": x().view(2, 4)}, {"x": x().view(4, 2).t()}, "x: stride"),
    "offset": ({"x": torch.zeros(8)[:4]}, {"x": torch.zeros(8)[4:]}, "x: offset"),
    "lost_view": ({"x": x()[:4]}, {"x": x()[:4].clone()}, "x: bytes of its storage"),
    "lost_tie": (tied(True), tied(False), "head: storage"),
    "lost_identity": (one_list(True), one_list(False), "b: identity"),
    "requires_grad": ({"x": x()}, {"x": x().requires_grad_()}, "x: requires_grad"),
    "frozen_parameter": (
        {"p": torch.nn.Parameter(x())},
        {"p": torch.nn.Parameter(x(), requires_grad=False)},
        "p: requires_grad",
    ),
    "parameter": ({"p": torch.nn.Parameter(x())}, {"p": x().requires_grad_()}, "p: type"),
    "attribute_of_a_tensor": (tagged("a"), tagged("b"), "p.note"),
    "conj": (conjugated(True), conjugated(False), "z: conj"),
    "meta_stride": (
        {"x": torch.empty(2, 2, device="meta")},
        {"x": torch.empty(2, 2, device="meta").t()},
        "x.stride[0]",
    ),
    "quantizer": (
        {"q": torch.quantize_per_tensor(x(), 0.5, 0, torch.qint8)},
        {"q": torch.quantize_per_tensor(x(), 0.25, 0, torch.qint8)},
        "q.quantizer[1]",
    ),
    "sparse_flag": (
        {"s": torch.eye(2).to_sparse()},
        {"s": torch.eye(2).to_sparse().coalesce() * 2},
        "s.data[1]: element 0",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_difference_is_named_by_path(name, tmp_path):
    a, b, path = PAIRS[name]
    found = diff(*saved(tmp_path, a, b), code=1)
    assert path in where(found), where(found)
    assert not found["e2"]["equal"] and not found["e3"]["equal"]
    for difference in found["e2"]["differences"]:
        assert difference["a"] != difference["b"]
    same = diff(*saved(tmp_path, a, a), code=0)
    assert same["e2"]["equal"] and not same["spelling"] and not same["not_comparable"]


@pytest.mark.parametrize("name", PAIRS)
def test_the_legacy_container_hides_nothing(name, tmp_path):
    a, b, path = PAIRS[name]
    first, _ = saved(tmp_path, a, b)
    torch.save(b, tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    assert path in where(diff(first, tmp_path / "legacy.pt", code=1))


def rebuilt_by(target, path, before, after):
    """The same archive with other bytes in its pickle."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as archive:
        for info in source.infolist():
            data = source.read(info)
            if info.filename.endswith("data.pkl"):
                assert data.count(before) >= 1
                data = data.replace(before, after)
            archive.writestr(info.filename, data)


def pickle_of(path):
    with zipfile.ZipFile(path) as archive:
        return next(archive.read(n) for n in archive.namelist() if n.endswith("data.pkl"))


def test_device(tmp_path):
    a, b = saved(tmp_path, {"x": x()}, {"x": x()})
    rebuilt_by(b, a, b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:1")
    found = diff(a, b, "--lenient", code=1)
    assert where(found) == ["x: device"] and found["e2"]["first"]["b"] == "cuda:1"


class Plan:
    def __init__(self, rate):
        self.rate, self.steps = rate, [1, 2]


def test_a_number_in_an_allowed_object(tmp_path):
    module = types.ModuleType("acme_plans")
    module.Plan = Plan
    Plan.__module__, Plan.__qualname__ = "acme_plans", "Plan"
    sys.modules["acme_plans"] = module
    a, b = saved(tmp_path, {"plan": Plan(0.5)}, {"plan": Plan(1.5)})
    found = diff(a, b, "--allow", "acme_plans.Plan", code=1)
    assert where(found) == ["plan.rate"] and (found["e2"]["first"]["a"], found["e2"]["first"]["b"]) == ("0.5", "1.5")


def test_metadata_of_safetensors(tmp_path):
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    save_file({"x": x()}, a, {"format": "pt", "epoch": "1"})
    save_file({"x": x()}, b, {"format": "pt", "epoch": "2"})
    assert where(diff(a, b, code=1)) == ["__metadata__.epoch"]
    save_file({"x": x()}, b, {"format": "pt"})
    assert where(diff(a, b, code=1)) == ["__metadata__.epoch"]


def folder_of(path, config, **files):
    path.mkdir()
    save_file({"x": x()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))
    for name, text in files.items():
        (path / f"{name}.txt").write_text(text)
    return path


def test_what_a_lost_object_holds_is_not_told_again(tmp_path):
    inner = {"deep": [1, [2]], "x": x()}
    a, b = saved(tmp_path, {"a": inner, "b": inner}, {"a": inner, "b": {"deep": [1, [2]], "x": inner["x"]}})
    assert where(diff(a, b, code=1)) == ["b: identity"]


def test_files_beside_a_folders_tensors(tmp_path):
    a = folder_of(tmp_path / "a", {"layers": 2, "sizes": [1, 2]}, vocab="a b")
    b = folder_of(tmp_path / "b", {"layers": 2, "sizes": [1, 3]}, vocab="a c")
    assert where(diff(a, b, code=1)) == ["config.json.sizes[1]", "vocab.txt: byte 2"]
    c = folder_of(tmp_path / "c", {"sizes": [1, 2], "layers": 2}, vocab="a b")
    found = diff(a, c, code=0)
    assert found["e2"]["equal"] and [d["path"] for d in found["spelling"]] == ["config.json"]
    alone = diff(a, a / "model.safetensors", code=0)
    assert [d["path"] for d in alone["not_comparable"]] == ["config.json", "vocab.txt"]
    diff(a, a / "model.safetensors", "--strict", code=1)


def test_safetensors_have_no_place_for_it(tmp_path):
    whole = x()
    state = collections.OrderedDict(embed=whole, head=whole.view(8), turned=x().view(2, 4).t(), p=torch.nn.Parameter(x()))
    state["step"], state["none"], state["void"] = 3, None, None
    state["list"] = state["same"] = [False]
    torch.save(state, tmp_path / "a.pt")
    tensors = {k: v.detach().clone().contiguous() for k, v in state.items() if isinstance(v, torch.Tensor)}
    save_file(tensors, tmp_path / "b.safetensors", {"format": "pt"})
    found = diff(tmp_path / "a.pt", tmp_path / "b.safetensors", code=0)
    listed = {(d["path"], d["field"]) for d in found["not_comparable"]}
    assert found["e1"]["equal"] and found["e2"]["equal"]
    assert listed == {
        ("", "type"),
        ("head", "storage"),
        ("turned", "stride"),
        ("p", "type"),
        ("p", "requires_grad"),
        ("step", ""),
        ("none", ""),
        ("void", ""),
        ("list", "type"),
        ("list[0]", ""),
        ("same", "identity"),
        ("__metadata__.format", ""),
    }
    strict = diff(tmp_path / "a.pt", tmp_path / "b.safetensors", "--strict", code=1)
    assert strict["e2"]["differing"] == len(listed)
    tensors["head"][3] = 9
    save_file(tensors, tmp_path / "b.safetensors", {"format": "pt"})
    assert where(diff(tmp_path / "a.pt", tmp_path / "b.safetensors", code=1)) == ["head: element 3"]


def test_the_same_function_by_two_paths_is_equal_and_named(tmp_path):
    torch.save({"s": {1, 2}, "x": x()}, tmp_path / "a.pt")
    rebuilt_by(tmp_path / "b.pt", tmp_path / "a.pt", b"c__builtin__\nset\n", b"cbuiltins\nset\n")
    found = diff(tmp_path / "a.pt", tmp_path / "b.pt", "--lenient", code=0)
    assert found["e1"]["equal"] and found["e2"]["equal"] and not found["e3"]["equal"]


def test_an_allowed_function_by_two_paths(tmp_path):
    for name, module in (("a", b"numpy.core.multiarray"), ("b", b"numpy._core.multiarray")):
        text = b"\x80\x02}q\x00X\x01\x00\x00\x00fq\x01c" + module + b"\nscalar\nq\x02s."
        torch.save({"f": 1}, tmp_path / "one.pt")
        rebuilt_by(tmp_path / f"{name}.pt", tmp_path / "one.pt", pickle_of(tmp_path / "one.pt"), text)
    allowed = ["--allow", "numpy.core.multiarray.scalar", "--allow", "numpy._core.multiarray.scalar"]
    found = diff(tmp_path / "a.pt", tmp_path / "b.pt", "--lenient", *allowed, code=0)
    assert found["e2"]["equal"] and [d["path"] for d in found["spelling"]] == ["f"]


def test_order_of_safetensors_is_spelling(tmp_path):
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    save_file({"x": x(), "y": x()}, a)
    raw = a.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    text = json.dumps(dict(reversed(header.items())), separators=(",", ":")).encode()
    text += b" " * (size - len(text))
    assert len(text) == size
    b.write_bytes(raw[:8] + text + raw[8 + size :])
    found = diff(a, b, code=0)
    assert found["e2"]["equal"] and [d["field"] for d in found["spelling"]] == ["order of the entries"]


def test_shards_are_one_checkpoint(tmp_path):
    parts = {"a": x(), "b": x() * 2}
    folders = []
    for name, split in (("one", [["a", "b"]]), ("two", [["a"], ["b"]])):
        folder = tmp_path / name
        folder.mkdir()
        weights = {}
        for i, keys in enumerate(split):
            shard = f"pytorch_model-{i + 1:05}-of-{len(split):05}.bin"
            torch.save({key: parts[key] for key in keys}, folder / shard)
            weights.update(dict.fromkeys(keys, shard))
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weights}))
        folders.append(folder)
    found = diff(*folders, code=0)
    assert found["e2"]["equal"] and found["spelling"]
    torch.save({"b": x() * 3}, folders[1] / "pytorch_model-00002-of-00002.bin")
    assert where(diff(*folders, code=1)) == ["b: element 1"]


def test_text_names_path_and_values(tmp_path):
    done = qcts("diff", *saved(tmp_path, {"lr": 0.1}, {"lr": 0.2}), code=1)
    assert "E2 content  differs    in 1 place\n  lr: 0.1 | 0.2\n" in done.stdout
    many = [{str(i): value for i in range(30)} for value in (1, 2)]
    assert "and 10 more: --all" in qcts("diff", *saved(tmp_path, *many), code=1).stdout
    assert "29: 1 | 2" in qcts("diff", *saved(tmp_path, *many), "--all", code=1).stdout


def torchao_file(path, names, header, stored=("a.weight", "b.bias")):
    entries = {name: torch.ones(2) for name in stored}
    described = {name: json.dumps({"_type": "Tensor"}) for name in header}
    save_file(entries, path, metadata=described | {"tensor_names": json.dumps(names)})
    return path


def test_the_order_of_tensor_names_is_spelling(tmp_path):
    """tensor_names is a set; a name in it that no tensor has adds nothing."""
    names = ["a.weight", "b.bias"]
    a = torchao_file(tmp_path / "a.safetensors", names, names)
    b = torchao_file(tmp_path / "b.safetensors", names[::-1], names)
    found = diff(a, b, code=0)
    assert found["e2"]["equal"] and [d["path"] for d in found["spelling"]] == ["__metadata__.tensor_names"]
    assert "equal, spelled differently" in qcts("diff", a, b).stdout
    assert where(diff(a, torchao_file(tmp_path / "d.safetensors", names[:1], names[:1]), code=1)) != []


def test_the_order_of_keys_in_config_json_is_spelling(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, keys in zip(folders, (["x", "y"], ["y", "x"]), strict=True):
        folder.mkdir()
        save_file({"w": torch.ones(2)}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps({key: {"k": 1} for key in keys}))
    found = diff(*folders, code=0)
    assert found["e2"]["equal"] and [d["field"] for d in found["spelling"]] == ["order of the keys"]


def test_1_says_that_the_contents_differ_and_nothing_else(tmp_path):
    """What cannot be read ends in 5, a wrong word or path in 2."""
    a, b = saved(tmp_path, {"w": x()}, {"w": x() + 1})
    diff(a, b, code=1)
    (tmp_path / "cut.pt").write_bytes(a.read_bytes()[:-40])
    for words in ([a, tmp_path / "cut.pt"], [tmp_path / "cut.pt", a], [tmp_path / "cut.pt", a, "--error"]):
        done = qcts("diff", *words, "--json", code=5)
        assert "refused" in done.stderr and json.loads(done.stdout)["refusal"]["class"]
    qcts("diff", a, tmp_path / "none.pt", code=2)
    qcts("diff", a, b, "--cpu-pack", "avx3", code=2)
    assert "5 if one cannot be read" in " ".join(qcts("diff", "--help").stdout.split())
