// SPDX-License-Identifier: BSD-3-Clause
/* A provider with one right kernel, dequantize of int8_row, for tests of what a run says of a provider. Each
 * macro changes what it declines, offers or promises:
 *   DECLINES=...  a C expression over `p`, the problem; nonzero declines it
 *   FAMILY=...    the family of schemes that it is offered for, instead of int8_row
 *   WRONG         one element is wrong
 *   PROFILE=...   the text of qcts_provider.profile
 *   LINEAR=...    offers linear of int8_row too, with these claims
 *   EITHER_ORDER  that linear adds up in one order or another, as the clock says
 */
#include <qcts_kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

#ifdef LINEAR
static float load(uint32_t dtype, const void* row, int64_t k) {
  if (dtype == QCTS_F16) {
    _Float16 half;
    memcpy(&half, (const char*)row + 2 * k, 2);
    return (float)half;
  }
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2; /* bfloat16 has the upper half of a float32 */
  float value = 0;
  memcpy((char*)&value + 4 - bytes, (const char*)row + bytes * k, (size_t)bytes);
  return value;
}

static int is_backwards(void) {
#ifdef EITHER_ORDER
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return now.tv_nsec / 64 % 2 == 1;
#else
  return 0;
#endif
}

enum { kSums = 16 };

/* The sum of x times the codes of a row, as kSums sums that are added up forwards or backwards. */
static float product_of(const float* x, const int8_t* codes, int8_t zero_point, int64_t k, int backwards) {
  float sums[kSums] = {0}, sum = 0;
  for (int64_t i = 0; i < k; i += kSums)
    for (int64_t j = 0; j < kSums && i + j < k; ++j) {
      const float product = x[i + j] * (float)(codes[i + j] - zero_point);
      sums[j] += product;
    }
  for (int j = 0; j < kSums; ++j) sum += sums[backwards ? kSums - 1 - j : j];
  return sum;
}

static qcts_status linear(const qcts_problem* p) {
  const int8_t *codes = data_of(p, "qdata"), *zero_points = data_of(p, "zero_point");
  const char* scales = data_of(p, "scale");
  const int backwards = is_backwards();
  float* x = malloc((size_t)p->k * sizeof(float));
  if (x == NULL) return QCTS_FAILED;
  for (int64_t m = 0; m < p->m; ++m) {
    for (int64_t k = 0; k < p->k; ++k) x[k] = load(p->x_dtype, (const char*)p->x + m * p->ldx_bytes, k);
    for (int64_t n = 0; n < p->n; ++n) {
      float scale;
      memcpy(&scale, scales + 4 * n, 4);
      float y = product_of(x, codes + n * p->k, zero_points[n], p->k, backwards) * scale;
      if (p->bias != NULL) y += load(p->bias_dtype, p->bias, n);
      store(p->y_dtype, (char*)p->y + m * p->ldy_bytes, n, y);
    }
  }
  free(x);
  return QCTS_OK;
}

static const qcts_kernel kLinear = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_LINEAR,
    .scheme = "int8_row",
    .variant = "scalar",
    .claims = LINEAR,
    .numerics = {.struct_size = sizeof(qcts_numerics),
                 .product_cast = QCTS_F32,
                 .accumulator = QCTS_F32,
                 .partial_cast = QCTS_F32,
                 .output_cast = QCTS_F32,
                 .flags = QCTS_NUM_SCALE_AFTER_SUM | QCTS_NUM_BIAS_IN_OUTPUT_CAST},
    .supports = supports,
    .run = linear,
};
static const qcts_kernel* const kKernels[] = {&kDequantize, &kLinear};
#else
static const qcts_kernel* const kKernels[] = {&kDequantize};
#endif

static const qcts_provider kProvider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "acme",
    .version = "1",
    .n_kernels = sizeof kKernels / sizeof kKernels[0],
    .kernels = kKernels,
    .profile = PROFILE,
};

const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &kProvider : NULL;
}
