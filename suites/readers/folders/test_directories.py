# SPDX-License-Identifier: BSD-3-Clause
"""Tests directories that transformers writes, with config.json, and loads ours with transformers."""

import json
import shutil

import pytest
from dialect_files import FIXTURES, GOLDENS, WEIGHT, write_safetensors
from qcts_program import inspect, qcts

LLAMAS = [id for id in GOLDENS if id.startswith("transformers_") and "peer" not in GOLDENS[id]["flags"]]
INT8_LLAMA = "transformers_5_23_0/int8_row/llama"


def changed_directory(id, tmp_path, change):
    """Copies the golden's directory and applies `change` to its config.json."""
    folder = tmp_path / "model"
    shutil.copytree(FIXTURES / GOLDENS[id]["file"], folder)
    config = json.loads((folder / "config.json").read_text())
    change(config, config["quantization_config"])
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("id", LLAMAS)
def test_config_says_what_the_payload_is(id):
    """Protects: both forms of quantization_config are read, and files from transformers are never refused as contradictory."""
    said = inspect(FIXTURES / GOLDENS[id]["file"])["config"]
    assert said["dtype"] == "bfloat16"
    assert said["quantization"]["name"] in (
        "Int8WeightOnlyConfig",
        "int8_weight_only",
        "Int8DynamicActivationInt8WeightConfig",
        "Float8WeightOnlyConfig",
        "Int4WeightOnlyConfig",
        "IntxWeightOnlyConfig",
    )


def rename(name):
    def change(config, quantization):
        quantization["quant_type"] = {"default": {"_type": name, "_version": 2, "_data": {}}}

    return change


def as_string(name, **kwargs):
    def change(config, quantization):
        quantization["quant_type"], quantization["quant_type_kwargs"] = name, kwargs

    return change


CONTRADICTIONS = {
    "class": (INT8_LLAMA, rename("Float8WeightOnlyConfig"), "config.json says Float8WeightOnlyConfig, but"),
    "string": (
        INT8_LLAMA,
        as_string("int4_weight_only", group_size=128),
        "config.json says int4_weight_only, but",
    ),
    "activations": (
        INT8_LLAMA,
        rename("Int8DynamicActivationInt8WeightConfig"),
        "does not quantize its activations",
    ),
    "float8_activations": (
        "transformers_4_57_1/int4wo",
        rename("Float8DynamicActivationInt4WeightConfig"),
        "does not quantize its activations",
    ),
    "group": (
        "transformers_4_57_1/int4wo",
        as_string("int4_weight_only", group_size=64),
        "has groups of 128, not 64",
    ),
    "module": (
        INT8_LLAMA,
        lambda config, quantization: quantization.update(modules_to_not_convert=["self_attn.q_proj"]),
        "config.json does not convert self_attn.q_proj, but",
    ),
    "neither": (
        INT8_LLAMA,
        lambda config, quantization: quantization.update(quant_type=7),
        "quant_type is neither a string nor an object",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_config_that_contradicts_the_payload_is_reported_by_name(case, tmp_path):
    """Protects: what can be read is shown and judged; a weight that may mean something else is not converted."""
    id, change, detail = CONTRADICTIONS[case]
    folder, out = changed_directory(id, tmp_path, change), tmp_path / "out.safetensors"
    done = qcts("inspect", folder, "--json")
    told = json.loads(done.stdout)
    assert any(f["kind"] == "contradiction" and detail in f["text"] for f in told["findings"]), told["findings"]
    assert told["tensors"] and f"qcts: finding: {told['findings'][0]['text'][:20]}" in done.stderr
    checked = qcts("check", folder, code=1, COLUMNS="1000").stdout
    assert detail in checked and "pass           size.file" in checked
    assert detail in qcts("dequantize", folder, out, code=1).stderr and not out.exists()
    assert detail in qcts("inspect", folder, "--lenient").stderr
    qcts("dequantize", "--lenient", folder, out)


def test_the_same_configuration_as_a_string_contradicts_nothing(tmp_path):
    folder = changed_directory(INT8_LLAMA, tmp_path, as_string("int8_weight_only"))
    assert inspect(folder)["config"]["quantization"] == {
        "name": "int8_weight_only",
        "arguments": {},
        "not_converted": [],
    }


def test_a_quantized_configuration_of_a_float_model_fails_the_check(tmp_path):
    folder = tmp_path / "float"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {"a.weight": WEIGHT})
    said = {"quant_method": "torchao", "quant_type": "int8_weight_only"}
    (folder / "config.json").write_text(json.dumps({"quantization_config": said}))
    assert "no tensor is quantized" in qcts("check", folder, code=1, COLUMNS="1000").stdout
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)


def test_another_dtype_than_the_configs_is_a_warning_and_stored_dtypes_stay(tmp_path):
    folder = changed_directory(INT8_LLAMA, tmp_path, lambda config, _: config.update(dtype="float16"))
    done = qcts("inspect", folder, "--json")
    assert "config.json names float16, but" in done.stderr
    assert {tensor["dtype"] for tensor in json.loads(done.stdout)["tensors"]} == {"bfloat16"}


@pytest.mark.parametrize("id", LLAMAS)
def test_transformers_loads_what_dequantize_writes(id, tmp_path):
    """Protects: with the dequantized file transformers generates the same greedy tokens as with weights that the writer
    dequantized itself.
    """
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from safetensors.torch import load_file

    entry = GOLDENS[id]
    layouts = [tensor["layout"] for tensor in entry["tensors"] if tensor["layout"].startswith("cpu_")]
    words = ["--cpu-pack", layouts[0].removeprefix("cpu_")] if layouts else []
    folder = tmp_path / "dense"
    folder.mkdir()
    qcts("dequantize", FIXTURES / entry["file"], folder / "model.safetensors", *words)
    config = json.loads((FIXTURES / entry["file"] / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))
    loaded = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    recorded = load_file(FIXTURES / entry["expected"])
    twin = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    changed = 0
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            if f"{name}|dequant" in recorded:
                parameter.copy_(recorded[f"{name}|dequant"])
                changed += 1
    assert changed
    prompt = torch.tensor([[1 + 7 * i % 47 for i in range(6)]])
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    assert torch.equal(loaded.generate(prompt, **options), twin.generate(prompt, **options))
