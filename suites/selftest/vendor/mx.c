// SPDX-License-Identifier: BSD-3-Clause
/* A provider of the microscaling conversions: quantize, quantize_activation and dequantize of mx*_floor and
 * mx*_rceil, written from OCP Microscaling Formats 1.0, for tests of profiles that play options.
 *   PROFILE=...     the text of qcts_provider.profile
 *   SERVES=...      a C expression over `rounding`, the qcts_scale_rounding; 0 declines
 *   LEAST_SCALE=... what divides a block whose scale byte is 0 (floor): 0x1p-127 of OCP, 0x1p-126 of torchao
 *   WRONG           one code of a block is wrong
 */
#include <math.h>
#include <qcts_kernel.h>
#include <stdio.h>
#include <string.h>

#ifndef PROFILE
#define PROFILE NULL
#endif
#ifndef SERVES
#define SERVES 1
#endif
#ifndef LEAST_SCALE
#define LEAST_SCALE 0x1p-127
#endif

enum { kBlock = 32, kNanScale = 255 };

typedef struct element {
  uint32_t dtype;
  int mantissa_bits, bias, max_exponent; /* of the largest number */
  double max;
  int bits_stored, sign_bit;
} element;

static const element kElements[] = {{QCTS_F8_E4M3FN, 3, 7, 8, 448, 8, 7},
                                    {QCTS_F8_E5M2, 2, 15, 15, 57344, 8, 7},
                                    {QCTS_F6_E2M3, 3, 1, 2, 7.5, 8, 5},
                                    {QCTS_F6_E3M2, 2, 3, 4, 28, 8, 5},
                                    {QCTS_F4_E2M1_X2, 1, 1, 2, 6, 4, 3}};

static const element* element_of(const qcts_problem* p) {
  for (size_t i = 0; p->params != NULL && i < sizeof kElements / sizeof *kElements; ++i)
    if (kElements[i].dtype == p->params->element_dtype) return &kElements[i];
  return NULL;
}

static void* data_of(const qcts_plane* planes, uint32_t count, const char* name) {
  for (uint32_t i = 0; i < count; ++i)
    if (strcmp(planes[i].name, name) == 0) return planes[i].data;
  return NULL;
}

static qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  const uint32_t rounding = p->params == NULL ? 0 : p->params->scale_rounding;
  if (p->device == 0 && element_of(p) != NULL &&
      (rounding == QCTS_SCALE_FLOOR || rounding == QCTS_SCALE_RCEIL) && (SERVES))
    return QCTS_OK;
  snprintf(why, why_size, "only floor and rceil, and only on the host");
  return QCTS_UNSUPPORTED;
}

static float load(uint32_t dtype, const char* row, int64_t k) {
  float value;
  uint32_t bits = 0;
  if (dtype == QCTS_F32) {
    memcpy(&bits, row + 4 * k, 4);
  } else {
    uint16_t half;
    memcpy(&half, row + 2 * k, 2);
    bits = (uint32_t)half << 16;
  }
  memcpy(&value, &bits, 4);
  return value;
}

/* Rounds to nearest, ties to even. */
static void store(uint32_t dtype, char* row, int64_t k, double exact) {
  const float value = (float)exact;
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (dtype == QCTS_F32) {
    memcpy(row + 4 * k, &bits, 4);
  } else {
    const uint16_t brain = value != value ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    memcpy(row + 2 * k, &brain, 2);
  }
}

/* The nearest code, ties to even; beyond the largest number that. */
static unsigned code_of(const element* e, double value) {
  const unsigned sign = signbit(value) ? 1u << e->sign_bit : 0;
  const double size = fmin(fabs(value), e->max);
  int exponent = size == 0 ? 1 - e->bias : ilogb(size);
  if (exponent < 1 - e->bias) exponent = 1 - e->bias;
  /* a carry out of the mantissa goes to the exponent by itself */
  const double units = rint(ldexp(size, e->mantissa_bits - exponent));
  return sign + ((unsigned)(exponent + e->bias - 1) << e->mantissa_bits) + (unsigned)units;
}

static double value_of(const element* e, unsigned code) {
  const unsigned size = code & ((1u << e->sign_bit) - 1);
  const unsigned exponent = size >> e->mantissa_bits, mantissa = size & ((1u << e->mantissa_bits) - 1);
  double value = ldexp(exponent == 0 ? mantissa : mantissa + (1u << e->mantissa_bits),
                       (exponent == 0 ? 1 : (int)exponent) - e->bias - e->mantissa_bits);
  if (e->dtype == QCTS_F8_E4M3FN && size == 0x7f) value = NAN;
  if (e->dtype == QCTS_F8_E5M2 && exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return code >> e->sign_bit & 1 ? -value : value;
}

/* The scale byte, and what divides the block. */
static int scale_of(const element* e, uint32_t rounding, float largest, double* divisor) {
  int byte;
  if (rounding == QCTS_SCALE_FLOOR) {
    const int exponent = largest == 0 ? -1000 : ilogbf(largest) - e->max_exponent;
    byte = exponent < -127 ? 0 : exponent + 127;
    *divisor = byte == 0 ? LEAST_SCALE : ldexp(1, byte - 127);
    return byte;
  }
  const float product = largest * (1 / (float)e->max);
  uint32_t bits;
  memcpy(&bits, &product, 4);
  byte = (int)(bits >> 23);
  const uint32_t mantissa = bits & 0x7fffff;
  if (mantissa > 0 && byte < 254 && !(byte == 0 && mantissa <= 0x400000)) ++byte;
  *divisor = byte == 0 ? 1 : ldexp(1, byte - 127);
  return byte;
}

static qcts_status quantize_rows(const qcts_problem* p, int64_t rows, uint32_t dtype) {
  const element* e = element_of(p);
  uint8_t* codes = data_of(p->out_planes, p->n_out_planes, "qdata");
  uint8_t* scales = data_of(p->out_planes, p->n_out_planes, "scale");
  for (int64_t row = 0; row < rows; ++row) {
    const char* x = (const char*)p->x + row * p->ldx_bytes;
    for (int64_t first = 0; first < p->k; first += kBlock) {
      float largest = 0;
      int is_finite = 1;
      for (int i = 0; i < kBlock; ++i) {
        const float value = load(dtype, x, first + i);
        is_finite = is_finite && isfinite(value);
        largest = fmaxf(largest, fabsf(value));
      }
      double divisor = 1;
      const int64_t at = row * p->k + first;
      scales[at / kBlock] =
          (uint8_t)(is_finite ? scale_of(e, p->params->scale_rounding, largest, &divisor) : kNanScale);
      for (int i = 0; i < kBlock; ++i) {
        unsigned code = is_finite ? code_of(e, load(dtype, x, first + i) / divisor) : 0;
#ifdef WRONG
        if (i == 7) code ^= 1;
#endif
        if (e->bits_stored == 8)
          codes[at + i] = (uint8_t)code;
        else if (i % 2 == 0)
          codes[(at + i) / 2] = (uint8_t)code;
        else
          codes[(at + i) / 2] = (uint8_t)(codes[(at + i) / 2] | code << 4);
      }
    }
  }
  return QCTS_OK;
}

static qcts_status quantize(const qcts_problem* p) { return quantize_rows(p, p->n, p->w_dtype); }
static qcts_status quantize_x(const qcts_problem* p) { return quantize_rows(p, p->m, p->x_dtype); }

static qcts_status dequantize(const qcts_problem* p) {
  const element* e = element_of(p);
  const uint8_t* codes = data_of(p->planes, p->n_planes, "qdata");
  const uint8_t* scales = data_of(p->planes, p->n_planes, "scale");
  for (int64_t n = 0; n < p->n; ++n)
    for (int64_t k = 0; k < p->k; ++k) {
      const int64_t at = n * p->k + k;
      const unsigned code = e->bits_stored == 8 ? codes[at] : codes[at / 2] >> at % 2 * 4 & 15u;
      const int byte = scales[at / kBlock];
      store(p->w_dtype, (char*)p->y + n * p->ldy_bytes, k,
            byte == kNanScale ? NAN : ldexp(value_of(e, code), byte - 127));
    }
  return QCTS_OK;
}

#define KERNEL(operation, family, function)                                                     \
  {                                                                                             \
    .struct_size = sizeof(qcts_kernel), .op = operation, .scheme = family, .variant = "scalar", \
    .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT,    \
    .supports = supports, .run = function                                                       \
  }

static const qcts_kernel kQuantize = KERNEL(QCTS_OP_QUANTIZE, "mx", quantize);
static const qcts_kernel kQuantizeX = KERNEL(QCTS_OP_QUANTIZE_ACTIVATION, "mx:*", quantize_x);
static const qcts_kernel kDequantize = KERNEL(QCTS_OP_DEQUANTIZE, "mx", dequantize);
static const qcts_kernel* const kKernels[] = {&kQuantize, &kQuantizeX, &kDequantize};

static const qcts_provider kProvider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "acme",
    .version = "1",
    .n_kernels = 3,
    .kernels = kKernels,
    .profile = PROFILE,
};

const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &kProvider : NULL;
}
