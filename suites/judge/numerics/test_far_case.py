# SPDX-License-Identifier: BSD-3-Clause
"""Tests that a linear on more than 2^32 bytes of codes passes with offsets of 64 bits and fails with fewer."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))

# One row of x that has few nonzero elements, so that a run takes a second.
SOURCE = r"""
#include "qcts_kernel.h"
#include <stdlib.h>
#include <string.h>
static float of_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
static const void* plane(const qcts_problem* p, const char* name) {
  for (uint32_t i = 0; i < p->n_planes; ++i)
    if (strcmp(p->planes[i].name, name) == 0) return p->planes[i].data;
  return NULL;
}
static qcts_status supports(const qcts_problem* p, char* why, size_t size) {
  if (strcmp(p->activation, "weight_only") == 0 && p->x_dtype == QCTS_BF16 && p->y_dtype == QCTS_BF16 && !p->bias) return QCTS_OK;
  strncpy(why, "only bfloat16 and no bias", size);
  return QCTS_UNSUPPORTED;
}
static int code_of(const void* codes, int64_t r, int64_t k, int64_t columns) {
#if NIBBLES
  uint8_t byte = ((const uint8_t*)codes)[(OFFSET)((OFFSET)r * (OFFSET)columns + (OFFSET)k) / 2];
  int code = k % 2 ? byte >> 4 : byte & 15;
  return code < 8 ? code : code - 16;
#else
  return ((const int8_t*)codes)[(OFFSET)((OFFSET)r * (OFFSET)columns + (OFFSET)k)];
#endif
}
static float scale_of(const qcts_problem* p, int64_t r, int64_t k) {
#if NIBBLES
  return of_bf16(((const uint16_t*)plane(p, "scale"))[k / 128 * p->n + r]);
#else
  return ((const float*)plane(p, "scale"))[r];
#endif
}
static qcts_status run(const qcts_problem* p) {
  const void* codes = plane(p, "qdata");
  for (int64_t m = 0; m < p->m; ++m) {
    const uint16_t* x = (const uint16_t*)((const char*)p->x + m * p->ldx_bytes);
    uint16_t* y = (uint16_t*)((char*)p->y + m * p->ldy_bytes);
    for (int64_t r = 0; r < p->n; ++r) {
      float sum = 0;
      for (int64_t k = 0; k < p->k; ++k)
        if (x[k]) sum += of_bf16(x[k]) * (float)code_of(codes, r, k, p->k) * scale_of(p, r, k);
      y[r] = to_bf16(sum);
    }
  }
  return QCTS_OK;
}
static qcts_kernel kernel;
static const qcts_kernel* table[] = {&kernel};
static qcts_provider provider;
QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t version) {
  (void)version;
  kernel.struct_size = sizeof kernel;
  kernel.op = QCTS_OP_LINEAR;
  kernel.scheme = SCHEME;
  kernel.variant = "plain";
  kernel.numerics.struct_size = sizeof kernel.numerics;
  kernel.numerics.accumulator = QCTS_F32;
  kernel.fused_sums.struct_size = sizeof kernel.fused_sums;
  kernel.supports = supports;
  kernel.run = run;
  provider.struct_size = sizeof provider;
  provider.abi_version = QCTS_ABI_VERSION;
  provider.name = "far";
  provider.version = "1";
  provider.n_kernels = 1;
  provider.kernels = table;
  return &provider;
}
"""

FAMILIES = {"int8_row": "int8_row", "int4_plain_sym_g128": "int4_plain"}


def verdict(folder, scheme, offset):
    source = folder / "far.c"
    source.write_text(SOURCE)
    words = [f'-DSCHEME="{FAMILIES[scheme]}"', f"-DOFFSET={offset}", f"-DNIBBLES={int(scheme.startswith('int4'))}"]
    library = folder / "far.so"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-I", ROOT / "kernels/abi", *words, source, "-o", library], check=True, timeout=120)
    case = f"numerics.linear/{scheme}/far_*"
    run = [QCTS, "run", "--plan", "full", "--filter", case, "--provider", library, "--out", folder / "out", "--no-progress"]
    subprocess.run(run, capture_output=True, timeout=600)
    with gzip.open(folder / "out/run.jsonl.gz", "rt") as record:
        found = [line for line in map(json.loads, record) if "case_id" in line]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("scheme", FAMILIES)
def test_offsets_of_64_bits_are_right(tmp_path, scheme):
    said = verdict(tmp_path, scheme, "int64_t")
    assert said["status"] == "pass", said


# Half bytes are counted one by one: their number passes 2^32 in the middle of the codes.
@pytest.mark.parametrize("scheme, edge", [("int8_row", "beyond byte 2^32"), ("int4_plain_sym_g128", "beyond code 2^32")])
def test_offsets_of_32_bits_are_wrong(tmp_path, scheme, edge):
    said = verdict(tmp_path, scheme, "uint32_t")
    assert said["status"] == "fail" and edge in said["reason"] and said["reason"].endswith("kept in 32 bits"), said


@pytest.mark.parametrize("scheme", FAMILIES)
def test_a_negative_offset_costs_one_case(tmp_path, scheme):
    said = verdict(tmp_path, scheme, "int32_t")
    assert said["status"] == "crash" and "SIGSEGV" in said["reason"], said
