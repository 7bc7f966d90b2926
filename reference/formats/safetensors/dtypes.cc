// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "reference/formats/safetensors/header.h"

namespace qcts {
namespace {

struct DTypeName {
  std::string_view name;
  DType dtype;
};
// safetensors/src/tensor.rs, enum Dtype, 0.8.0
constexpr std::array<DTypeName, 22> kDtypes = {{
    {"BOOL", DType::boolean},
    {"F4", DType::float4_e2m1fn_x2},
    {"F6_E2M3", DType::float6_e2m3fn},
    {"F6_E3M2", DType::float6_e3m2fn},
    {"U8", DType::uint8},
    {"I8", DType::int8},
    {"F8_E5M2", DType::float8_e5m2},
    {"F8_E4M3", DType::float8_e4m3fn},
    {"F8_E8M0", DType::float8_e8m0fnu},
    {"F8_E4M3FNUZ", DType::float8_e4m3fnuz},
    {"F8_E5M2FNUZ", DType::float8_e5m2fnuz},
    {"I16", DType::int16},
    {"U16", DType::uint16},
    {"F16", DType::float16},
    {"BF16", DType::bfloat16},
    {"I32", DType::int32},
    {"U32", DType::uint32},
    {"F32", DType::float32},
    {"C64", DType::complex64},
    {"F64", DType::float64},
    {"I64", DType::int64},
    {"U64", DType::uint64},
}};

}  // namespace

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const DTypeName& entry : kDtypes) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

bool has_safetensors_dtype(DType dtype) {
  return std::ranges::find(kDtypes, dtype, &DTypeName::dtype) != kDtypes.end();
}

int safetensors_rank(DType dtype) {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (kDtypes[i].dtype == dtype) return static_cast<int>(i);
  }
  refuse(RefusalClass::Dtype, "safetensors has no dtype for " + std::string(dtype_name(dtype)));
}

std::string_view safetensors_dtype(DType dtype) {
  return kDtypes[static_cast<size_t>(safetensors_rank(dtype))].name;
}

Array<uint64_t> safetensors_shape(const Tensor& tensor) {
  Array<uint64_t> shape(tensor.shape.begin(), tensor.shape.end());
  if (tensor.dtype != DType::float4_e2m1fn_x2) return shape;
  if (shape.empty()) refuse(RefusalClass::Dtype, "a scalar of packed float4 has no shape in safetensors");
  if (__builtin_mul_overflow(shape.back(), uint64_t{2}, &shape.back())) {
    refuse(RefusalClass::Overflow, "a dimension does not fit in 64 bits");
  }
  return shape;
}

}  // namespace qcts
