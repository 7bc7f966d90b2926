#include <algorithm>
#include <stdexcept>

#include "reference/numerics/soft_float.h"
#include "suites/judge/expected/question.h"

namespace qcts {
namespace {

std::optional<DType> stage(uint32_t dtype, DType x) {
  switch (dtype) {
    case QCTS_LIKE_X:
      return x;
    case QCTS_NONE:
      return std::nullopt;
    case QCTS_F32:
      return DType::float32;
    case QCTS_F64:
      return DType::float64;
    case QCTS_F16:
      return DType::float16;
    case QCTS_BF16:
      return DType::bfloat16;
    case QCTS_F8_E4M3FN:
      return DType::float8_e4m3fn;
    case QCTS_F8_E5M2:
      return DType::float8_e5m2;
    case QCTS_I32:
      return DType::int32;
    default:
      throw ProviderFault("its numerics name element type " + std::to_string(dtype) +
                          ", to which nothing rounds");
  }
}

LinearStages stages_of(const qcts_numerics& numerics, DType x) {
  LinearStages stages;
  stages.x_cast = stage(numerics.x_cast, x);
  stages.scale_cast = stage(numerics.scale_cast, x);
  stages.weight_cast = stage(numerics.weight_cast, x);
  stages.product_cast = stage(numerics.product_cast, x);
  // Undeclared is the strictest that a float kernel can meet.
  stages.accumulator = stage(numerics.accumulator, x).value_or(DType::float32);
  stages.partial_cast = stage(numerics.partial_cast, x);
  stages.output_cast = stage(numerics.output_cast, x);
  stages.flush_subnormals = numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS;
  stages.scale_after_sum = numerics.flags & QCTS_NUM_SCALE_AFTER_SUM;
  return stages;
}

int64_t group_of(const KernelInput& input) { return input.scheme ? input.scheme->group() : 0; }

DType scale_dtype(const KernelInput& input) {
  for (size_t i = 1; i < input.planes.size(); ++i)
    if (is_float(input.planes[i].dtype)) return input.planes[i].dtype;
  return DType::float32;
}

}  // namespace

LinearTruth::LinearTruth(const KernelInput& input, bool with_rows) : input_(input) {
  const size_t n = static_cast<size_t>(input.weight.n), k = static_cast<size_t>(input.weight.k);
  if (with_rows) weights_.resize(n * k);
  for (size_t r = 0; with_rows && r < n; ++r)
    input.scheme->exact_row(input.planes, input.weight, static_cast<int64_t>(r),
                            {weights_.data() + r * k, k});
  if (input.x.size() != static_cast<size_t>(input.m) * k * dtype_bytes(input.x_dtype))
    throw std::runtime_error("x has " + std::to_string(input.x.size()) + " bytes, wanted are m * k elements");
  if (input.activation == kWeightOnly)
    x_ = load_doubles(input.x_dtype, input.x);
  else
    read_quantized_x();
  for (int64_t m = 0; m < input.m; ++m) rows_of_x_.push_back(oracle_x(x(m)));
  bias_.resize(n);
  if (!input.bias.empty())
    for (size_t r = 0; r < n; ++r) bias_[r] = load_float(input.bias_dtype, input.bias, r);
}

void LinearTruth::read_quantized_x() {
  const Planes planes =
      input_.scheme->quantize_activation(input_.x_matrix(), input_.activation, input_.planes);
  const size_t k = static_cast<size_t>(input_.weight.k);
  x_.resize(static_cast<size_t>(input_.m) * k);
  const auto has = [&](std::string_view name) {
    return std::any_of(planes.begin(), planes.end(), [&](const Plane& p) { return p.name == name; });
  };
  if (has("scale")) offsets_.resize(static_cast<size_t>(input_.m));
  const auto of_row = [&](const Plane& plane, size_t row) {
    const size_t index = plane.shape.front() == 1 ? 0 : row;
    if (plane.dtype == DType::int8) return static_cast<double>(static_cast<int8_t>(plane.bytes[index]));
    if (plane.dtype == DType::uint8) return static_cast<double>(std::to_integer<int>(plane.bytes[index]));
    return load_float(plane.dtype, plane.bytes, index);
  };
  for (size_t m = 0; m < static_cast<size_t>(input_.m); ++m) {
    input_.scheme->exact_activation(planes, input_.x_matrix(), input_.activation, static_cast<int64_t>(m),
                                    {x_.data() + m * k, k});
    if (has("zero_point"))
      offsets_[m] = of_row(plane(planes, "zero_point"), m) * of_row(plane(planes, "scale"), m);
  }
}

std::span<const ExactWeight> LinearTruth::row(int64_t n) const {
  const size_t k = static_cast<size_t>(input_.weight.k);
  return {weights_.data() + static_cast<size_t>(n) * k, k};
}

std::span<const double> LinearTruth::x(int64_t m) const {
  const size_t k = static_cast<size_t>(input_.weight.k);
  return {x_.data() + static_cast<size_t>(m) * k, k};
}

LinearOracle LinearTruth::oracle(const OracleWeights& weights, int64_t m, int64_t n) const {
  return linear_oracle(weights, rows_of_x_[static_cast<size_t>(m)], bias_[static_cast<size_t>(n)],
                       offsets_.empty() ? std::nullopt : std::optional(offsets_[static_cast<size_t>(m)]));
}

std::vector<double> LinearTruth::sums() const {
  std::vector<ExactWeight> row(static_cast<size_t>(input_.weight.k));
  std::vector<double> y(static_cast<size_t>(input_.m * input_.weight.n));
  for (int64_t n = 0; n < input_.weight.n; ++n) {
    input_.scheme->exact_row(input_.planes, input_.weight, n, row);
    const OracleWeights weights = oracle_weights(row, group_of(input_));
    for (int64_t m = 0; m < input_.m; ++m)
      y[static_cast<size_t>(m * input_.weight.n + n)] = oracle(weights, m, n).y;
  }
  return y;
}

Bounded LinearTruth::bounded(const OracleWeights& weights, int64_t m, int64_t n,
                             const LinearStages& stages) const {
  const bool quantized = !offsets_.empty();
  const LinearOracle oracle = this->oracle(weights, m, n);
  // Quantized x is code times scale, unrounded: a cast to x's own type does round it.
  const LinearBound bound = linear_bound(
      oracle, stages, {quantized ? DType::float64 : input_.x_dtype, scale_dtype(input_), input_.y_dtype});
  return {oracle.y, bound.low, bound.high};
}

Bounded LinearTruth::bounded(std::span<const ExactWeight> row, int64_t m, int64_t n,
                             const qcts_numerics& numerics) const {
  return bounded(oracle_weights(row, group_of(input_)), m, n, stages_of(numerics, input_.x_dtype));
}

std::vector<Bounded> LinearTruth::bounds(const qcts_numerics& numerics) const {
  const LinearStages stages = stages_of(numerics, input_.x_dtype);
  std::vector<OracleWeights> rows;
  for (int64_t n = 0; n < input_.weight.n; ++n) rows.push_back(oracle_weights(row(n), group_of(input_)));
  std::vector<Bounded> all;
  all.reserve(static_cast<size_t>(input_.m * input_.weight.n));
  for (int64_t m = 0; m < input_.m; ++m)
    for (int64_t n = 0; n < input_.weight.n; ++n)
      all.push_back(bounded(rows[static_cast<size_t>(n)], m, n, stages));
  return all;
}

namespace {

// Policies under which torchao on a CPU calls torch._scaled_mm.
bool is_scaled_mm(std::string_view family, std::string_view activation) {
  const bool of_row = activation == "dyn_row" || activation == "dyn_row_recip";
  const bool of_all = activation == "dyn_tensor" || activation == "dyn_tensor_recip" ||
                      activation == "static_tensor" || activation == "static_tensor_recip";
  return (family == "fp8_row" && of_row) || (family == "fp8" && of_all);
}

bool is_of_cutlass(std::string_view activation) {
  return activation == "dyn_token_sym_s32" || activation == "dyn_token_sym_127" ||
         activation.starts_with("dyn_token_sym_b4");
}

}  // namespace

// Sources: torchao 0.18.0 on torch 2.13.0, CPU, each class's linear. recorded_dense: what torchao 0.5.0 to
// 0.17.0 does where no kernel takes x and weight (_quantized_linear_op of AffineQuantizedTensor).
//
// int8_row, int8_tensor (int8_tensor.py): mm(x, qdata.to(x.dtype).t()), whose result has x's dtype; times
// scale.to(x.dtype), again in x's dtype; then + bias. The scale acts on the finished row sum.
//
// int8 families under a policy: int32 sums to float32, times x's scale, to x's dtype; asymmetric: less the
// zero point's term, made in float32 and rounded to x's dtype; times the float32 scale of the weight, + bias,
// to x's dtype.
//
// int8_group, fp8_row (float8_tensor.py): the weight is dequantized to x's dtype, then mm and + bias.
//
// intx (intx_unpacked_to_int8_tensor.py): under the policy x is quantized and dequantized in its own dtype;
// the weight is dequantized in its own; then linear, which is addmm: the bias lies in the result before gemm
// adds to it (aten/src/ATen/native/LinearAlgebra.cpp, addmm_impl_cpu_), so one rounding.
//
// int4_tinygemm: aten::_weight_int4pack_mm_for_cpu (aten/src/ATen/native/cpu/int4mm_kernel.cpp): weights are
// formed and summed in float32; the sum is rounded to y's dtype, then Int4OpaqueTensor's linear adds the
// bias.
//
// gguf_proto (gguf_quantized_tensor.py): linear on the dequantized weight. In the narrow types product and
// sum are rounded apart, which no bound here allows.
//
// tinyq_w8a32 (TinyQ 006b7b9, w8_a32_forward): q.float() * s in float32, F.linear, then + bias. tinyq_w8a16
// (w8_a16_forward): F.linear(x, q.to(x.dtype)) has x's dtype; times the scales, then + bias, each in it.
//
// CUTLASS's kernels (recorded with exact sums in their place): int32 sums, times both scales in float32.
//
// int4_plain under dyn_row_mslk (MSLK's f8i4bf16_rowwise, recorded with exact sums in its place): weights are
// formed in the dtype of their scale, a rounding that stands with the products here, then rounded to float8;
// the sum times x's scale is rounded to bfloat16, then the bias is added. int4_e4m3 (its f8i4bf16_shuffled):
// sums of float8 products, times both scales in float32, the same from there on.
qcts_numerics recorded_numerics(const Question& question) {
  const Scheme& scheme = *question.input.scheme;
  const std::string_view activation = question.input.activation;
  const DType dtype = question.input.y_dtype;
  const std::string_view family = scheme.family();
  // pre_weight_only: x is scaled and rounded before it is x; the planes of the policy hold it so.
  const bool weight_only = activation.ends_with(kWeightOnly);
  qcts_numerics numerics{};
  numerics.struct_size = sizeof numerics;
  numerics.accumulator = QCTS_F32;
  numerics.product_cast = QCTS_F32;
  numerics.output_cast = abi_dtype(dtype);
  if (question.recorded_dense) {
    numerics.weight_cast = numerics.x_cast = abi_dtype(dtype);
    numerics.output_cast = QCTS_NONE;
  } else if (family.starts_with("int8_") && !weight_only) {
    numerics.accumulator = QCTS_I32;
    numerics.product_cast = numerics.output_cast = QCTS_NONE;
    numerics.partial_cast = abi_dtype(dtype);
    numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  } else if (family == "int8_row" || family == "int8_tensor") {
    numerics.scale_cast = numerics.partial_cast = abi_dtype(dtype);
    numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  } else if (family == "intx" && is_of_cutlass(activation)) {
    numerics.accumulator = QCTS_I32;
    numerics.product_cast = numerics.output_cast = QCTS_NONE;
    numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  } else if (family == "intx") {
    numerics.weight_cast = abi_dtype(dtype);
    numerics.output_cast = QCTS_NONE;
    if (!weight_only) numerics.x_cast = abi_dtype(dtype);
  } else if (weight_only &&
             (family == "fp8_row" || family == "fp8" || family == "nf4" || family == "int8_group")) {
    numerics.weight_cast = abi_dtype(dtype);
  } else if (is_scaled_mm(family, activation)) {
    numerics.weight_cast = numerics.x_cast = QCTS_F32;  // _scaled_mm on a CPU: both times their scales
    if (dtype != DType::float32) numerics.output_cast = QCTS_NONE;  // it adds the bias of narrow types itself
  } else if (family == "mx") {
    numerics.weight_cast = numerics.x_cast = abi_dtype(dtype);  // KernelPreference.EMULATED: both dequantized
  } else if (family == "nvfp4" && weight_only) {
    numerics.scale_cast = QCTS_F32;
    numerics.weight_cast = abi_dtype(dtype);
  } else if (weight_only &&
             (family == "int4_tinygemm" || (family == "gguf_proto" && dtype == DType::float32))) {
    numerics.weight_cast = QCTS_F32;
  } else if (family == "int4_plain" && activation == "dyn_row_mslk") {
    numerics.weight_cast = QCTS_F8_E4M3FN;
    numerics.product_cast = abi_dtype(question.input.weight.dtype);
    numerics.output_cast = QCTS_BF16;
  } else if (family == "int4_e4m3" && activation == "dyn_row_mslk") {
    numerics.product_cast = QCTS_NONE;
    numerics.output_cast = QCTS_BF16;
    numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  } else if (scheme.name() == "tinyq_w8a32") {
    numerics.weight_cast = numerics.partial_cast = QCTS_F32;
  } else if (scheme.name() == "tinyq_w8a16") {
    numerics.scale_cast = numerics.partial_cast = abi_dtype(dtype);
    numerics.flags = QCTS_NUM_SCALE_AFTER_SUM;
  } else {
    throw std::logic_error("nothing is known of where the library that recorded " + std::string(family) +
                           " under " + std::string(activation) + " rounds");
  }
  return numerics;
}

}  // namespace qcts
