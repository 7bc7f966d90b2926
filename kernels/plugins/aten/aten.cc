// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/plugins/aten/aten.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace qcts_aten {
namespace {

int64_t element_bytes(uint32_t dtype) { return static_cast<int64_t>(c10::elementSize(scalar_type(dtype))); }

at::Tensor view(const void* data, uint32_t dtype, at::IntArrayRef shape, at::IntArrayRef strides) {
  return at::from_blob(const_cast<void*>(data), shape, strides,
                       at::TensorOptions().dtype(scalar_type(dtype)));
}

const qcts_plane* find(const qcts_plane* planes, uint32_t count, const char* name) {
  for (uint32_t i = 0; i < count; ++i)
    if (planes[i].name != nullptr && std::strcmp(planes[i].name, name) == 0) return &planes[i];
  return nullptr;
}

at::Tensor plane_of(const qcts_plane* planes, uint32_t count, const char* name) {
  const qcts_plane* found = find(planes, count, name);
  if (found == nullptr || found->data == nullptr)
    throw std::runtime_error(std::string("plane ") + name + " is missing");
  std::vector<int64_t> shape, strides;
  for (uint32_t d = 0; d < found->ndim; ++d) {
    shape.push_back(found->shape[d]);
    strides.push_back(found->stride_bytes[d] / element_bytes(found->dtype));
  }
  return view(found->data, found->dtype, shape, strides);
}

at::Tensor rows(const void* data, uint32_t dtype, int64_t count, int64_t length, int64_t ld_bytes) {
  const int64_t stride = count > 1 ? ld_bytes / element_bytes(dtype) : length;
  return view(data, dtype, {count, length}, {stride, 1});
}

std::string linear_refusal(const qcts_problem& p) {
  if (p.m < 0) return "m must not be negative";
  if (!is_float(p.x_dtype)) return "x must be float32, float16 or bfloat16";
  if (p.y_dtype != p.x_dtype || p.w_dtype != p.x_dtype || (p.bias != nullptr && p.bias_dtype != p.x_dtype))
    return "x, y, bias and the weight must have one dtype, as in torch.nn.functional.linear";
  if (p.activation != nullptr && *p.activation != '\0' && std::strcmp(p.activation, "weight_only") != 0)
    return std::string("activation policy ") + p.activation + ": only weight_only";
  const int64_t bytes = element_bytes(p.x_dtype);
  if (p.m > 1 && (p.ldx_bytes % bytes != 0 || p.ldy_bytes % bytes != 0))
    return "a row of x or y does not begin at an element";
  return "";
}

const qcts_kernel* const kKernels[] = {
    &quantize_int8_row,      &dequantize_int8_row, &linear_int8_row_pack, &linear_int8_row,
    &linear_int8_row_static, &quantize_fp8_row,    &dequantize_fp8_row,   &linear_fp8_row,
    &quantize_int4_tinygemm, &pack_int4_tinygemm,  &linear_int4_tinygemm, &linear_dense,
};

const qcts_provider kProvider = {
    .struct_size = sizeof(qcts_provider),
    .abi_version = QCTS_ABI_VERSION,
    .name = "aten",
    .version = TORCH_VERSION,
    .url = "https://github.com/pytorch/pytorch/issues",
    .choices = QCTS_CHOICE_REPRESENTABLE_INPUTS,
    .n_kernels = sizeof(kKernels) / sizeof(kKernels[0]),
    .claims = 0,
    .kernels = kKernels,
    .load_save = load_save,
    .run_program = run_program,
    .profile = nullptr,
};

}  // namespace

at::ScalarType scalar_type(uint32_t dtype) {
  switch (dtype) {
    case QCTS_F32:
      return at::kFloat;
    case QCTS_F16:
      return at::kHalf;
    case QCTS_BF16:
      return at::kBFloat16;
    case QCTS_F8_E4M3FN:
      return at::kFloat8_e4m3fn;
    case QCTS_I8:
      return at::kChar;
    case QCTS_U8:
      return at::kByte;
    case QCTS_I32:
      return at::kInt;
    default:
      throw std::runtime_error("dtype " + std::to_string(dtype) + " is not used by these kernels");
  }
}

bool is_float(uint32_t dtype) { return dtype == QCTS_F32 || dtype == QCTS_F16 || dtype == QCTS_BF16; }

at::Tensor plane(const qcts_problem& p, const char* name) { return plane_of(p.planes, p.n_planes, name); }
at::Tensor out_plane(const qcts_problem& p, const char* name) {
  return plane_of(p.out_planes, p.n_out_planes, name);
}
at::Tensor x_rows(const qcts_problem& p) { return rows(p.x, p.x_dtype, p.m, p.k, p.ldx_bytes); }
at::Tensor float_weight(const qcts_problem& p) { return rows(p.x, p.w_dtype, p.n, p.k, p.ldx_bytes); }
at::Tensor y_rows(const qcts_problem& p) {
  return p.op == QCTS_OP_LINEAR ? rows(p.y, p.y_dtype, p.m, p.n, p.ldy_bytes)
                                : rows(p.y, p.w_dtype, p.n, p.k, p.ldy_bytes);
}
at::Tensor bias(const qcts_problem& p) {
  return p.bias == nullptr ? at::Tensor() : view(p.bias, p.bias_dtype, {p.n}, {1});
}

std::string general_refusal(const qcts_problem& p) {
  if (p.struct_size < sizeof(qcts_problem))
    return "qcts_problem is smaller than this plug-in was compiled with";
  if (p.device != 0) return "runs on the host only";
  if (p.n <= 0 || p.k <= 0) return "n and k must be positive";
  if (!is_float(p.w_dtype)) return "weights must be float32, float16 or bfloat16";
  if (p.op == QCTS_OP_LINEAR) return linear_refusal(p);
  const int64_t ld_bytes = p.op == QCTS_OP_QUANTIZE     ? p.ldx_bytes
                           : p.op == QCTS_OP_DEQUANTIZE ? p.ldy_bytes
                                                        : 0;
  if (p.n > 1 && ld_bytes % element_bytes(p.w_dtype) != 0) return "a row does not begin at an element";
  return "";
}

std::string plane_refusal(const qcts_problem& p, const char* name, uint32_t dtype, at::IntArrayRef shape) {
  if (p.n_planes == 0) return "";
  const qcts_plane* found = find(p.planes, p.n_planes, name);
  const std::string word = std::string("plane ") + name;
  if (found == nullptr) return word + " is missing";
  if (found->dtype != dtype)
    return word + " has dtype " + std::to_string(found->dtype) + " instead of " + std::to_string(dtype);
  if (found->ndim != shape.size()) return word + " has " + std::to_string(found->ndim) + " dimensions";
  for (size_t d = 0; d < shape.size(); ++d)
    if (found->shape[d] != shape[d])
      return word + " has " + std::to_string(found->shape[d]) + " elements in dimension " + std::to_string(d);
  return "";
}

bool any_byte(const qcts_problem& p, const char* name) {
  const qcts_plane* found = find(p.planes, p.n_planes, name);
  if (found == nullptr || found->data == nullptr) return false;
  const char* bytes = static_cast<const char*>(found->data);
  return std::any_of(bytes, bytes + p.n, [](char byte) { return byte != 0; });
}

qcts_status answer(const std::string& refusal, char* why, size_t why_size) {
  if (refusal.empty()) return QCTS_OK;
  if (why != nullptr && why_size > 0) std::snprintf(why, why_size, "%s", refusal.c_str());
  return QCTS_UNSUPPORTED;
}

qcts_status guarded(const qcts_problem* problem, void (*body)(const qcts_problem&)) {
  if (problem->op == QCTS_OP_LINEAR && problem->m == 0) return QCTS_OK;
  try {
    const c10::InferenceMode no_autograd;
    const int threads = static_cast<int>(problem->threads > 0 ? problem->threads : 1);
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    body(*problem);
    return QCTS_OK;
  } catch (...) {
    return QCTS_FAILED;
  }
}

void finish_linear(const qcts_problem& p, at::Tensor y) {
  if (p.bias != nullptr) y.add_(bias(p));
  y_rows(p).copy_(y);
}

const char* int4_layout() {
  const std::string capability = at::get_cpu_capability();
  if (capability.rfind("AVX512", 0) == 0) return "cpu_avx512";
  return capability.rfind("AVX2", 0) == 0 ? "cpu_avx2" : "cpu_default";
}

}  // namespace qcts_aten

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &qcts_aten::kProvider : nullptr;
}
