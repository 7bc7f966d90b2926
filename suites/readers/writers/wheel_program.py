# SPDX-License-Identifier: BSD-3-Clause
"""Loads files of `qcts quantize` with one wheel of torchao, and compares them with the wheel's own weights.

    PYTHONPATH=build/goldens-env/torchao-VERSION python wheel_program.py FOLDER RECIPE...

FOLDER holds float.pt, a state dict of two Linear layers, and RECIPE.pt for each recipe. The last line printed is JSON:
recipe -> what differs. torchao 0.16 and later do not quantize to int4 in these classes: their files are only loaded.
"""

import json
import pickle
import sys
from pathlib import Path

import torch
from torch.nn.functional import linear

MAKE = Path(__file__).resolve().parents[3] / "fixtures/make"
sys.path += [str(MAKE), str(MAKE / "shared")]
import old_policies as policies  # noqa: E402
import old_torchao as old  # noqa: E402
from torchao_old import Packs  # noqa: E402

CONFIGS = {
    "int8_row_v1 weight_only": old.int8wo,
    "int8_row_v1 dyn_row_sym_127": old.int8dq,
    "int8_row_v1 dyn_row_asym": lambda: old.int8dq(act_mapping_type=old.mapping("ASYMMETRIC")),
    "int8_g32_v1 weight_only": lambda: old.int8wo(group_size=32),
    "int4_tinygemm_g128 tile_packed_4d_v1": lambda: old.int4wo_tiles(128),
    "int4_tinygemm_g32 tile_packed_4d_v1": lambda: old.int4wo_tiles(32),
    "int4_tinygemm_g32 cpu_avx2": lambda: old.int4wo_cpu(32),
    "int4_weight_only": lambda: old.int4wo_tiles(128),
    "int8_weight_only": old.int8wo,
    "int8_dynamic_activation_int8_weight": old.int8dq,
    "int8_dynamic_activation_int4_weight": lambda: old.int8da_int4w(32),
    "int8_dynamic_activation_int4_weight g128": lambda: old.int8da_int4w(128),
    "int8_dynamic_activation_int4_weight symmetric x": lambda: old.int8da_int4w(32, act_mapping_type=old.mapping("SYMMETRIC")),
    "int8_dynamic_activation_int4_weight asymmetric": lambda: old.int8da_int4w(32, mapping_type=old.mapping("ASYMMETRIC")),
    "int8_dynamic_activation_int4_weight cutlass": lambda: old.int8da_int4w(
        -1,
        mapping_type=old.mapping("SYMMETRIC"),
        act_mapping_type=old.mapping("SYMMETRIC"),
        layout=old.layout("CutlassInt4PackedLayout")(),
    ),
    "int4_dynamic_activation_int4_weight": old.int4da_int4w,
    "float8_weight_only": old.fp8wo,
    "float8_weight_only e5m2": lambda: old.attempt(
        lambda: old.quant_api.Float8WeightOnlyConfig(torch.float8_e5m2, version=1),
        lambda: old.quant_api.Float8WeightOnlyConfig(torch.float8_e5m2),
    ),
    "float8_dynamic_activation_float8_weight": old.fp8dq,
    "float8_dynamic_activation_float8_weight rows": lambda: old.fp8dq("PerRow"),
    "float8_static_activation_float8_weight": lambda: old.fp8static(torch.tensor(7 / 1024)),
    "IntxWeightOnlyConfig": lambda: old.quant_api.IntxWeightOnlyConfig(version=1),
    "IntxWeightOnlyConfig int4 g32": lambda: old.intx(torch.int4, 32),
    "IntxWeightOnlyConfig int4 g32 float32": lambda: old.quant_api.IntxWeightOnlyConfig(
        weight_dtype=torch.int4, granularity=old.per_group(32), scale_dtype=torch.float32, version=1
    ),
    "Int8DynamicActivationIntxWeightConfig": lambda: old.quant_api.Int8DynamicActivationIntxWeightConfig(),
    "Int8DynamicActivationIntxWeightConfig int4": lambda: old.int8da_intx(torch.int4, 32),
}
NEEDS_A_GPU = ("tile", "int4_weight_only", "cutlass", "int4_dynamic", "float8_dynamic", "float8_static")


def parts(value, name):
    """Yields name and value of everything that a tensor holds, without the tensors that hold others."""
    yield f"class of {name}", type(value)
    if isinstance(value, torch.Tensor) and type(value) is not torch.Tensor:
        for key, held in vars(value).items():
            yield from parts(held, f"{name}.{key}")
    else:
        yield name, value


def bytes_of(tensor):
    return tensor.contiguous().flatten().view(torch.uint8)


def same(a, b):
    tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    if tensors:
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bytes_of(a), bytes_of(b))
    return type(a) is type(b) and a == b


def quantized_model(recipe, floats):
    model = torch.nn.Sequential(*(torch.nn.Linear(*reversed(floats[f"{i}.weight"].shape), bias=i == 1) for i in (0, 1)))
    model.to(torch.bfloat16).load_state_dict(floats)
    with Packs(), policies.Cutlass().in_place():
        old.quantize_(model, CONFIGS[recipe]())
    return model


def loaded(path, own):
    """Loads with weights_only, where that takes the wheel's own file `own`: not every function of x is allowed."""
    try:
        torch.load(own, weights_only=True)
    except pickle.UnpicklingError:
        return torch.load(path, weights_only=False)
    return torch.load(path, weights_only=True)


def differences(recipe, model, ours):
    for layer in (0, 1):
        own, made = model[layer].weight.data, ours[f"{layer}.weight"]
        want, got = dict(parts(own, "weight")), dict(parts(made, "weight"))
        yield from (name for name in want.keys() | got.keys() if not same(want.get(name), got.get(name)))
        x = torch.linspace(-3, 3, 5 * made.shape[1]).reshape(5, -1).to(torch.bfloat16)
        if any(word in recipe for word in NEEDS_A_GPU):
            continue
        if not torch.equal(bytes_of(linear(x, own)), bytes_of(linear(x, made))):
            yield "y"


if __name__ == "__main__":
    old.open_gates()
    folder, recipes = Path(sys.argv[1]), sys.argv[2:]
    floats, found = torch.load(folder / "float.pt"), {}
    for recipe in recipes:
        if recipe.startswith("int4_tiny") and old.VERSION >= (0, 16, 0):
            torch.load(folder / f"{recipe}.pt", weights_only=True)
            found[recipe] = []
            continue
        model = quantized_model(recipe, floats)
        torch.save(model.state_dict(), folder / "own.pt")
        ours = loaded(folder / f"{recipe}.pt", folder / "own.pt")
        found[recipe] = sorted(differences(recipe, model, ours))
    print(json.dumps(found))
