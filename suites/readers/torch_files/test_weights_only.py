# SPDX-License-Identifier: BSD-3-Clause
"""What torch.load(weights_only=True) takes is read, kept and compared; what it refuses is refused with the options that help."""

import json
import re
import shlex

import numpy as np
import pytest
from dialect_files import read_safetensors
from qcts_program import inspect, pinned, qcts

torch = pinned("torch", "2.13")

from torch_samples import CONTAINERS, repacked  # noqa: E402
from weights_only_samples import KEYS, REFUSED, VALUES, Color, Pair  # noqa: E402

pytestmark = pytest.mark.parametrize("container", CONTAINERS)


def save(value, path, container="zip"):
    torch.save(value, path, **CONTAINERS[container])
    return path


def assert_served(path, *words, tensors=1):
    """Every command takes the file; the copy is the file."""
    copy, out = path.with_name("copy.pt"), path.with_name("out.safetensors")
    assert len(inspect(path, *words)["tensors"]) == tensors
    qcts("check", path, *words)
    assert "taken over" not in qcts("resave", path, copy, *words).stderr and copy.read_bytes() == path.read_bytes()
    diff = json.loads(qcts("diff", path, copy, "--json", *words).stdout)
    assert diff["e1"]["equal"] and diff["e2"]["equal"] and diff["e3"]["equal"]
    qcts("dequantize", "--partial", path, out, *words)


def torch_takes(path):
    try:
        torch.load(path, weights_only=True)
    except Exception as error:
        return str(error)
    return True


@pytest.mark.parametrize("what", VALUES)
def test_values_beside_the_tensors(what, container, tmp_path):
    path = save({"v": VALUES[what], "w": torch.ones(2)}, tmp_path / "a.pt", container)
    assert torch_takes(path) is True
    assert_served(path, tensors=1 + (what == "mersenne_state"))


@pytest.mark.parametrize("what", KEYS)
def test_keys(what, container, tmp_path):
    path = save({KEYS[what]: torch.ones(2), "z": torch.zeros(1)}, tmp_path / "a.pt", container)
    assert torch_takes(path) is True
    assert_served(path, tensors=2)
    other = save({KEYS[what]: torch.zeros(2), "z": torch.zeros(1)}, tmp_path / "b.pt", container)
    assert json.loads(qcts("diff", path, other, "--json", code=1).stdout)["e1"]["differing"] == 1


@pytest.mark.parametrize("what", REFUSED)
def test_what_torch_refuses_is_refused_with_the_options_that_help(what, container, tmp_path):
    value, name = REFUSED[what]
    path = save({"v": value, "w": torch.ones(2)}, tmp_path / "a.pt", container)
    assert name in torch_takes(path)
    told = qcts("inspect", path, code=1).stderr
    assert "refused: PickleGlobal" in told
    words = shlex.split(re.search(r"\((--allow .*) keeps (?:it|them), never run\)", told)[1])
    assert_served(path, *words)


def test_empty_bytes_are_read_although_torch_refuses_them(container, tmp_path):
    path = save({"v": [b"", {b"": 1}], "w": torch.ones(2)}, tmp_path / "a.pt", container)
    assert "bytes" in torch_takes(path)
    assert_served(path)


def test_integers_are_shown_and_compared_by_value(container, tmp_path):
    a = save({"n": 2**100, "w": torch.ones(1)}, tmp_path / "a.pt", container)
    b = save({"n": -(2**100) - 1, "w": torch.ones(1)}, tmp_path / "b.pt", container)
    assert f"n: {2**100} | {-(2**100) - 1}" in qcts("diff", a, b, code=1, COLUMNS="1000").stdout
    c = save({"n": 2**1000, "w": torch.ones(1)}, tmp_path / "c.pt", container)
    assert f"n: {2**100} | {hex(2**1000)}" in qcts("diff", a, c, code=1, COLUMNS="1000").stdout


def test_integers_of_more_than_255_bytes_are_refused_as_torch_refuses_them(container, tmp_path):
    path = save({"n": 2**2040}, tmp_path / "a.pt", container)
    assert "Unsupported operand 139" in torch_takes(path)
    assert "LONG4" in (told := qcts("inspect", path, code=1).stderr) and "save it as a string" in told


@pytest.mark.parametrize("key", [torch.ones(2), torch.nn.Parameter(torch.ones(1)), (1, torch.ones(1))])
def test_tensors_as_keys_are_refused_with_a_way_out(key, container, tmp_path):
    path = save({key: 1}, tmp_path / "a.pt", container)
    assert torch_takes(path) is True
    assert "save a list of pairs" in qcts("inspect", path, code=1).stderr


def test_names_of_keys(container, tmp_path):
    keys = [(0, "a"), (1,), None, 2**70, ((1, 2), "b"), 7]
    path = save({key: torch.ones(1) for key in keys}, tmp_path / "a.pt", container)
    assert [t["name"] for t in inspect(path)["tensors"]] == ["(0, 'a')", "(1,)", "None", str(2**70), "((1, 2), 'b')", "7"]


def test_a_name_that_safetensors_cannot_hold_is_told(container, tmp_path):
    path = save({"\udc80": torch.ones(1), "w": torch.ones(1)}, tmp_path / "a.pt", container)
    assert "not UTF-8" in qcts("dequantize", path, tmp_path / "o.safetensors", code=1).stderr
    qcts("dequantize", "--partial", path, tmp_path / "o.safetensors")
    assert list(read_safetensors(tmp_path / "o.safetensors")) == ["w"]


def test_tensors_in_the_metadata_of_a_state_dict_are_listed(container, tmp_path):
    state = torch.nn.Linear(2, 2, bias=False).state_dict()
    state._metadata["extra"] = {"version": 1, "calibration": torch.ones(3)}
    path = save(state, tmp_path / "a.pt", container)
    assert torch_takes(path) is True
    assert [t["name"] for t in inspect(path)["tensors"]] == ["weight", "_metadata.extra.calibration"]
    assert_served(path, tensors=2)


def test_all_unknown_globals_are_named_at_once(container, tmp_path):
    path = save({"a": Color.RED, "b": Pair(1, 2), "c": np.float32(2), "w": torch.ones(1)}, tmp_path / "a.pt", container)
    refusal = json.loads(qcts("inspect", path, "--json", code=1).stdout)["refusal"]
    module = Color.__module__
    assert refusal["allow"][:2] == [f"{module}.Color", f"{module}.Pair"] and len(refusal["allow"]) == 4
    assert_served(path, *[word for name in refusal["allow"] for word in ("--allow", name)])
    assert "--allow" not in qcts("inspect", with_global(path, b"posix\nsystem", container), code=1).stderr


def with_global(path, name, container):
    """The file with a first value that names a global of a module that is never allowed."""
    data = path.read_bytes()
    find = lambda pickle: pickle.replace(b"}q\0(", b"}q\0(X\1\0\0\0_c" + name + b"\n", 1)  # noqa: E731
    if container == "zip":
        data = repacked(data, change=lambda record, body: find(body) if record == "data.pkl" else None)
    else:
        at = data.index(b"}q\0(X\1\0\0\0a")
        data = data[:at] + find(data[at:])
    (out := path.with_name("posix.pt")).write_bytes(data)
    return out


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(3, 2), torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))


def test_whole_models(container, tmp_path):
    """torch.save(model): the legacy format also holds file and source of each class, in the id of the class."""
    torch.manual_seed(0)
    model = Net()
    path = save(model, tmp_path / "a.pt", container)
    told = qcts("inspect", path, code=1).stderr
    assert "state_dict()" in told and f"{Net.__module__}.Net" in told and "BatchNorm1d" in told
    words = shlex.split(re.search(r"\((--allow .*) keeps them, never run\)", told)[1])
    assert_served(path, *words, tensors=len(model.state_dict()))
    assert {t["name"] for t in inspect(path, *words)["tensors"]} == set(model.state_dict())
    with torch.no_grad():
        model.one.weight[1, 2] += 1
    other = save(model, tmp_path / "b.pt", container)
    told = json.loads(qcts("diff", path, other, "--json", *words, code=1).stdout)
    assert told["e1"]["differing"] == 1 and "one" in told["e2"]["first"]["path"]


def test_both_containers_of_a_whole_model_are_equal_but_for_the_source(container, tmp_path):
    torch.manual_seed(0)
    model, files = Net(), {name: tmp_path / f"{name}.pt" for name in CONTAINERS}
    for name, path in files.items():
        save(model, path, name)
    told = qcts("inspect", files[container], code=1).stderr
    words = shlex.split(re.search(r"\((--allow .*) keeps them, never run\)", told)[1])
    diff = json.loads(qcts("diff", files["zip"], files["legacy"], "--json", *words).stdout)
    assert diff["e1"]["equal"] and diff["e2"]["equal"]
    assert {entry["field"] for entry in diff["spelling"]} == {"source of the class"}
    changed = files["legacy"].read_bytes().replace(b"class Net(", b"class Ned(")
    (tmp_path / "changed.pt").write_bytes(changed)
    assert "class source" in qcts("diff", files["legacy"], tmp_path / "changed.pt", *words, code=1).stdout


class Marked(torch.Tensor):
    """Without attributes: since Python 3.11 its state is None."""


def test_a_tensor_subclass_without_attributes(container, tmp_path):
    path = save({"w": torch.ones(2, 3).as_subclass(Marked)}, tmp_path / "a.pt", container)
    name = f"{Marked.__module__}.Marked"
    assert f"--allow {name}" in qcts("inspect", path, code=1).stderr
    assert_served(path, "--allow", name)
    assert read_safetensors(tmp_path / "out.safetensors")["w"][1:] == ([2, 3], torch.ones(2, 3).numpy().tobytes())
