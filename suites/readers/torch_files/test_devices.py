# SPDX-License-Identifier: BSD-3-Clause
"""Device tags and --map-location; tensors of devices without storages, in the numpy form and in the host's."""

import json
import subprocess

import numpy as np
import pytest
from dialect_files import read_safetensors, write_safetensors
from qcts_program import BIN, inspect, pinned, qcts

torch = pinned("torch", "2.13")

from torch_samples import CONTAINERS, counting, raw  # noqa: E402

pytestmark = pytest.mark.parametrize("container", CONTAINERS)


@pytest.fixture
def tagged():
    """Saves a storage with the tag of its place in a list."""
    tags = {}
    known = torch.serialization._package_registry[:]
    torch.serialization.register_package(0, lambda storage: tags.get(storage.data_ptr()), lambda storage, tag: None)

    def save(path, container, **tensors):
        for tensor, tag in tensors.values():
            tags[tensor.untyped_storage().data_ptr()] = tag
        torch.save({name: tensor for name, (tensor, _) in tensors.items()}, path, **CONTAINERS[container])
        return path

    yield save
    torch.serialization._package_registry[:] = known


def locations(path, *words):
    return {t["name"]: t["payload"][0]["location"] for t in inspect(path, *words)["tensors"]}


MAPS = {
    "every_index": (["cuda=cpu"], "cpu", "cpu", "cpu"),
    "longest_first": (["cuda=cpu", "cuda:1=xpu:3"], "cpu", "xpu:3", "cpu"),
    "whole_tag_alone": (["cuda:0=cpu"], "cpu", "cuda:1", "cuda"),
    "order_does_not_matter": (["cuda:1=xpu:0", "cuda=meta"], "meta", "xpu:0", "meta"),
    "others_stay": (["xpu=cpu", "cud=cpu", "cuda:10=cpu"], "cuda:0", "cuda:1", "cuda"),
}


@pytest.mark.parametrize("what", MAPS)
def test_map_location(what, container, tagged, tmp_path):
    maps, *wanted = MAPS[what]
    words = [word for pair in maps for word in ("--map-location", pair)]
    parts = {"a": (counting((2,)), "cuda:0"), "b": (counting((3,)), "cuda:1"), "c": (counting((4,)), "cuda")}
    path = tagged(tmp_path / "a.pt", container, **parts)
    assert locations(path) == dict(zip("abc", ["cuda:0", "cuda:1", "cuda"], strict=True))
    assert locations(path, *words) == dict(zip("abc", wanted, strict=True))
    qcts("resave", path, tmp_path / "moved.pt", *words)
    assert locations(tmp_path / "moved.pt") == dict(zip("abc", wanted, strict=True))
    qcts("check", tmp_path / "moved.pt")
    moved = json.loads(qcts("diff", path, tmp_path / "moved.pt", "--json", code=int(wanted != ["cuda:0", "cuda:1", "cuda"])).stdout)
    assert moved["e1"]["equal"] and all(entry["field"] == "device" for entry in moved["e2"]["differences"])
    qcts("diff", path, tmp_path / "moved.pt", *words)


COMMANDS = {
    "inspect": [], "check": [], "diff": ["again.pt"], "dequantize": ["out.safetensors"], "resave": ["out.pt"],
    "quantize": ["out.pt"], "convert": ["out.safetensors"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_map_of_a_tag_that_is_not_in_the_file_is_told(command, container, tagged, tmp_path):
    """A mistyped tag is never silent; a map next to it that matches is not complained of."""
    path = tagged(tmp_path / "a.pt", container, w=(counting((2,)), "cuda:0"))
    (tmp_path / "again.pt").write_bytes(path.read_bytes())
    words = [command, path, *[tmp_path / name for name in COMMANDS[command]]]
    words += {"quantize": ["--scheme", "int8_row"]}.get(command, [])
    for wrong in ("cud:0=cpu", "cuda:1=cpu", "xpu=cpu"):
        done = run(*words, "--map-location", wrong, "--map-location", "cuda:0=cpu")
        tag = wrong.split("=")[0]
        assert f"--map-location {wrong} changes nothing: no storage is on {tag} (but on cuda:0)" in done.stderr
        assert "--map-location cuda:0=cpu changes nothing" not in done.stderr
    other = write_safetensors(tmp_path / "x.safetensors", {"a": ("F32", [1], bytes(4))})
    assert "no storage is on cuda" in qcts("inspect", other, "--map-location", "cuda=cpu").stderr


def run(*words):
    """Whatever its exit code: some commands have nothing to do with the file."""
    return subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=60)


def test_a_changed_tag_is_a_difference_unless_it_is_mapped(container, tagged, tmp_path):
    a = tagged(tmp_path / "a.pt", container, w=(counting((2,)), "cuda:0"))
    b = tagged(tmp_path / "b.pt", container, w=(counting((2,)), "xpu:0"))
    first = json.loads(qcts("diff", a, b, "--json", code=1).stdout)["e2"]["first"]
    assert (first["path"], first["field"], first["a"], first["b"]) == ("w", "device", "cuda:0", "xpu:0")
    qcts("diff", a, b, "--map-location", "cuda=cpu", "--map-location", "xpu=cpu")


def test_an_unknown_tag_is_refused_with_the_options_that_help(container, tagged, tmp_path):
    path = tagged(tmp_path / "a.pt", container, w=(counting((2,)), "acme:1"))
    told = qcts("inspect", path, code=1).stderr
    assert "--allow-location acme:1" in told and "--map-location acme:1=cpu" in told
    assert locations(path, "--map-location", "acme:1=cpu") == {"w": "cpu"}
    assert locations(path, "--map-location", "acme=cuda:7") == {"w": "cuda:7"}
    assert locations(path, "--allow-location", "acme:1") == {"w": "acme:1"}


@pytest.mark.parametrize("map", ["cuda", "=cpu", "cuda=", "cuda=warp", "cuda=cuda:x"])
def test_a_map_that_names_no_device_is_a_usage_error(map, container, tmp_path):
    torch.save({"w": counting((2,))}, tmp_path / "a.pt", **CONTAINERS[container])
    assert "--map-location" in qcts("inspect", tmp_path / "a.pt", "--map-location", map, code=2).stderr


class Numpy(torch.Tensor):
    """Saves as torch before 2.2 saved tensors of XLA devices; bfloat16 as float32, which numpy has."""

    def __reduce_ex__(self, protocol):
        own = self.detach().as_subclass(torch.Tensor)
        array = (own.float() if own.dtype == torch.bfloat16 else own).numpy()
        return torch._utils._rebuild_device_tensor_from_numpy, (array, own.dtype, "xla:0", self.requires_grad)


class Host(torch.Tensor):
    """Saves as torch saves them since."""

    def __reduce_ex__(self, protocol):
        own = self.detach().as_subclass(torch.Tensor)
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, (own, own.dtype, "xla:0", self.requires_grad)


DTYPES = "float32 float64 float16 bfloat16 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool complex64".split()


def samples():
    state = {}
    for name in DTYPES:
        data = torch.tensor([[1, 0, 200], [3, 4, 5]]).to(getattr(torch, name))
        state[name] = data
    state |= {"scalar": torch.tensor(2.5), "empty": torch.empty(0, 3), "fortran": counting((3, 4)).t(), "big": counting((70_000,))}
    state["negative"] = torch.tensor([-1.0, float("nan"), float("inf")])
    return state


@pytest.mark.parametrize("form", [Numpy, Host])
def test_tensors_of_devices_without_storages(form, container, tmp_path):
    state = samples()
    path, copy, out = tmp_path / "a.pt", tmp_path / "copy.pt", tmp_path / "out.safetensors"
    torch.save({name: tensor.as_subclass(form) for name, tensor in state.items()}, path, **CONTAINERS[container])
    seen = {t["name"]: t for t in inspect(path)["tensors"]}
    assert list(seen) == list(state)
    for name, tensor in state.items():
        assert seen[name]["shape"] == list(tensor.shape) and seen[name]["dtype"] == str(tensor.dtype)[6:]
        assert seen[name]["attributes"]["device"] == "xla:0"
    # Integers next to floats are not codes here, and "negative" holds NaN and infinity.
    told = json.loads(qcts("check", "--dialect", "plain", path, "--json", code=1).stdout)
    assert {v["case_id"] for v in told["verdicts"] if v["status"] != "pass"} == {"values.file/any/file"}
    assert {finding["tensor"] for finding in told["values"]["findings"]} == {"negative"}
    qcts("resave", path, copy)
    assert copy.read_bytes() == path.read_bytes()
    assert json.loads(qcts("diff", path, copy, "--json").stdout)["e3"]["equal"]
    qcts("dequantize", "--partial", "--dialect", "plain", path, out)
    held = read_safetensors(out)
    for name, tensor in state.items():
        assert raw(tensor) == held[name][2], name
    changed = {**state, "int16": state["int16"] + 1}
    torch.save({name: tensor.as_subclass(form) for name, tensor in changed.items()}, copy, **CONTAINERS[container])
    told = json.loads(qcts("diff", "--dialect", "plain", path, copy, "--json", code=1).stdout)
    assert told["e1"]["differing"] == 1 and told["e2"]["first"]["path"].startswith("int16")
    qcts("resave", "--map-location", "xla=cuda:1", path, copy)
    assert {t["attributes"]["device"] for t in inspect(copy)["tensors"]} == {"cuda:1"}


@pytest.mark.parametrize("form", [Numpy, Host])
def test_a_tensor_of_such_a_device_is_a_tensor(form, container, tmp_path):
    state = {"w": counting((3, 4)), "b": counting((4,)).bfloat16()}
    path, plain = tmp_path / "a.pt", tmp_path / "plain.pt"
    torch.save({name: tensor.as_subclass(form) for name, tensor in state.items()}, path, **CONTAINERS[container])
    torch.save(state, plain, **CONTAINERS[container])
    done = qcts("convert", path, tmp_path / "a.safetensors")
    assert "cannot store w: device: xla:0" in done.stderr
    assert {name: held[2] for name, held in read_safetensors(tmp_path / "a.safetensors").items()} == {n: raw(t) for n, t in state.items()}
    assert locations(path) == dict.fromkeys(state, "cpu")  # the device is only among the attributes
    found = json.loads(qcts("diff", path, plain, "--json", code=1).stdout)
    assert [(d["path"], d["field"], d["a"]) for d in found["e2"]["differences"]] == [(n, "device", "xla:0") for n in state]
    found = json.loads(qcts("diff", path, plain, "--json", "--map-location", "xla:0=cpu").stdout)
    assert {d["field"] for d in found["spelling"]} == {"rebuilt by"} and found["e1"]["equal"]
    assert qcts("convert", path, tmp_path / "b.safetensors", "--map-location", "xla:0=cpu").stderr == ""


def test_a_large_array_is_no_long_string(container, tmp_path):
    big = torch.arange(3_000_000, dtype=torch.float64)  # 24 MB; a string may have 16
    torch.save({"w": big.as_subclass(Numpy)}, tmp_path / "a.pt", **CONTAINERS[container])
    assert inspect(tmp_path / "a.pt")["tensors"][0]["shape"] == [3_000_000]


def device_tensor(array, dtype=torch.float32):
    class Call:
        def __reduce__(self):
            return torch._utils._rebuild_device_tensor_from_numpy, (array, dtype, "xla:0", False)

    return Call()


BAD = {
    "other_type": (np.zeros(3, "i4"), torch.float32, "elements of int32 for a tensor of float32"),
    "no_bfloat16": (np.full(3, 1 / 3, "f4"), torch.bfloat16, "are not bfloat16 values"),
    "objects": (np.array([None]), torch.float32, "elements of O8"),
    "text": (np.array(["ab"]), torch.float32, "elements of U2"),
    "fields": (np.zeros(2, [("a", "f4")]), torch.float32, "elements of V4"),
}


@pytest.mark.parametrize("what", BAD)
def test_arrays_that_are_no_tensor_are_refused(what, container, tmp_path):
    array, dtype, words = BAD[what]
    torch.save({"w": device_tensor(array, dtype)}, tmp_path / "a.pt", **CONTAINERS[container])
    assert words in qcts("inspect", tmp_path / "a.pt", code=1).stderr


def test_big_endian_arrays(container, tmp_path):
    for code, dtype in {">f4": torch.float32, ">i8": torch.int64, ">c8": torch.complex64}.items():
        torch.save({"w": device_tensor(np.arange(3).astype(code), dtype)}, tmp_path / "a.pt", **CONTAINERS[container])
        seen = inspect(tmp_path / "a.pt")["tensors"][0]["payload"][0]["sha256"]
        torch.save({"w": torch.arange(3).to(dtype)}, tmp_path / "b.pt", **CONTAINERS[container])
        assert seen == inspect(tmp_path / "b.pt")["tensors"][0]["payload"][0]["sha256"]


def test_numpy_values_stay_refused_beside_such_tensors(container, tmp_path):
    torch.save({"w": counting((2,)).as_subclass(Numpy), "a": np.zeros(3)}, tmp_path / "a.pt", **CONTAINERS[container])
    told = qcts("inspect", tmp_path / "a.pt", code=1).stderr
    assert "PickleGlobal" in told and "numpy" in told and "--allow numpy._core.multiarray._reconstruct" in told


def test_quantize_leaves_them_alone(container, tmp_path):
    state = {"a.weight": counting((32, 64)).as_subclass(Host), "b.weight": counting((32, 64)).bfloat16()}
    torch.save(state, tmp_path / "a.pt", **CONTAINERS[container])
    report = json.loads(qcts("quantize", "--scheme", "int8_row", tmp_path / "a.pt", tmp_path / "q.pt", "--json").stdout)
    assert report["quantized"] == ["b.weight"] and "without storages" in json.dumps(report["left"])


def test_check_reads_the_stored_tags_under_a_map(container, tmp_path):
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt", **CONTAINERS[container])
    qcts("check", tmp_path / "a.pt", "--map-location", "cpu=cuda:0")
