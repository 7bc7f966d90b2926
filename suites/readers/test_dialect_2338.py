# SPDX-License-Identifier: BSD-3-Clause
"""Tests the commands on the safetensors format that pytorch/ao#2338 proposed: its spellings, arguments, bounds, and what is refused."""

import json

import pytest
from dialect_files import FIXTURES, GOLDENS, WEIGHT, read_safetensors, refusal, write_safetensors
from qcts_program import inspect, qcts

FBGEMM = "torchao.dtypes.fbgemm_fp8_tensor."


def issue_2338(path, names=("a.weight",), metadata=None, entries=None, **parts):
    """Writes a file in the dictionary form; `parts` replaces metadata fields of the first tensor, None drops one."""
    words = {
        "tensor_type": "LinearActivationQuantizedTensor",
        "input_quant_func": FBGEMM + "to_fbgemm_fp8",
        "quant_kwargs": '{"activation_scale_ub": 0.3}',
    }
    header = {"tensor_names": json.dumps(list(names))}
    body = {}
    for index, name in enumerate(names):
        own = words | parts if index == 0 else words
        header |= {f"{name}:{key}": value for key, value in own.items() if value is not None}
        body[f"{name}:original_weight"] = WEIGHT
    return write_safetensors(path, body | (entries or {}), header | (metadata or {}))


def test_2338_spellings_of_one_function_are_one(tmp_path):
    attributes = [
        inspect(issue_2338(tmp_path / "f.safetensors", input_quant_func=FBGEMM + name))["tensors"][0]["attributes"]
        for name in ("to_fbgemm_fp8", "FbgemmFp8Tensor.from_float")
    ]
    assert attributes[0] == attributes[1]
    assert attributes[0]["quant_kwargs"] == {"activation_scale_ub": 0.3}


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        0.25,
        True,
        "text",
        [1, None],
        {"_type": "torch.dtype", "_data": "float8_e4m3fn"},
        {"_type": "MappingType", "_data": "SYMMETRIC"},
        {"_type": "tuple", "_data": [1, {"_type": "torch.dtype", "_data": "int8"}]},
        {
            "_type": "function",
            "_data": "torchao.quantization.quant_api._int8_symm_per_token_reduced_range_quant",
        },
        {"_type": "PerRow", "_data": {"dim": -1}},
    ],
    ids=repr,
)
def test_2338_encodes_each_kind_of_argument(value, tmp_path):
    path = issue_2338(tmp_path / "f.safetensors", quant_kwargs=json.dumps({"x": value}))
    assert inspect(path)["tensors"][0]["attributes"]["quant_kwargs"] == {"x": value}


@pytest.mark.parametrize(
    ("kwargs", "scheme"),
    [
        ('{"activation_scale_ub": 0.3}', "float_weight"),
        ('{"activation_scale_ub": 2}', "float_weight"),
        ('{"activation_scale_ub": null}', "float_weight"),
        ("{}", "float_weight"),
        (None, "float_weight"),
        ('{"activation_scale_ub": "0.3"}', None),
        ('{"activation_scale_ub": 0.3, "x": 1}', None),
    ],
)
def test_2338_x_is_quantized_only_as_the_function_can(kwargs, scheme, tmp_path):
    path = issue_2338(tmp_path / "f.safetensors", quant_kwargs=kwargs)
    (tensor,) = inspect(path)["tensors"]
    assert (tensor["scheme"] or None) == scheme
    done = qcts("check", path).stdout
    assert ("numerics.dequantize" in done) == bool(scheme) and ("belong" in done) != bool(scheme)


@pytest.mark.parametrize(
    ("bound", "code", "words"),
    [
        ("-1", 1, "activation_scale_ub -1, but it is a number that is not negative"),
        ('"abc"', 1, 'activation_scale_ub "abc", but it is a number that is not negative'),
        ("[1]", 1, "activation_scale_ub [1], but"),
        ('"0.3"', 0, "it is a number or None"),
        ("0.25", 0, ""),
        ("null", 0, ""),
    ],
)
def test_2338_a_bound_that_no_kernel_takes_is_named(bound, code, words, tmp_path):
    path = issue_2338(tmp_path / "f.safetensors", quant_kwargs=f'{{"activation_scale_ub": {bound}}}')
    told = qcts("check", path, code=code).stderr
    assert words in told and ("activation_scale_ub" in told) == bool(words)
    # A negative bound is read then, and the verdict on values names it.
    assert words in qcts("check", path, "--lenient", code=int(bound == "-1")).stderr
    unknown = issue_2338(tmp_path / "g.safetensors", quant_kwargs='{"activation_scale_ub": 1, "x": 2}')
    assert "quant_kwargs has x 2" in qcts("check", unknown).stderr


REFUSED_2338 = {
    "function": ({"input_quant_func": "os.system"}, "'os.system' is not on the allow-list"),
    "function_in_kwargs": (
        {"quant_kwargs": '{"f": {"_type": "function", "_data": "os.system"}}'},
        "allow-list",
    ),
    "no_function": ({"input_quant_func": None}, "no input_quant_func"),
    "type": ({"tensor_type": "OtherTensor"}, "tensor_type OtherTensor"),
    "kwargs": ({"quant_kwargs": "[1]"}, "quant_kwargs is not an object"),
    "not_json": ({"quant_kwargs": "{"}, "not JSON"),
    "dtype": ({"quant_kwargs": '{"x": {"_type": "torch.dtype", "_data": "load"}}'}, "is not an element type"),
    "class": ({"quant_kwargs": '{"x": {"_type": "Popen", "_data": {}}}'}, "class Popen is not allowed"),
    "enum": ({"quant_kwargs": '{"x": {"_type": "MappingType", "_data": "SKEW"}}'}, "no member"),
    "colliding": (
        {
            "names": ("a", "b"),
            "metadata": {"tensor_names": '["a", "a:original_weight", "b"]'},
        },
        "a:original_weight: the entry a:original_weight already belongs",
    ),
    "twice": ({"metadata": {"tensor_names": '["a.weight", "a.weight"]'}}, "twice"),
    "own_entry": ({"entries": {"a.weight": WEIGHT}}, "has both its own entry"),
    "unknown_part": ({"entries": {"a.weight:scale": WEIGHT}}, "a.weight:scale: not a part"),
    "not_listed": ({"entries": {"b.weight:original_weight": WEIGHT}}, "b.weight:original_weight"),
    "no_weight": (
        {
            "metadata": {
                "tensor_names": '["a.weight", "b"]',
                "b:tensor_type": "LinearActivationQuantizedTensor",
            }
        },
        "no entry b:original_weight",
    ),
    "no_description": (
        {"metadata": {"tensor_names": '["a.weight", "b"]'}},
        "neither a tensor_type nor an entry",
    ),
}


@pytest.mark.parametrize("case", REFUSED_2338)
def test_2338_refuses_by_name(case, tmp_path):
    words, detail = REFUSED_2338[case]
    found = refusal(issue_2338(tmp_path / "f.safetensors", **words))
    assert found["class"] == "SubclassSchema" and detail in found["detail"], found


def test_2338_beside_torchaos_own_dialect_is_refused_with_both_names(tmp_path):
    found = refusal(issue_2338(tmp_path / "f.safetensors", metadata={"a.weight": '{"_type": "Tensor"}'}))
    assert "torchao_safetensors and torchao_2338" in found["detail"]


def test_2338_weight_stays_as_it_is(tmp_path):
    """The expected size: one dense float32 weight, 1.0 times."""
    path = FIXTURES / GOLDENS["torchao_0_13_0/ao_2338/dictionary"]["file"]
    found = inspect(path)
    assert found["dialect"] == "torchao_2338" and found["reduction"] == 1.0
    assert [tensor["name"] for tensor in found["tensors"]] == [
        "layer1.weight",
        "layer2.weight",
        "layer3.weight",
    ]
    assert [t["attributes"]["quant_kwargs"]["activation_scale_ub"] for t in found["tensors"]] == [
        0.3,
        0.5,
        0.7,
    ]
    qcts("dequantize", path, tmp_path / "dense.safetensors")
    entries, dense = read_safetensors(path), read_safetensors(tmp_path / "dense.safetensors")
    assert dense == {name.removesuffix(":original_weight"): value for name, value in entries.items()}


def test_2338_forms_beside_the_dictionary():
    single = inspect(FIXTURES / GOLDENS["torchao_0_13_0/ao_2338/single"]["file"])
    assert [(t["name"], t["type"]) for t in single["tensors"]] == [("tensor", "LinearActivationQuantizedTensor")]
    beside = inspect(FIXTURES / GOLDENS["torchao_0_13_0/ao_2338/beside_plain"]["file"])
    assert [(t["name"], t["type"]) for t in beside["tensors"]] == [
        ("layer1.weight", "LinearActivationQuantizedTensor"),
        ("norm.weight", "Tensor"),
        ("layer1.bias", "Tensor"),
    ]
