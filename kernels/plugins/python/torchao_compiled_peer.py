#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torchao under torch.compile as a provider, compiled as torchao documents it (torch_compile.py). Without a C++ compiler it declines every
problem: "not compiled". torchao_peer.py has the rest.

Kernels that quantize x are compiled with emulate_precision_casts. By default inductor keeps float32 where the scheme rounds to x's
dtype: in 16 rows of 4096 bfloat16, every scale and 1632 of 65536 codes differed, the codes by one (x = 0.345703125: 22 instead of 21);
with the option none did. In float16 it was 274 codes, and none. At n = 1024 a call took 1415 us instead of 1467. intx gets slower: one
row times 2048 x 2048 took 4361 us instead of 1703, but without the option 1675 of 2048 outputs differed from the eager ones, by up to
0.047.

Weight-only int8 becomes torch._weight_int8pack_mm (aten/src/ATen/native/cpu/int8mm_kernel.cpp). For bfloat16 it loads x and weights only
in whole aligned vectors and does not handle a remainder.
"""

from functools import lru_cache

import torch
import torch_compile
import torchao_peer

BLOCK = {"AVX512": 16}.get(torch.backends.cpu.get_cpu_capability(), 8)  # elements of k in a vector


NOT_COMPILED = torch_compile.why_not_compiled()


@lru_cache(maxsize=1)
def compiled(emulate_precision_casts, *problem):
    """Resets torch.compile for each problem, so that many shapes do not reach its limit."""
    torch._dynamo.reset()
    torch_compile.set_up(emulate_precision_casts)
    return torch.compile(torch.nn.functional.linear, dynamic=False, mode=torch_compile.MODE)


def linear_for(p):
    return compiled(p.activation != "weight_only", p.scheme_name, p.activation, p.threads, p.m, p.n, p.k, p.x_dtype, p.bias_dtype)


def why_not(p):
    if NOT_COMPILED:
        return NOT_COMPILED
    if p.scheme == "int8_row" and p.activation == "weight_only" and p.x_dtype == "bfloat16" and p.k % BLOCK:
        return f"torch._weight_int8pack_mm, which torch.compile calls here, reads past bfloat16 rows unless k is a multiple of {BLOCK}"
    return torchao_peer.why_not(p)


if __name__ == "__main__":
    torchao_peer.serve(torchao_peer.named("torchaocompiled"), "compiled", linear_for, why_not)
