# SPDX-License-Identifier: BSD-3-Clause
"""Records dot products of MMA-Sim (github.com/microsoft/MMA-Sim, MIT), a model of tensor cores, for simt_matrix_test.cc.

python kernels/emulated/make_mma_sim_vectors.py FOLDER > kernels/emulated/mma_sim_vectors.txt

FOLDER is a checkout of COMMIT. Needs PyTorch."""

import sys
from pathlib import Path

import torch

COMMIT = "c78513835c8b2ae61b35062afce4c4255bc6901c"
SEED = 41
PER_MODEL = 100
MODELS = [
    ("ampere_bf16", "mma", "Ampere", "m16n8k16.f32.bf16.bf16.f32"),
    ("ampere_f16", "mma", "Ampere", "m16n8k16.f32.f16.f16.f32"),
    ("hopper_bf16", "mma", "Hopper", "m16n8k16.f32.bf16.bf16.f32"),
    ("hopper_f16", "mma", "Hopper", "m16n8k16.f32.f16.f16.f32"),
    ("hopper_wgmma_e4m3", "wgmma", "Hopper", "m64n8k32.f32.e4m3.e4m3"),
]
VIEWS = {2: (torch.int16, 0xFFFF), 1: (torch.int8, 0xFF), 4: (torch.int32, 0xFFFFFFFF)}


def bits(tensor):
    view, mask = VIEWS[tensor.element_size()]
    return [value & mask for value in tensor.contiguous().view(view).flatten().tolist()]


def operand(rows, k, dtype, generator):
    """Rows of like size, of sizes far apart, with zeros and subnormals, and of arbitrary bits."""
    kinds = torch.randint(0, 4, (rows, 1), generator=generator)
    like = torch.randn(rows, k, generator=generator)
    apart = like * 2.0 ** torch.randint(-12, 12, (rows, k), generator=generator)
    small = like * 2.0 ** torch.randint(-22, -14, (rows, k), generator=generator) * torch.randint(0, 2, (rows, k), generator=generator)
    values = torch.where(kinds == 0, like, torch.where(kinds == 1, apart, small))
    if dtype == torch.float8_e4m3fn:
        values = values.clamp(-448, 448)
    values = values.to(dtype)
    size = values.element_size()
    view = VIEWS[size][0]
    wild = torch.randint(-(2 ** (8 * size - 1)), 2 ** (8 * size - 1), (rows, k), generator=generator).to(view).view(dtype)
    return torch.where(kinds == 3, wild.view(view), values.view(view)).view(dtype)


def main():
    sys.path.insert(0, str(Path(sys.argv[1])))
    from mmasim.simulator import nv_ptx

    print(f"# MMA-Sim {COMMIT}, seed {SEED}, {Path(__file__).name}: model, bits of c, of the sum, of a and of b")
    generator = torch.Generator().manual_seed(SEED)
    for name, kind, arch, qualifier in MODELS:
        multiply = getattr(nv_ptx, kind)(arch, qualifier)
        a = operand(multiply.m, multiply.k, multiply.a_type, generator)
        b = operand(multiply.n, multiply.k, multiply.b_type, generator)
        sizes = 2.0 ** torch.randint(-8, 12, (multiply.m, multiply.n), generator=generator)
        c = (torch.randn(multiply.m, multiply.n, generator=generator) * sizes).to(torch.float32)
        d = multiply(a, b.T, c)
        for i in range(PER_MODEL):
            row, column = i % multiply.m, (i // multiply.m + i) % multiply.n
            words = [c[row, column], d[row, column], a[row], b[column]]
            print(name, " ".join(f"{value:x}" for word in words for value in bits(word)))


if __name__ == "__main__":
    main()
