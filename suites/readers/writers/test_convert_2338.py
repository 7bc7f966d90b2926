# SPDX-License-Identifier: BSD-3-Clause
"""Files of pytorch/ao#2338: `qcts convert` writes and reads them, names may share prefixes, additional metadata is shown and compared."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from dialect_files import FIXTURES, GOLDENS, metadata_of, read_safetensors, write_safetensors  # noqa: E402
from qcts_program import inspect, qcts  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402


def golden_2338(form):
    return FIXTURES / GOLDENS[f"torchao_0_13_0/ao_2338/{form}"]["file"]


@pytest.mark.parametrize("form", ["dictionary", "single"])
def test_the_issues_files_go_to_a_pickle_and_back(form, tmp_path):
    source, pickled, back = golden_2338(form), tmp_path / "there.pt", tmp_path / "back.safetensors"
    qcts("convert", source, pickled)
    qcts("convert", pickled, back)
    assert read_safetensors(back) == read_safetensors(source)
    assert metadata_of(back) == metadata_of(source)
    found = json.loads(qcts("diff", source, pickled, "--json").stdout)
    assert found["e1"]["equal"] and found["e2"]["equal"] and not found["not_comparable"]


TORCHAO_13 = """
import sys, types, torch
class LinearActivationQuantizedTensor(torch.Tensor):
    @staticmethod
    def __new__(cls, weight, function, kwargs):
        return torch.Tensor._make_wrapper_subclass(cls, weight.shape, dtype=weight.dtype)
    def __init__(self, weight, function, kwargs):
        self.original_weight_tensor, self.input_quant_func, self.quant_kwargs = weight, function, kwargs
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return args[0] if func is torch.ops.aten.detach.default else NotImplemented
class FbgemmFp8Tensor:
    @classmethod
    def from_float(cls, x, activation_scale_ub=None): pass
for name, cls in (("torchao.quantization.linear_activation_quantized_tensor", LinearActivationQuantizedTensor),
                  ("torchao.dtypes.fbgemm_fp8_tensor", FbgemmFp8Tensor)):
    module = sys.modules[name] = types.ModuleType(name)
    cls.__module__ = name
    setattr(module, cls.__name__, cls)
def wrapped(i):
    weight = torch.arange(32.0).reshape(4, 8) * i
    return LinearActivationQuantizedTensor(weight, FbgemmFp8Tensor.from_float, {"activation_scale_ub": 0.25 * i})
torch.save({f"layer{i}.weight": wrapped(i) for i in (1, 2)}, sys.argv[1])
"""


def test_a_pickle_of_torchao_0_13_becomes_the_issues_file(tmp_path):
    """Its function is a method, which only --allow reads."""
    source, out, back = tmp_path / "a.pt", tmp_path / "b.safetensors", tmp_path / "c.pt"
    subprocess.run([sys.executable, "-c", TORCHAO_13, source], check=True)
    allow = ["--allow", "__builtin__.getattr"]
    assert "--allow __builtin__.getattr" in qcts("convert", source, out, code=1).stderr
    qcts("convert", source, out, *allow)
    described = metadata_of(out)
    assert json.loads(described.pop("tensor_names")) == ["layer1.weight", "layer2.weight"]
    assert described["layer2.weight:quant_kwargs"] == '{"activation_scale_ub": 0.5}'
    assert described["layer1.weight:input_quant_func"].endswith("FbgemmFp8Tensor.from_float")
    assert torch.equal(load_file(out)["layer2.weight:original_weight"], torch.arange(32.0).reshape(4, 8) * 2)
    found = json.loads(qcts("diff", source, out, "--json", *allow).stdout)
    assert found["e1"]["equal"] and found["e2"]["equal"] and not found["not_comparable"]
    qcts("convert", out, back)  # under the function's other name, which needs no --allow
    qcts("inspect", back)
    found = json.loads(qcts("diff", source, back, "--json", *allow).stdout)
    assert found["e2"]["equal"] and len(found["spelling"]) == 2


def read_by_the_issue(path):
    """Finds each tensor's weight and bound as load_tensor_subclass_dict of pytorch/ao#2338 does: by prefix, then by exact rest."""
    metadata, entries = metadata_of(path), load_file(path)
    found = {}
    for name in json.loads(metadata["tensor_names"]):
        own = {key[len(name) + 1 :]: value for key, value in metadata.items() if key.startswith(f"{name}:")}
        parts = {key[len(name) + 1 :]: value for key, value in entries.items() if key.startswith(f"{name}:")}
        assert own["tensor_type"] == "LinearActivationQuantizedTensor"
        found[name] = (parts["original_weight"], json.loads(own["quant_kwargs"])["activation_scale_ub"])
    return found


NAMES = ["a", "a:original_weight", "a:b", "a:b:tensor_type", "b"]


def file_of_names(path, **own):
    entries, metadata = {}, {"tensor_names": json.dumps(NAMES), **own}
    for index, name in enumerate(NAMES):
        entries[f"{name}:original_weight"] = torch.full((2, 4), float(index))
        metadata[f"{name}:tensor_type"] = "LinearActivationQuantizedTensor"
        metadata[f"{name}:input_quant_func"] = "torchao.dtypes.fbgemm_fp8_tensor.to_fbgemm_fp8"
        metadata[f"{name}:quant_kwargs"] = json.dumps({"activation_scale_ub": index / 4})
    save_file(entries, path, metadata=metadata)
    return path


def test_names_that_share_prefixes_are_written_as_the_issue_reads_them(tmp_path):
    path, back = file_of_names(tmp_path / "names.safetensors"), tmp_path / "back.safetensors"
    qcts("convert", path, tmp_path / "names.pt")
    qcts("convert", tmp_path / "names.pt", back)
    found = read_by_the_issue(back)
    assert list(found) == NAMES
    for index, (weight, bound) in enumerate(found.values()):
        assert bound == index / 4 and torch.equal(weight, torch.full((2, 4), float(index)))


def test_names_that_share_prefixes_are_read_as_the_issue_reads_them(tmp_path):
    path = file_of_names(tmp_path / "names.safetensors", **{"a:note": "kept", "author": "someone"})
    report, want = inspect(path), read_by_the_issue(path)
    assert report["metadata"] == {"a:note": "kept", "author": "someone"}
    assert [tensor["name"] for tensor in report["tensors"]] == NAMES
    dense = tmp_path / "dense.safetensors"
    qcts("dequantize", path, dense)
    for tensor in report["tensors"]:
        weight, bound = want[tensor["name"]]
        assert tensor["attributes"]["quant_kwargs"]["activation_scale_ub"] == bound
        assert torch.equal(load_file(dense)[tensor["name"]], weight)


def test_additional_metadata_is_shown_and_compared(tmp_path):
    source = golden_2338("beside_plain")
    assert inspect(source)["metadata"] == {"author": "qcts", "format": "pt"}
    assert 'metadata author = "qcts"' in qcts("inspect", source).stdout
    entries, metadata = load_file(source), metadata_of(source)
    for change in ({"author": "somebody"}, {"author": None}, {"more": "1"}):
        changed = {key: value for key, value in (metadata | change).items() if value is not None}
        save_file(entries, tmp_path / "b.safetensors", metadata=changed)
        found = json.loads(qcts("diff", source, tmp_path / "b.safetensors", "--json", code=1).stdout)
        assert [d["path"] for d in found["e2"]["differences"]] == [f"__metadata__.{next(iter(change))}"]


def test_the_issues_entries_are_read_beside_plain_ones(tmp_path):
    """A plain tensor in the issue's dialect is an entry with its own name, below which there may be others."""
    words = {"tensor_type": "LinearActivationQuantizedTensor", "quant_kwargs": "{}"}
    words["input_quant_func"] = "torchao.dtypes.fbgemm_fp8_tensor.to_fbgemm_fp8"
    path = write_safetensors(
        tmp_path / "f.safetensors",
        {"a": ("F32", [2], bytes(8)), "a:b:original_weight": ("F32", [2, 4], bytes(32))},
        {"tensor_names": '["a", "a:b"]'} | {f"a:b:{key}": value for key, value in words.items()},
    )
    assert [(t["name"], t["type"]) for t in inspect(path)["tensors"]] == [
        ("a", "Tensor"),
        ("a:b", "LinearActivationQuantizedTensor"),
    ]
