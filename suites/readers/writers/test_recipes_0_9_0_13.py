# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts quantize --scheme RECIPE` for every recipe of quantization/quant_api.py in torchao 0.9.0 and 0.13.0: its files are the
wheels' own, or the message names the class that is read and not written.
"""

import json
import os
import subprocess
import sys

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, ROOT, inspect, qcts
from test_first_recipes import float_file, pickle_of, pinned_envs

torch = pytest.importorskip("torch", reason="torch is not installed")

INT4 = ["--scheme", "intx_b4_g32_sym", "--activation"]
STATIC = ["--activation-scale", str(7 / 1024)]
# The recipes under the names of their functions, or of the configurations that have none, with the arguments of
# old_torchao.py's cases in wheel_program.py: name of the case -> words, for each version.
WRITTEN = {
    "0.13.0": {
        "int4_weight_only": ["--scheme", "int4_weight_only"],
        "int8_weight_only": ["--scheme", "int8_weight_only"],
        "int8_dynamic_activation_int8_weight": ["--scheme", "int8_dynamic_activation_int8_weight"],
        "int8_dynamic_activation_int4_weight": ["--scheme", "int8_dynamic_activation_int4_weight"],
        "int8_dynamic_activation_int4_weight g128": ["--scheme", "intx_b4_g128_sym", "--activation", "dyn_token_asym_s32"],
        "int8_dynamic_activation_int4_weight symmetric x": [*INT4, "dyn_token_sym_127_s32"],
        "int8_dynamic_activation_int4_weight asymmetric": ["--scheme", "intx_b4_g32_asym", "--activation", "dyn_token_asym_s32"],
        "int8_dynamic_activation_int4_weight cutlass": ["--scheme", "intx_b4_axis_s32_sym", "--activation", "dyn_token_sym_s32"],
        "int4_dynamic_activation_int4_weight": ["--scheme", "int4_dynamic_activation_int4_weight"],
        "float8_weight_only": ["--scheme", "float8_weight_only"],
        "float8_weight_only e5m2": ["--scheme", "fp8_e5m2_row"],
        "float8_dynamic_activation_float8_weight": ["--scheme", "float8_dynamic_activation_float8_weight"],
        "float8_dynamic_activation_float8_weight rows": ["--scheme", "fp8_row", "--activation", "dyn_row"],
        "float8_static_activation_float8_weight": ["--scheme", "float8_static_activation_float8_weight", *STATIC],
        "IntxWeightOnlyConfig": ["--scheme", "IntxWeightOnlyConfig"],
        "IntxWeightOnlyConfig int4 g32": ["--scheme", "intx_b4_g32_sym"],
        "IntxWeightOnlyConfig int4 g32 float32": ["--scheme", "intx_b4_g32_s32_sym"],
        "Int8DynamicActivationIntxWeightConfig": ["--scheme", "Int8DynamicActivationIntxWeightConfig"],
        "Int8DynamicActivationIntxWeightConfig int4": [*INT4, "dyn_token_asym_s32", "--as", "torchao_v1_qdq"],
    },
    "0.9.0": {
        "int4_weight_only": ["--scheme", "int4_weight_only"],
        "int8_weight_only": ["--scheme", "int8_weight_only"],
        "int8_dynamic_activation_int8_weight": ["--scheme", "int8_dynamic_activation_int8_weight"],
        "int8_dynamic_activation_int4_weight": ["--scheme", "int8_dynamic_activation_int4_weight"],
        "int8_dynamic_activation_int4_weight g128": ["--scheme", "intx_b4_g128_sym", "--activation", "dyn_token_asym_s32"],
        "int8_dynamic_activation_int4_weight symmetric x": [*INT4, "dyn_token_sym_127_s32"],
        "int8_dynamic_activation_int4_weight asymmetric": ["--scheme", "intx_b4_g32_asym", "--activation", "dyn_token_asym_s32"],
        "int8_dynamic_activation_int4_weight cutlass": ["--scheme", "intx_b4_axis_sym", "--activation", "dyn_token_sym_127"],
        "int4_dynamic_activation_int4_weight": ["--scheme", "int4_dynamic_activation_int4_weight"],
        "float8_weight_only": ["--scheme", "float8_weight_only"],
        "float8_weight_only e5m2": ["--scheme", "fp8_e5m2_row"],
        "float8_dynamic_activation_float8_weight": ["--scheme", "float8_dynamic_activation_float8_weight"],
        "float8_dynamic_activation_float8_weight rows": ["--scheme", "fp8_row", "--activation", "dyn_row_recip"],
        "float8_static_activation_float8_weight": ["--scheme", "float8_static_activation_float8_weight", *STATIC],
    },
}
READ_ONLY = {
    "uintx_weight_only": "AffineQuantizedTensor with UintxAQTTensorImpl",
    "fpx_weight_only": "AffineQuantizedTensor with FloatxTensorCoreAQTTensorImpl",
    "gemlite_uintx_weight_only": "AffineQuantizedTensor with GemliteAQTTensorImpl",
    "int8_dynamic_activation_int8_semi_sparse_weight": "LinearActivationQuantizedTensor with SemiSparseAQTTensorImpl",
    "Float8DynamicActivationFloat8SemiSparseWeightConfig": "LinearActivationQuantizedTensor with CutlassSemiSparseTensorImpl",
    "Float8DynamicActivationInt4WeightConfig": "Int4PreshuffledTensor",
    "FbgemmConfig": "FbgemmFp8Tensor, Int4Tensor or Int4PreshuffledTensor",
}
# Names in quant_api.py that are not recipes for a weight.
NO_RECIPE = {
    "quantize_", "insert_observers_", "swap_conv2d_1x1_to_linear", "change_linear_weights_to_int8_dqtensors",
    "change_linear_weights_to_int8_woqtensors", "change_linear_weights_to_int4_woqtensors", "autoquant",
    "intx_quantization_aware_training",
}  # fmt: skip
# Goldens of these recipes -> the words, where wheels wrote them.
GOLDEN_WORDS = {
    "fp8wo": "float8_weight_only",
    "fp8dq": "float8_dynamic_activation_float8_weight",
    "fp8dq_row": "float8_dynamic_activation_float8_weight rows",
    "fp8st": "float8_static_activation_float8_weight",
    "int8da_int4w": "int8_dynamic_activation_int4_weight",
    "int8da_int4w_sym": "int8_dynamic_activation_int4_weight symmetric x",
    "int8da_int4w_cutlass": "int8_dynamic_activation_int4_weight cutlass",
    "int4da_int4w": "int4_dynamic_activation_int4_weight",
    "intx4": "IntxWeightOnlyConfig int4 g32",
    "int8da_intx4": "Int8DynamicActivationIntxWeightConfig int4",
}


def words_for(version, recipe):
    words = WRITTEN[version][recipe]
    return words if "--as" in words else [*words, "--as", "torchao_v1" if version == "0.13.0" else "torchao_0.9"]


def wheel(version):
    folder = ROOT / f"build/goldens-env/torchao-{version}"
    if not folder.exists():
        pytest.skip(f"torchao {version} is not in build/goldens-env, where scripts/make_goldens puts it")
    return {**os.environ, **pinned_envs.PINNED, "PYTHONPATH": str(folder), "ATEN_CPU_CAPABILITY": "avx2"}


GOLDEN_RECIPES = [
    (f"torchao_{version.replace('.', '_')}/{name}", version, recipe)
    for version in WRITTEN
    for name, recipe in GOLDEN_WORDS.items()
    if f"torchao_{version.replace('.', '_')}/{name}" in GOLDENS
]


def test_goldens_hold_the_new_recipes():
    assert {recipe for _, _, recipe in GOLDEN_RECIPES} == set(GOLDEN_WORDS.values())


@pytest.mark.parametrize(("id", "version", "recipe"), GOLDEN_RECIPES)
def test_the_pickle_is_the_wheels_own(id, version, recipe, tmp_path):
    """Classes, attributes, their order and what they share, of any weights; --like finds the same form."""
    source, target = tmp_path / "float/model.pt", tmp_path / "model.pt"
    golden = FIXTURES / GOLDENS[id]["file"]
    float_file(id, source)
    qcts("quantize", *words_for(version, recipe), source, target)
    assert pickle_of(target) == pickle_of(golden)
    if "static" not in recipe:  # the scale of x is not copied
        qcts("quantize", "--like", golden, source, target)
        assert pickle_of(target) == pickle_of(golden)


@pytest.mark.parametrize("version", WRITTEN)
def test_the_wheel_has_no_other_recipe(version):
    """Each function and configuration of quant_api.py is written, or named as read."""
    program = (
        "import sys; sys.path.append(sys.argv[1]); import inspect, json, old_torchao as old\n"
        "names = {n for n, v in vars(old.quant_api).items() if not n.startswith('_') and (inspect.isfunction(v) or inspect.isclass(v))"
        " and v.__module__ == old.quant_api.__name__}\n"
        "print(json.dumps({n: getattr(old.quant_api, n).__name__ for n in names}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, ROOT / "fixtures/make"], env=wheel(version), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    known = {recipe.split()[0] for recipe in WRITTEN["0.13.0"]} | set(READ_ONLY)
    configs = {config for name, config in found.items() if name in known}  # a function is often its configuration
    assert set(found) - known - configs - NO_RECIPE <= {"AOBaseConfig", "ModuleFqnToConfig", "KernelPreference"}


@pytest.mark.parametrize("version", WRITTEN)
def test_the_wheel_takes_the_file_for_its_own(version, tmp_path):
    """Loads each file with weights_only; compares every part with its own weights, and its product where a CPU has one."""
    environ = wheel(version)
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(256, 64, bias=False), torch.nn.Linear(128, 32)).to(torch.bfloat16)
    with torch.no_grad():
        model[0].weight[0] = 0  # minimum scales, and a float8 row without one
        model[0].weight[1] *= 2.0**-6
        model[1].weight[2:4, :32] *= 2.0**-14
    torch.save(model.state_dict(), tmp_path / "float.pt")
    for recipe in WRITTEN[version]:
        qcts("quantize", *words_for(version, recipe), tmp_path / "float.pt", tmp_path / f"{recipe}.pt")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", ROOT / "suites/readers/writers/wheel_program.py", tmp_path, *WRITTEN[version]],
        env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(WRITTEN[version], [])


@pytest.mark.parametrize("recipe", READ_ONLY)
def test_a_recipe_without_a_writer_names_its_class(recipe, tmp_path):
    torch.save({"a.weight": torch.ones(16, 64)}, tmp_path / "w.pt")
    said = qcts("quantize", "--scheme", recipe, tmp_path / "w.pt", tmp_path / "q.pt", code=2).stderr
    assert f"{recipe} makes {READ_ONLY[recipe]}, which qcts can read but not write" in said
    assert not (tmp_path / "q.pt").exists()


@pytest.mark.parametrize(
    ("config", "first", "today"),
    [
        ("Int8WeightOnlyConfig", "int8_weight_only", "int8_row"),
        ("Int4WeightOnlyConfig", "int4_weight_only", "int4_plain_g128"),
        ("Float8WeightOnlyConfig", "float8_weight_only", "fp8_row"),
    ],
)
def test_a_configuration_of_two_versions_names_both(config, first, today, tmp_path):
    torch.save({"a.weight": torch.ones(16, 128)}, tmp_path / "w.pt")
    said = qcts("quantize", "--scheme", config, tmp_path / "w.pt", tmp_path / "q.pt", code=2).stderr
    assert f"version 1 is --scheme {first}, version 2 --scheme {today}" in said


def test_a_like_file_without_a_writer_names_its_class(tmp_path):
    torch.save({"0.weight": torch.ones(16, 64)}, tmp_path / "w.pt")
    like = FIXTURES / GOLDENS["torchao_0_9_0/uintx7"]["file"]
    said = qcts("quantize", "--like", like, tmp_path / "w.pt", tmp_path / "q.pt", code=1).stderr
    assert "0.weight is AffineQuantizedTensor with UintxAQTTensorImpl, which qcts can read but not write" in said


@pytest.mark.parametrize("version", WRITTEN)
@pytest.mark.parametrize("recipe", sorted({recipe for written in WRITTEN.values() for recipe in written}))
def test_what_is_written_is_read_back(version, recipe, tmp_path):
    """check and inspect find the scheme that was asked for, and the weight has a value."""
    if recipe not in WRITTEN[version]:
        return
    torch.save({"0.weight": torch.randn(32, 256).to(torch.bfloat16)}, tmp_path / "w.pt")
    told = json.loads(qcts("quantize", *words_for(version, recipe), tmp_path / "w.pt", tmp_path / "q.pt", "--json").stdout)
    qcts("check", tmp_path / "q.pt")
    (tensor,) = inspect(tmp_path / "q.pt")["tensors"]
    assert tensor["scheme"] == told["scheme"].removesuffix("_v1")
    assert subprocess.run([BIN, "dequantize", tmp_path / "q.pt", tmp_path / "d.safetensors"], capture_output=True).returncode == 0


def test_float8_rows_need_what_the_wheels_need(tmp_path):
    """Sides that 16 divides, and bfloat16 for rows; weight_only takes all."""
    torch.save({"a.weight": torch.ones(24, 32, dtype=torch.bfloat16), "b.weight": torch.ones(16, 32)}, tmp_path / "w.pt")
    words = ["--as", "torchao_v1", tmp_path / "w.pt", tmp_path / "q.pt"]
    said = qcts("quantize", "--scheme", "fp8_row", "--activation", "dyn_row", *words, code=3)
    assert "unless 16 divides both its sides" in said.stdout and "only bfloat16 weights to rows" in said.stdout
    assert "2 of 2" in qcts("quantize", "--scheme", "float8_weight_only", *words).stdout
