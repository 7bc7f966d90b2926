// SPDX-License-Identifier: BSD-3-Clause
/* A provider with one right kernel, dequantize of int8_row, for tests of what a run says of a provider. Each
 * macro changes what it declines or promises:
 *   DECLINES=...  a C expression over `p`, the problem; nonzero declines it
 *   FAMILY=...    the family of schemes that it is offered for, instead of int8_row
 *   WRONG         one element is wrong
 *   PROFILE=...   the text of qcts_provider.profile
 */
#include <qcts_kernel.h>
#include <stdio.h>
#include <string.h>

#ifndef DECLINES
#define DECLINES 0
#endif
#ifndef FAMILY
#define FAMILY "int8_row"
#endif
#ifndef PROFILE
#define PROFILE NULL
#endif

static const void* data_of(const qcts_problem* p, const char* name) {
  for (uint32_t i = 0; i < p->n_planes; ++i)
    if (strcmp(p->planes[i].name, name) == 0) return p->planes[i].data;
  return NULL;
}

static qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  if (p->device == 0 && !(DECLINES)) return QCTS_OK;
  snprintf(why, why_size, "not for this vendor");
  return QCTS_UNSUPPORTED;
}

/* Rounds to nearest, ties to even. */
static void store(uint32_t dtype, char* row, int64_t k, float value) {
  if (dtype == QCTS_F32) {
    memcpy(row + 4 * k, &value, 4);
  } else if (dtype == QCTS_F16) {
    const _Float16 half = (_Float16)value;
    memcpy(row + 2 * k, &half, 2);
  } else {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    const uint16_t brain = value != value ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    memcpy(row + 2 * k, &brain, 2);
  }
}

static qcts_status dequantize(const qcts_problem* p) {
  const int8_t *codes = data_of(p, "qdata"), *zero_points = data_of(p, "zero_point");
  const char* scales = data_of(p, "scale");
  for (int64_t n = 0; n < p->n; ++n) {
    char* row = (char*)p->y + n * p->ldy_bytes;
    float scale;
    memcpy(&scale, scales + 4 * n, 4);
    for (int64_t k = 0; k < p->k; ++k) {
      float value = (float)(codes[n * p->k + k] - zero_points[n]) * scale;
#ifdef WRONG
      if (n == 1 && k == 2) value = value * 2 + 1;
#endif
      store(p->w_dtype, row, k, value);
    }
  }
  return QCTS_OK;
}

static const qcts_kernel kDequantize = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_DEQUANTIZE,
    .scheme = FAMILY,
    .variant = "scalar",
    .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT,
    .supports = supports,
    .run = dequantize,
};

static const qcts_kernel* const kKernels[] = {&kDequantize};

static const qcts_provider kProvider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "acme",
    .version = "1",
    .n_kernels = 1,
    .kernels = kKernels,
    .profile = PROFILE,
};

const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &kProvider : NULL;
}
