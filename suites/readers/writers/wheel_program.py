# SPDX-License-Identifier: BSD-3-Clause
"""Loads files of `qcts quantize` with one wheel of torchao, and compares them with the wheel's own weights.

    PYTHONPATH=build/goldens-env/torchao-VERSION python wheel_program.py FOLDER RECIPE...

FOLDER holds float.pt, a state dict of two Linear layers, and RECIPE.pt for each recipe. The last line printed is JSON:
recipe -> what differs. torchao 0.16 and later do not quantize to int4 in these classes: their files are only loaded.
"""

import json
import sys
from pathlib import Path

import torch
from torch.nn.functional import linear

sys.path.append(str(Path(__file__).resolve().parents[3] / "fixtures/make"))
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
}


def parts(value, name):
    """Yields name and value of everything that a tensor holds, without the tensors that hold others."""
    yield f"class of {name}", type(value)
    if isinstance(value, torch.Tensor) and type(value) is not torch.Tensor:
        for key, held in vars(value).items():
            yield from parts(held, f"{name}.{key}")
    else:
        yield name, value


def same(a, b):
    tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    return a.dtype == b.dtype and torch.equal(a, b) if tensors else type(a) is type(b) and a == b


def differences(recipe, floats, ours):
    model = torch.nn.Sequential(*(torch.nn.Linear(*reversed(floats[f"{i}.weight"].shape), bias=i == 1) for i in (0, 1)))
    model.to(torch.bfloat16).load_state_dict(floats)
    with Packs():
        old.quantize_(model, CONFIGS[recipe]())
    for layer in (0, 1):
        own, made = model[layer].weight.data, ours[f"{layer}.weight"]
        want, got = dict(parts(own, "weight")), dict(parts(made, "weight"))
        yield from (name for name in want.keys() | got.keys() if not same(want.get(name), got.get(name)))
        x = torch.linspace(-3, 3, 5 * made.shape[1]).reshape(5, -1).to(torch.bfloat16)
        if "tile" not in recipe and not torch.equal(linear(x, own), linear(x, made)):  # a GPU multiplies tiles
            yield "y"


if __name__ == "__main__":
    old.open_gates()
    folder, recipes = Path(sys.argv[1]), sys.argv[2:]
    floats, found = torch.load(folder / "float.pt"), {}
    for recipe in recipes:
        ours = torch.load(folder / f"{recipe}.pt", weights_only=True)
        alone = recipe.startswith("int4") and old.VERSION >= (0, 16, 0)
        found[recipe] = [] if alone else sorted(differences(recipe, floats, ours))
    print(json.dumps(found))
