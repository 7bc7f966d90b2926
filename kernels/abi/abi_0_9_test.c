// SPDX-License-Identifier: BSD-3-Clause
/* A provider compiled against ABI 0.9, with that header's structs and version check frozen here. Every later
 * host of this major version must accept and run it. Do not change this file when qcts_kernel.h changes. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct plane {
  uint32_t struct_size, dtype;
  const char* name;
  void* data;
  uint32_t ndim, reserved;
  int64_t shape[8], stride_bytes[8];
};

struct problem {
  uint32_t struct_size, op, threads, device;
  void* stream;
  const char *scheme, *layout, *activation;
  int64_t m, n, k, group, tile;
  uint32_t w_dtype, x_dtype, y_dtype, bias_dtype;
  int64_t ldx_bytes, ldy_bytes;
  const struct plane* planes;
  uint32_t n_planes, n_out_planes;
  const struct plane* out_planes;
  const void *x, *bias;
  void* y;
  const void* prepared;
  uint64_t prepared_bytes;
  void* workspace;
  uint64_t workspace_bytes;
  const char* scheme_name;
};

struct numerics {
  uint32_t struct_size, x_cast, scale_cast, weight_cast, product_cast, accumulator, partial_cast, output_cast,
      flags, reserved;
};

struct kernel {
  uint32_t struct_size, op;
  const char *scheme, *variant, *description;
  uint32_t claims, reserved;
  struct numerics numerics;
  int (*supports)(const struct problem*, char* why, size_t why_size);
  uint64_t (*workspace_bytes)(const struct problem*);
  uint64_t (*prepared_bytes)(const struct problem*);
  int (*prepare)(const struct problem*, void* prepared);
  int (*run)(const struct problem*);
};

struct provider {
  uint32_t struct_size, abi_version;
  const char *name, *version, *url, *choices;
  uint32_t n_kernels, claims;
  const struct kernel* const* kernels;
  int (*load_save)(const char* input, const char* output, char* why, size_t why_size);
  int (*run_program)(const void* call, char* why, size_t why_size);
};

static int supports(const struct problem* p, char* why, size_t why_size) {
  if (p->struct_size >= sizeof *p && p->scheme_name != NULL && p->w_dtype == 1) return 0;
  snprintf(why, why_size, "float32 only");
  return 1;
}

/* y = codes, without their scales: enough to show that the fields have not moved. */
static int run(const struct problem* p) {
  for (int64_t n = 0; n < p->n; ++n)
    for (int64_t k = 0; k < p->k; ++k) {
      const float code = ((const int8_t*)p->planes[0].data)[n * p->k + k];
      memcpy((char*)p->y + n * p->ldy_bytes + 4 * k, &code, sizeof code);
    }
  return 0;
}

static const struct kernel kDequantize = {.struct_size = sizeof(struct kernel),
                                          .op = 3,
                                          .scheme = "int8_row",
                                          .variant = "scalar",
                                          .supports = supports,
                                          .run = run};
static const struct kernel* const kKernels[] = {&kDequantize};
static const struct provider kProvider = {.struct_size = sizeof(struct provider),
                                          .abi_version = 9,
                                          .name = "yesterday",
                                          .version = "1",
                                          .n_kernels = 1,
                                          .kernels = kKernels};

__attribute__((visibility("default"))) const struct provider* qcts_provider_entry(uint32_t host_abi_version);
const struct provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version == 9 ? &kProvider : NULL;
}
