# SPDX-License-Identifier: BSD-3-Clause
"""Tensors inside objects that --allow keeps: found, compared, written, or named if they are left out."""

import json

import pytest
from dialect_files import metadata_of, read_safetensors, write_safetensors
from qcts_program import inspect, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")

LINEAR, SEQUENTIAL, NORM = (
    "torch.nn.modules.linear.Linear",
    "torch.nn.modules.container.Sequential",
    "torch.nn.modules.batchnorm.BatchNorm1d",
)
MODULE_CLASSES = [LINEAR, SEQUENTIAL, NORM, "torch.nn.modules.activation.ReLU", "builtins.set"]


def allow(*names):
    return [word for name in names for word in ("--allow", name)]


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slotted:
    __slots__ = ("weight", "step")

    def __init__(self, weight, step):
        self.weight, self.step = weight, step


class Pair(tuple):
    __slots__ = ()

    def __reduce__(self):
        return Pair, (tuple(self),)


class Table(dict):
    pass


class Row(list):
    pass


OURS = [f"{__name__}.{cls.__name__}" for cls in (Holder, Slotted, Pair, Table, Row)]


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Sequential(torch.nn.Linear(3, 2)))


def objects(weight):
    """name -> (object, names of its tensors)"""
    return {
        "attributes": (Holder(weight=weight, step=3), ["weight"]),
        "nested": ({"ema": Holder(shadow={"w": weight}, inner=Holder(v=weight + 1))}, ["ema.shadow.w", "ema.inner.v"]),
        "slots": (Slotted(weight, 2), ["weight"]),
        "arguments": ({"pair": Pair((weight, weight * 2))}, ["pair.0.0", "pair.0.1"]),
        "elements": ({"t": Table(a=weight), "r": Row([weight, 1])}, ["t.a", "r.0"]),
        "in_a_list": ([Holder(weight=weight), weight + 3], ["0.weight", "1"]),
    }


def saved(value, path):
    torch.save(value, path)
    return path


def test_a_whole_model_has_the_names_of_its_state_dict(tmp_path):
    whole = model()
    path = saved(whole, tmp_path / "model.pt")
    words = allow(*MODULE_CLASSES)
    state = whole.state_dict()
    assert [t["name"] for t in inspect(path, *words)["tensors"]] == list(state)
    qcts("dequantize", path, tmp_path / "out.safetensors", *words)
    written = read_safetensors(tmp_path / "out.safetensors")
    assert {n: (list(t.shape), t.numpy().tobytes()) for n, t in state.items()} == {n: v[1:] for n, v in written.items()}
    qcts("check", path, *words)
    assert "values that are not tensors are not in OUT" in qcts("dequantize", path, tmp_path / "out.safetensors", *words).stderr


@pytest.mark.parametrize("case", objects(torch.ones(2, 2)))
def test_tensors_are_found_and_compared_wherever_an_object_holds_them(case, tmp_path):
    value, names = objects(torch.ones(2, 2))[case]
    changed, _ = objects(torch.full((2, 2), 5.0))[case]
    a, b = saved(value, tmp_path / "a.pt"), saved(changed, tmp_path / "b.pt")
    words = allow(*OURS)
    assert sorted(t["name"] for t in inspect(a, *words)["tensors"]) == sorted(names)
    told = json.loads(qcts("diff", a, b, "--json", *words, code=1).stdout)
    assert told["e1"]["differing"] == len(names)
    assert 1 <= told["e2"]["differing"] <= len(names)  # a storage that two names share is compared once
    qcts("diff", a, a, *words)
    qcts("check", a, *words)
    qcts("dequantize", a, tmp_path / "out.safetensors", *words)
    assert sorted(read_safetensors(tmp_path / "out.safetensors")) == sorted(names)


def test_what_a_file_of_tensors_cannot_hold_is_listed_once_by_diff_and_dequantize(tmp_path):
    weight = torch.ones(2)
    held = {"ema": Holder(shadow={"w": weight}, decay=0.9), "size": torch.Size([2]), "log": [1, weight + 1], "empty": {}}
    whole, out = saved(held, tmp_path / "a.pt"), tmp_path / "out.safetensors"
    note = qcts("dequantize", whole, out, *allow(*OURS)).stderr
    assert "5 values that are not tensors are not in OUT: ema, ..." in note
    told = json.loads(qcts("diff", whole, out, "--json", *allow(*OURS)).stdout)["not_comparable"]
    values = [d["path"] for d in told if not d["field"]]
    assert values == ["ema", "ema.decay", "size", "log[0]", "empty", "__metadata__.format"]
    assert [d["path"] for d in told if d["field"] == "type"] == ["log"]


def test_values_beside_the_tensors_are_compared(tmp_path):
    weight = torch.ones(2)
    a = saved({"w": weight, "epoch": 1, "log": ["a"]}, tmp_path / "a.pt")
    b = saved({"w": weight, "epoch": 2, "log": ["a"]}, tmp_path / "b.pt")
    done = qcts("diff", a, b, code=1)
    assert "E1 meaning  equal" in done.stdout and "epoch: 1 | 2" in done.stdout
    c = saved({"w": weight, "epoch": 1, "log": ["a", "b"]}, tmp_path / "c.pt")
    assert "log: length: 1 | 2" in qcts("diff", a, c, code=1).stdout
    other = write_safetensors(tmp_path / "d.safetensors", {"w": ("F32", [2], weight.numpy().tobytes())})
    assert "not comparable" in (told := qcts("diff", a, other).stdout) and "  epoch: 1 | " in told and "  log[0]: " in told
    qcts("diff", "--strict", a, other, code=1)


def test_objects_of_two_classes_are_not_equal(tmp_path):
    a, b = saved(Holder(w=torch.ones(1)), tmp_path / "a.pt"), saved(Table(w=torch.ones(1)), tmp_path / "b.pt")
    assert "differs" in qcts("diff", a, b, *allow(*OURS), code=1).stdout


def test_quantize_reaches_into_a_model(tmp_path):
    whole = torch.nn.Sequential(torch.nn.Linear(64, 32)).to(torch.bfloat16)
    path, out = saved(whole, tmp_path / "a.pt"), tmp_path / "out.pt"
    words = allow(*MODULE_CLASSES)
    qcts("quantize", "--scheme", "int8_row", path, out, *words)
    assert {t["name"]: t["scheme"] for t in inspect(out, *words)["tensors"]} == {"0.weight": "int8_row", "0.bias": None}


def test_dequantize_writes_all_or_nothing_unless_asked(tmp_path):
    """A quantized tensor of torch itself, whose zero point torch refuses."""
    codes = torch._make_per_tensor_quantized_tensor(torch.ones(2, 2, dtype=torch.int8), 0.1, 128)
    path, out = saved({"a": torch.ones(2), "q": codes}, tmp_path / "x.pt"), tmp_path / "out.safetensors"
    refused = qcts("dequantize", path, out, code=1)
    assert ": q: " in refused.stderr and "--partial" in refused.stderr and not out.exists()
    done = qcts("dequantize", "--partial", path, out)
    assert "left out: q: " in done.stderr and list(read_safetensors(out)) == ["a"]


def test_an_array_of_numpy_is_not_left_out_in_silence(tmp_path):
    np = pytest.importorskip("numpy", reason="numpy is not installed")
    names = allow("numpy._core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype", "_codecs.encode")
    for value in ({"w": np.ones((2, 2)), "t": torch.ones(2)}, [np.ones(3), torch.ones(2)], {"a": {"b": (np.ones(1),)}, "t": torch.ones(1)}):
        path, out = saved(value, tmp_path / "x.pt"), tmp_path / "out.safetensors"
        out.unlink(missing_ok=True)
        told = qcts("dequantize", path, out, *names, code=1).stderr
        assert "a numpy array, which is not a tensor" in told and "--partial" in told and not out.exists()
        assert "left out: " in qcts("dequantize", "--partial", path, out, *names).stderr and len(read_safetensors(out)) == 1


@pytest.mark.parametrize("count, text", [(1, "w is a tensor on"), (3, "w and 2 more are tensors on")])
def test_tensors_without_elements_are_noted(count, text, tmp_path):
    state = {"w": torch.ones(2, device="meta"), "b": torch.ones(2)} | {f"w{i}": torch.ones(2, device="meta") for i in range(1, count)}
    torch.save(state, tmp_path / "x.pt")
    assert f"note: {text} the meta device, whose elements are in no file" in qcts("check", tmp_path / "x.pt").stderr


NOT_STRIDED = {
    "meta": (torch.ones(2, device="meta"), "meta device"),
    "sparse": (torch.eye(3).to_sparse(), "to_dense()"),
    "sparse_rows": (torch.eye(3).to_sparse_csr(), "to_dense()"),
    "nested": (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested tensor"),
    "jagged": (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged), "nested tensor"),
    "conj": (torch.ones(2, dtype=torch.complex64).conj(), "resolve_conj()"),
    "quantized": (torch._make_per_tensor_quantized_tensor(torch.ones(2, dtype=torch.int8), 0.1, 128), "zero points"),
    "complex32": (torch.ones(2, dtype=torch.complex32), "no dtype for complex32"),
    "bits": (torch.zeros(3, dtype=torch.bits8), "no dtype for bits8"),
}


@pytest.mark.parametrize("case", NOT_STRIDED)
def test_a_tensor_that_no_safetensors_can_hold_says_what_to_save(case, tmp_path):
    value, word = NOT_STRIDED[case]
    path, out = saved({"a": torch.ones(2), "v": value}, tmp_path / "x.pt"), tmp_path / "out.safetensors"
    told = qcts("dequantize", path, out, code=1).stderr
    assert ": v: " in told and word in told and not out.exists()
    qcts("dequantize", "--partial", path, out)
    assert list(read_safetensors(out)) == ["a"]


def test_dequantize_keeps_the_metadata_that_a_user_added(tmp_path):
    said = {"ss_network_dim": "32", "modelspec.title": "größe\n", "format": "pt"}
    path = write_safetensors(tmp_path / "x.safetensors", {"a": ("F32", [1], bytes(4))}, said)
    qcts("dequantize", path, tmp_path / "out.safetensors")
    assert metadata_of(tmp_path / "out.safetensors") == said
    del said["format"]
    qcts("dequantize", write_safetensors(path, {"a": ("F32", [1], bytes(4))}, said), tmp_path / "out.safetensors")
    assert metadata_of(tmp_path / "out.safetensors") == {**said, "format": "pt"}


def test_allow_takes_several_names(tmp_path):
    """`--allow A B` is `--allow A --allow B`, wherever FILE and OUT are on the command line."""
    file, out = tmp_path / "whole.pt", tmp_path / "out.pt"
    torch.save(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), file)
    names = [f"torch.nn.modules.{name}" for name in ("container.Sequential", "linear.Linear", "activation.ReLU")]
    for words in (["--allow", *names, file], [file, "--allow", *names], [file, "--allow", names[0], "--allow", *names[1:]]):
        assert "0.weight" in qcts("inspect", *words).stdout
    qcts("resave", "--allow", *names, file, out)
    assert file.read_bytes() == out.read_bytes()
    assert "torch.nn.modules.activation.ReLU" in qcts("inspect", file, "--allow", *names[:2], code=1).stderr
