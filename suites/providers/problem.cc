// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/problem.h"

#include <stdexcept>

namespace qcts {

uint32_t abi_op(Op op) {
  switch (op) {
    case Op::file:
      return 0;
    case Op::quantize:
      return QCTS_OP_QUANTIZE;
    case Op::quantize_activation:
      return QCTS_OP_QUANTIZE_ACTIVATION;
    case Op::dequantize:
      return QCTS_OP_DEQUANTIZE;
    case Op::pack:
      return QCTS_OP_PACK;
    case Op::unpack:
      return QCTS_OP_UNPACK;
    case Op::linear:
      return QCTS_OP_LINEAR;
  }
  return 0;
}

Op op_of(uint32_t op) {
  for (int i = 0; i < kOpCount; ++i)
    if (abi_op(static_cast<Op>(i)) == op) return static_cast<Op>(i);
  return Op::file;
}

uint32_t abi_dtype(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return QCTS_F32;
    case DType::float64:
      return QCTS_F64;
    case DType::float16:
      return QCTS_F16;
    case DType::bfloat16:
      return QCTS_BF16;
    case DType::float8_e4m3fn:
      return QCTS_F8_E4M3FN;
    case DType::float8_e5m2:
      return QCTS_F8_E5M2;
    case DType::float8_e8m0fnu:
      return QCTS_F8_E8M0;
    case DType::float4_e2m1fn_x2:
      return QCTS_F4_E2M1_X2;
    case DType::float6_e2m3fn:
      return QCTS_F6_E2M3;
    case DType::float6_e3m2fn:
      return QCTS_F6_E3M2;
    case DType::int8:
      return QCTS_I8;
    case DType::uint8:
      return QCTS_U8;
    case DType::boolean:
      return QCTS_BOOL;
    case DType::complex64:
      return QCTS_C64;
    case DType::complex128:
      return QCTS_C128;
    case DType::int16:
      return QCTS_I16;
    case DType::int32:
      return QCTS_I32;
    case DType::int64:
      return QCTS_I64;
    default:
      return QCTS_NONE;
  }
}

namespace {

uint32_t dtype_or_weight(std::optional<DType> dtype) {
  return dtype ? abi_dtype(*dtype) : static_cast<uint32_t>(QCTS_LIKE_W);
}

uint32_t abi_granularity(int64_t group_rows, int64_t group_k) {
  if (group_rows == 1) return group_k != 0 ? QCTS_PER_GROUP : QCTS_PER_ROW;
  return group_rows == 0 && group_k == 0 ? QCTS_PER_TENSOR : QCTS_PER_BLOCK;
}

uint32_t abi_zero_point(ZeroPointKind kind) {
  switch (kind) {
    case ZeroPointKind::none:
      return QCTS_ZERO_NONE;
    case ZeroPointKind::integer:
      return QCTS_ZERO_INTEGER;
    case ZeroPointKind::floating:
      return QCTS_ZERO_FLOAT;
  }
  return QCTS_ZERO_NONE;
}

uint32_t abi_mapping(Mapping mapping) {
  switch (mapping) {
    case Mapping::symmetric:
      return QCTS_SYMMETRIC;
    case Mapping::symmetric_no_clipping:
      return QCTS_SYMMETRIC_NO_CLIPPING;
    case Mapping::asymmetric:
      return QCTS_ASYMMETRIC;
  }
  return 0;
}

uint32_t abi_scale_rounding(ScaleRounding rounding) {
  switch (rounding) {
    case ScaleRounding::nearest:
      return QCTS_SCALE_NEAREST;
    case ScaleRounding::floor:
      return QCTS_SCALE_FLOOR;
    case ScaleRounding::ceil:
      return QCTS_SCALE_CEIL;
    case ScaleRounding::even:
      return QCTS_SCALE_EVEN;
    case ScaleRounding::rceil:
      return QCTS_SCALE_RCEIL;
  }
  return QCTS_SCALE_NEAREST;
}

}  // namespace

qcts_scheme_params abi_params(const Scheme& scheme) {
  const SchemeParams& from = scheme.params();
  qcts_scheme_params params{};
  params.struct_size = sizeof params;
  params.bits = static_cast<uint32_t>(from.bits);
  params.element_dtype = dtype_or_weight(from.element);
  params.code_min = from.code_min;
  params.code_max = from.code_max;
  params.scale_dtype = dtype_or_weight(from.scale);
  params.scale_rounding = abi_scale_rounding(from.scale_rounding);
  params.levels = static_cast<uint32_t>(from.levels);
  params.granularity = abi_granularity(from.group_rows, scheme.group());
  params.zero_point = abi_zero_point(from.zero_point);
  params.mapping = abi_mapping(from.mapping);
  params.flags = from.codes_wrap ? QCTS_SCHEME_CODES_WRAP : 0;
  params.group_rows = from.group_rows;
  params.group_k = scheme.group();
  return params;
}

qcts_plane abi_plane(const PlaneSpec& spec, void* data) {
  qcts_plane plane{};
  plane.struct_size = sizeof plane;
  plane.dtype = abi_dtype(spec.dtype);
  plane.name = spec.name.c_str();
  plane.data = data;
  plane.ndim = static_cast<uint32_t>(spec.shape.size());
  if (plane.ndim > 8) throw std::invalid_argument("plane " + spec.name + " has more than 8 dimensions");
  int64_t stride = dtype_bytes(spec.dtype);
  for (size_t d = spec.shape.size(); d-- > 0;) {
    plane.shape[d] = spec.shape[d];
    plane.stride_bytes[d] = stride;
    stride *= spec.shape[d];
  }
  return plane;
}

std::optional<Planes> packed_planes(const KernelInput& input) {
  if (input.op != Op::linear || input.layout == kPlain) return std::nullopt;
  Planes planes = input.scheme->pack(input.planes, input.weight, input.layout);
  const size_t of_weight = input.scheme->plane_specs(input.weight).size();
  planes.insert(planes.end(), input.planes.begin() + static_cast<std::ptrdiff_t>(of_weight),
                input.planes.end());
  return planes;
}

ProblemBuilder::ProblemBuilder(const KernelInput& input, uint32_t threads, const char* kernel_scheme)
    : family_(input.scheme ? input.scheme->family() : kernel_scheme),
      scheme_name_(input.scheme ? input.scheme->name() : kernel_scheme),
      layout_(input.layout.name()),
      activation_(input.activation.name()) {
  const auto row_bytes = [](int64_t columns, DType dtype) { return columns * dtype_bytes(dtype); };
  qcts_problem& p = problem_;
  p.struct_size = sizeof p;
  p.op = abi_op(input.op);
  p.threads = threads;
  p.scheme = family_.c_str();
  p.scheme_name = scheme_name_.c_str();
  p.layout = layout_.c_str();
  p.activation = activation_.c_str();
  p.m = input.m;
  p.n = input.weight.n;
  p.k = input.weight.k;
  p.group = input.scheme ? input.scheme->group() : 0;
  if (input.scheme) {
    params_ = abi_params(*input.scheme);
    p.params = &params_;
  }
  p.w_dtype = abi_dtype(input.weight.dtype);
  if (input.has_x()) {
    p.x_dtype = abi_dtype(input.x_dtype);
    p.ldx_bytes = row_bytes(input.weight.k, input.x_dtype);
  }
  if (!input.bias.empty()) p.bias_dtype = abi_dtype(input.bias_dtype);
  if (input.has_y()) {
    p.y_dtype = abi_dtype(input.y_type());
    p.ldy_bytes = row_bytes(input.op == Op::linear ? input.weight.n : input.weight.k, input.y_type());
  }
}

}  // namespace qcts
