// SPDX-License-Identifier: BSD-3-Clause
/* A provider whose kernels each follow another option than the one that they are asked for, in float32, for
 * tests of `qcts run --identify`. A kernel's variant names its option. */
#include <math.h>
#include <qcts_kernel.h>
#include <stdio.h>
#include <string.h>

enum { kBlock = 32 };

static qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  const int is_mx = strcmp(p->scheme, "mx") == 0;
  const uint32_t dtype = p->op == QCTS_OP_QUANTIZE_ACTIVATION ? p->x_dtype : p->w_dtype;
  const int packs = p->op == QCTS_OP_PACK || p->op == QCTS_OP_UNPACK;
  if (packs && p->w_dtype == QCTS_BF16) return QCTS_OK;
  const int is_narrow = p->op == QCTS_OP_LINEAR && (p->x_dtype != QCTS_F32 || p->y_dtype != QCTS_F32 ||
                                                    (p->bias != NULL && p->bias_dtype != QCTS_F32));
  if (p->device == 0 && !packs && !is_narrow && dtype == QCTS_F32 &&
      (!is_mx || strncmp(p->scheme_name, "mxfp4_", 6) == 0))
    return QCTS_OK;
  snprintf(why, why_size, "only float32, and only mxfp4 of mx");
  return QCTS_UNSUPPORTED;
}

static char* out_plane(const qcts_problem* p, const char* name) {
  for (uint32_t i = 0; i < p->n_out_planes; ++i)
    if (strcmp(p->out_planes[i].name, name) == 0) return p->out_planes[i].data;
  return NULL;
}

static const char* in_plane(const qcts_problem* p, const char* name) {
  for (uint32_t i = 0; i < p->n_planes; ++i)
    if (strcmp(p->planes[i].name, name) == 0) return p->planes[i].data;
  return NULL;
}

static float load(const char* base, int64_t index) {
  float value;
  memcpy(&value, base + 4 * index, 4);
  return value;
}

static void store(char* base, int64_t index, float value) { memcpy(base + 4 * index, &value, 4); }

static float largest_of(const char* row, int64_t k) {
  float largest = 0;
  for (int64_t i = 0; i < k; ++i) largest = fmaxf(largest, fabsf(load(row, i)));
  return largest;
}

/* int8 codes of each row, by these constants and this rounding. */
typedef struct Int8 {
  float divisor, least_scale, least, most;
  int divides;
  float (*round)(float);
} Int8;

static qcts_status int8_rows(const qcts_problem* p, int64_t rows, const Int8* by) {
  char *codes = out_plane(p, "qdata"), *scales = out_plane(p, "scale"), *zeros = out_plane(p, "zero_point");
  if (!codes || !scales) return QCTS_INVALID;
  for (int64_t r = 0; r < rows; ++r) {
    const char* row = (const char*)p->x + r * p->ldx_bytes;
    const float scale = fmaxf(largest_of(row, p->k) / by->divisor, by->least_scale);
    store(scales, r, scale);
    if (zeros) zeros[r] = 0;
    for (int64_t i = 0; i < p->k; ++i) {
      const float value = by->divides ? load(row, i) / scale : load(row, i) * (1 / scale);
      codes[r * p->k + i] = (char)fminf(fmaxf(by->round(value), by->least), by->most);
    }
  }
  return QCTS_OK;
}

#define INT8(NAME, ROWS, ...)                      \
  static qcts_status NAME(const qcts_problem* p) { \
    static const Int8 by = {__VA_ARGS__};          \
    return int8_rows(p, ROWS, &by);                \
  }
INT8(int8_as_asked, p->n, 127.5f, 0x1p-23f, -128, 127, 0, rintf)
INT8(int8_half_away, p->n, 127.5f, 0x1p-23f, -128, 127, 0, roundf)
INT8(int8_divides, p->n, 127.5f, 0x1p-23f, -128, 127, 1, rintf)
INT8(int8_by_127, p->n, 127.0f, 0x1p-23f, -128, 127, 0, rintf)
INT8(int8_reduced, p->n, 63.5f, 0x1p-23f, -64, 63, 0, rintf)
INT8(int8_truncates, p->n, 127.5f, 0x1p-23f, -128, 127, 0, truncf)
INT8(int8_by_126, p->n, 126.0f, 0x1p-23f, -128, 127, 0, rintf)
INT8(int8_x_127, p->m, 127.0f, 1e-5f, -127, 127, 0, rintf)

/* The mxfp4 code of a magnitude in units of its scale. */
static int code_of(float value, int away) {
  static const float kValues[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  int code = 0;
  for (int next = 1; next < 8; ++next) {
    const float middle = (kValues[next - 1] + kValues[next]) / 2;
    if (value > middle || (value == middle && (away || next % 2 == 0))) code = next;
  }
  return code;
}

typedef enum Mode { floor_mode, ceil_mode, even_mode, rceil_mode, one_more } Mode;

static int exponent_of(float largest, Mode mode) {
  uint32_t bits;
  memcpy(&bits, &largest, 4);
  if (mode == rceil_mode) {
    const float exponent = ceilf((float)log2((double)(largest / 6)));
    return (int)fminf(fmaxf(exponent, -127), 127);
  }
  if (mode == even_mode) bits += 1u << 21;
  int exponent = (int)(bits >> 23) - 127 + (mode == ceil_mode && (bits & 0x7FFFFF)) - 2 + (mode == one_more);
  return exponent < -127 ? -127 : exponent > 128 ? 128 : exponent;
}

static qcts_status mx_rows(const qcts_problem* p, Mode mode, int away, int high_first) {
  char *codes = out_plane(p, "qdata"), *scales = out_plane(p, "scale");
  if (!codes || !scales) return QCTS_INVALID;
  for (int64_t r = 0; r < p->n; ++r)
    for (int64_t block = 0; block < p->k / kBlock; ++block) {
      const char* x = (const char*)p->x + r * p->ldx_bytes + 4 * block * kBlock;
      const int exponent = exponent_of(largest_of(x, kBlock), mode);
      scales[r * (p->k / kBlock) + block] = (char)(exponent + 127);
      const int least = mode == rceil_mode && exponent == -127 ? 0 : exponent < -126 ? -126 : exponent;
      for (int i = 0; i < kBlock; i += 2) {
        int pair[2];
        for (int half = 0; half < 2; ++half) {
          const float value = load(x, i + half);
          pair[half] = code_of((float)ldexp(fabs((double)value), -least), away) | (signbit(value) ? 8 : 0);
        }
        codes[(r * p->k + block * kBlock + i) / 2] =
            (char)(high_first ? pair[0] << 4 | pair[1] : pair[1] << 4 | pair[0]);
      }
    }
  return QCTS_OK;
}

static qcts_status mx_even(const qcts_problem* p) { return mx_rows(p, even_mode, 0, 0); }
static qcts_status mx_ceil(const qcts_problem* p) { return mx_rows(p, ceil_mode, 0, 0); }
static qcts_status mx_rceil(const qcts_problem* p) { return mx_rows(p, rceil_mode, 0, 0); }
static qcts_status mx_half_away(const qcts_problem* p) { return mx_rows(p, floor_mode, 1, 0); }
static qcts_status mx_nibbles(const qcts_problem* p) { return mx_rows(p, floor_mode, 0, 1); }
static qcts_status mx_one_more(const qcts_problem* p) { return mx_rows(p, one_more, 0, 0); }

/* code * scale + zero, rounded twice. */
static qcts_status int4_two_roundings(const qcts_problem* p) {
  const char *codes = in_plane(p, "qdata"), *scales = in_plane(p, "scale"),
             *zeros = in_plane(p, "zero_point");
  if (!codes || !scales || !zeros) return QCTS_INVALID;
  for (int64_t r = 0; r < p->n; ++r)
    for (int64_t i = 0; i < p->k; ++i) {
      const int byte = (unsigned char)codes[(r * p->k + i) / 2], nibble = i % 2 ? byte >> 4 : byte & 15;
      const int64_t at = i / p->group * p->n + r;
      const volatile float product = (float)(nibble > 7 ? nibble - 16 : nibble) * load(scales, at);
      store((char*)p->y + r * p->ldy_bytes, i, product + load(zeros, at));
    }
  return QCTS_OK;
}

/* Linear of int8_row: x as it is, or the scale of the first row for all. */
static qcts_status int8_linear(const qcts_problem* p, int of_first_row) {
  const char *codes = in_plane(p, "qdata"), *scales = in_plane(p, "scale"),
             *zeros = in_plane(p, "zero_point");
  if (!codes || !scales || !zeros) return QCTS_INVALID;
  for (int64_t m = 0; m < p->m; ++m)
    for (int64_t n = 0; n < p->n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < p->k; ++k)
        sum += load((const char*)p->x + m * p->ldx_bytes, k) *
               (float)((signed char)codes[n * p->k + k] - (signed char)zeros[n]);
      sum *= load(scales, of_first_row ? 0 : n);
      store((char*)p->y + m * p->ldy_bytes, n, p->bias ? sum + load(p->bias, n) : sum);
    }
  return QCTS_OK;
}
static qcts_status linear_as_asked(const qcts_problem* p) { return int8_linear(p, 0); }
static qcts_status linear_first_scale(const qcts_problem* p) { return int8_linear(p, 1); }

/* Linear of mxfp4, whose first code of a pair it takes from the high half of the byte. */
static qcts_status linear_nibbles(const qcts_problem* p) {
  static const float kValues[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const char *codes = in_plane(p, "qdata"), *scales = in_plane(p, "scale");
  if (!codes || !scales) return QCTS_INVALID;
  for (int64_t m = 0; m < p->m; ++m)
    for (int64_t n = 0; n < p->n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < p->k; ++k) {
        const int byte = (unsigned char)codes[(n * p->k + k) / 2], code = k % 2 ? byte & 15 : byte >> 4;
        const int exponent = (unsigned char)scales[(n * p->k + k) / kBlock] - 127;
        const float value = ldexpf(code & 8 ? -kValues[code & 7] : kValues[code & 7], exponent);
        sum += load((const char*)p->x + m * p->ldx_bytes, k) * value;
      }
      store((char*)p->y + m * p->ldy_bytes, n, p->bias ? sum + load(p->bias, n) : sum);
    }
  return QCTS_OK;
}

/* Pack and unpack that copy the planes as they are, or with the halves of each byte of codes exchanged. */
static qcts_status copied(const qcts_problem* p, int exchanges) {
  for (uint32_t i = 0; i < p->n_out_planes; ++i) {
    const char* from = in_plane(p, p->out_planes[i].name);
    unsigned char* to = p->out_planes[i].data;
    if (!from) return QCTS_INVALID;
    const int is_codes = strcmp(p->out_planes[i].name, "qdata") == 0;
    const int64_t bytes = is_codes ? p->n * p->k / 2 : p->n * (p->k / p->group) * 2;
    for (int64_t b = 0; b < bytes; ++b) {
      const unsigned char byte = (unsigned char)from[b];
      to[b] = is_codes && exchanges ? (unsigned char)(byte << 4 | byte >> 4) : byte;
    }
  }
  return QCTS_OK;
}
static qcts_status copies(const qcts_problem* p) { return copied(p, 0); }
static qcts_status exchanges(const qcts_problem* p) { return copied(p, 1); }

/* A product may be rounded before it is added. */
#define SUMS                                         \
  .numerics = {.struct_size = sizeof(qcts_numerics), \
               .product_cast = QCTS_F32,             \
               .accumulator = QCTS_F32,              \
               .partial_cast = QCTS_F32,             \
               .flags = QCTS_NUM_SCALE_AFTER_SUM}

#define KERNEL(OP, SCHEME, VARIANT, RUN)                                                               \
  {                                                                                                    \
    .struct_size = sizeof(qcts_kernel), .op = OP, .scheme = SCHEME, .variant = VARIANT,                \
    .description = "follows the option that its variant names", .supports = supports, .run = RUN, SUMS \
  }

static const qcts_kernel kKernels[] = {
    KERNEL(QCTS_OP_QUANTIZE, "int8_row", "asked", int8_as_asked),
    KERNEL(QCTS_OP_QUANTIZE, "int8_row", "away", int8_half_away),
    KERNEL(QCTS_OP_QUANTIZE, "int8_row", "divides", int8_divides),
    KERNEL(QCTS_OP_QUANTIZE, "int8_row", "by127", int8_by_127),
    KERNEL(QCTS_OP_QUANTIZE, "int8_row", "reduced", int8_reduced),
    KERNEL(QCTS_OP_QUANTIZE, "int8_row", "truncates", int8_truncates),
    KERNEL(QCTS_OP_QUANTIZE, "int8_row", "by126", int8_by_126),
    KERNEL(QCTS_OP_QUANTIZE_ACTIVATION, "int8_row:dyn_row_sym", "x127", int8_x_127),
    KERNEL(QCTS_OP_QUANTIZE, "mx", "even", mx_even),
    KERNEL(QCTS_OP_QUANTIZE, "mx", "ceil", mx_ceil),
    KERNEL(QCTS_OP_QUANTIZE, "mx", "rceil", mx_rceil),
    KERNEL(QCTS_OP_QUANTIZE, "mx", "away", mx_half_away),
    KERNEL(QCTS_OP_QUANTIZE, "mx", "nibbles", mx_nibbles),
    KERNEL(QCTS_OP_QUANTIZE, "mx", "onemore", mx_one_more),
    KERNEL(QCTS_OP_DEQUANTIZE, "int4_plain", "tworoundings", int4_two_roundings),
    KERNEL(QCTS_OP_LINEAR, "int8_row", "rightlinear", linear_as_asked),
    KERNEL(QCTS_OP_LINEAR, "int8_row:dyn_row_sym", "floatx", linear_as_asked),
    KERNEL(QCTS_OP_LINEAR, "int8_row", "firstscale", linear_first_scale),
    KERNEL(QCTS_OP_LINEAR, "mx", "linearnibbles", linear_nibbles),
    KERNEL(QCTS_OP_PACK, "int4_plain", "copies", copies),
    KERNEL(QCTS_OP_UNPACK, "int4_plain", "copiesback", copies),
    KERNEL(QCTS_OP_PACK, "int4_plain", "exchanges", exchanges),
};
enum { kCount = sizeof kKernels / sizeof kKernels[0] };
static const qcts_kernel* pointers[kCount];
static qcts_provider provider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "planted",
    .version = "1",
    .n_kernels = kCount,
    .kernels = pointers,
};

const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  for (int i = 0; i < kCount; ++i) pointers[i] = &kKernels[i];
  return host_abi_version >= QCTS_ABI_VERSION ? &provider : NULL;
}
