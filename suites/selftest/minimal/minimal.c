// SPDX-License-Identifier: BSD-3-Clause
/* The smallest provider that is worth judging: int8_row in float32, in portable C11 that C++20 compiles too.
 * Copy it, change the name, replace the loops.
 *
 *     cmake -B build -DCMAKE_PREFIX_PATH=<where qcts is installed> && cmake --build build
 *     qcts run --provider build/minimal.so
 */
#include <qcts_kernel.h>
#include <stdio.h>
#include <string.h>

/* The plane of this name with this element type and these dimensions, 0 for "not there"; NULL otherwise. */
static const void* plane(const qcts_problem* p, const char* name, uint32_t dtype, int64_t rows,
                         int64_t columns) {
  for (uint32_t i = 0; i < p->n_planes; ++i) {
    const qcts_plane* plane = &p->planes[i];
    if (strcmp(plane->name, name) != 0) continue;
    const int64_t want[2] = {rows, columns};
    const uint32_t ndim = columns == 0 ? 1 : 2;
    if (plane->dtype != dtype || plane->ndim < ndim) return NULL;
    int64_t elements = 1;
    for (uint32_t d = 0; d < plane->ndim; ++d) elements *= plane->shape[d];
    return elements == want[0] * (columns == 0 ? 1 : want[1]) ? plane->data : NULL;
  }
  return NULL;
}

typedef struct Weight {
  const int8_t* codes;      /* [n, k] */
  const float* scale;       /* [n] */
  const int8_t* zero_point; /* [n]; always 0, and always there */
} Weight;

/* 1 when the problem carries an int8_row weight. A scale may be at any address, so memcpy reads it. */
static int weight_of(const qcts_problem* p, Weight* w) {
  w->codes = (const int8_t*)plane(p, "qdata", QCTS_I8, p->n, p->k);
  w->scale = (const float*)plane(p, "scale", QCTS_F32, p->n, 0);
  w->zero_point = (const int8_t*)plane(p, "zero_point", QCTS_I8, p->n, 0);
  return w->codes != NULL && w->scale != NULL && w->zero_point != NULL;
}

static float float_at(const void* base, int64_t index) {
  float value;
  memcpy(&value, (const char*)base + index * (int64_t)sizeof value, sizeof value);
  return value;
}

static void put_float(void* base, int64_t index, float value) {
  memcpy((char*)base + index * (int64_t)sizeof value, &value, sizeof value);
}

static qcts_status refuse(char* why, size_t why_size, const char* reason) {
  snprintf(why, why_size, "%s", reason);
  return QCTS_UNSUPPORTED;
}

/* Every condition that `run` relies on is checked here, and each has a reason that a user can act on. The
 * planes are not there yet when a host only asks. */
static qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  if (p->struct_size < offsetof(qcts_problem, scheme_name))
    return refuse(why, why_size, "the host is older than this provider");
  if (p->device != 0) return refuse(why, why_size, "runs on the host only");
  if (p->w_dtype != QCTS_F32) return refuse(why, why_size, "float32 weights only");
  if (p->op == QCTS_OP_LINEAR) {
    if (p->x_dtype != QCTS_F32 || p->y_dtype != QCTS_F32)
      return refuse(why, why_size, "float32 x and y only");
    if (p->bias != NULL && p->bias_dtype != QCTS_F32) return refuse(why, why_size, "float32 bias only");
    if (strcmp(p->activation, "weight_only") != 0) return refuse(why, why_size, "float activations only");
  }
  return QCTS_OK;
}

/* (q - zero_point) * scale, one rounding: exactly the scheme's definition, hence the claim "bit exact". */
static qcts_status dequantize(const qcts_problem* p) {
  Weight w;
  if (!weight_of(p, &w)) return QCTS_INVALID;
  for (int64_t n = 0; n < p->n; ++n) {
    char* row = (char*)p->y + n * p->ldy_bytes;
    const float scale = float_at(w.scale, n);
    for (int64_t k = 0; k < p->k; ++k)
      put_float(row, k, (float)(w.codes[n * p->k + k] - w.zero_point[n]) * scale);
  }
  return QCTS_OK;
}

/* Codes are summed in float32 and the scale acts on the sum. A kernel that sums differently says so in
 * `numerics`, from which the judge derives the bound of every element. */
static qcts_status linear(const qcts_problem* p) {
  Weight w;
  if (!weight_of(p, &w)) return QCTS_INVALID;
  for (int64_t m = 0; m < p->m; ++m) {
    const char* x = (const char*)p->x + m * p->ldx_bytes;
    for (int64_t n = 0; n < p->n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < p->k; ++k)
        sum += float_at(x, k) * (float)(w.codes[n * p->k + k] - w.zero_point[n]);
      sum *= float_at(w.scale, n);
      if (p->bias != NULL) sum += float_at(p->bias, n);
      put_float((char*)p->y + m * p->ldy_bytes, n, sum);
    }
  }
  return QCTS_OK;
}

static const qcts_kernel kDequantize = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_DEQUANTIZE,
    .scheme = "int8_row",
    .variant = "scalar",
    .description = "one element at a time",
    .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT,
    .supports = supports,
    .run = dequantize,
};

static const qcts_kernel kLinear = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_LINEAR,
    .scheme = "int8_row",
    .variant = "scalar",
    .description = "one element at a time",
    .claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT,
    .numerics = {.struct_size = sizeof(qcts_numerics),
                 .product_cast = QCTS_F32, /* a compiler may or may not fuse; this allows both */
                 .accumulator = QCTS_F32,
                 .partial_cast = QCTS_F32,
                 .output_cast = QCTS_F32, /* sum * scale is rounded before the bias is added */
                 .flags = QCTS_NUM_SCALE_AFTER_SUM},
    .supports = supports,
    .run = linear,
};

static const qcts_kernel* const kKernels[] = {&kDequantize, &kLinear};

static const qcts_provider kProvider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "minimal",
    .version = "1",
    .choices = QCTS_CHOICE_REPRESENTABLE_INPUTS,
    .n_kernels = sizeof kKernels / sizeof kKernels[0],
    .kernels = kKernels,
};

const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &kProvider : NULL;
}
