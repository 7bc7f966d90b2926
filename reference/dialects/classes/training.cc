// SPDX-License-Identifier: BSD-3-Clause
// Sources: torchao 0.18.0, optim/subclass_8bit.py, subclass_4bit.py, subclass_fp8.py;
// prototype/quantized_training/bitnet.py and int8_mixed_precision.py; float8/float8_training_tensor.py and
// fsdp_utils.py; prototype/moe_training/tensor.py.
#include "reference/dialects/classes/training.h"

#include <algorithm>
#include <cstring>

#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

Tensor float_tensor(DType dtype, const std::vector<int64_t>& shape, const std::vector<float>& values,
                    const std::string& name) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) store_float(dtype, bytes, i, values[i]);
  return make_tensor(dtype, shape, std::move(bytes), name);
}

// Returns the values before scaling: table entries of bytes or of nibbles (the even element high), or float8.
std::vector<float> unscaled_state(const NamedTensor& tensor, const Tensor& codes) {
  const std::vector<double> numbers = numbers_of(codes);
  if (tensor.type == "OptimStateFp8") return {numbers.begin(), numbers.end()};
  const Tensor* qmap = find_payload(tensor, "qmap");
  const bool pairs = tensor.type == "OptimState4bit";
  if (!qmap || qmap->dtype != DType::float32 || qmap->numel() != (pairs ? 16 : 256) ||
      codes.dtype != DType::uint8)
    return {};
  const std::vector<double> table = numbers_of(*qmap);
  std::vector<float> values;
  values.reserve(numbers.size() * (pairs ? 2 : 1));
  for (const double number : numbers) {
    const size_t code = static_cast<size_t>(number);
    if (pairs) values.push_back(static_cast<float>(table[code >> 4]));
    values.push_back(static_cast<float>(table[pairs ? code & 15 : code]));
  }
  return values;
}

// torch stores bytes of four two-bit integers, the first in the highest bits.
std::optional<Tensor> dense_of_bitnet(const NamedTensor& tensor) {
  const Tensor *packed = find_payload(tensor, "int_data"), *scale = find_payload(tensor, "scale");
  if (!packed || packed->dtype != DType::int8 || packed->shape.size() != 2 || !scale || scale->numel() != 1 ||
      !is_float(scale->dtype) || tensor.shape != std::vector<int64_t>{packed->shape[0], packed->shape[1] * 4})
    return std::nullopt;
  const float factor = static_cast<float>(numbers_of(*scale)[0]);
  std::vector<float> values;
  for (const std::byte byte : row_major_bytes(*packed))
    for (int shift = 6; shift >= 0; shift -= 2) {
      const int code = std::to_integer<int>(byte) >> shift & 3;
      values.push_back(mul_in(tensor.dtype, static_cast<float>(code < 2 ? code : code - 4), factor));
    }
  return float_tensor(tensor.dtype, tensor.shape, values, tensor.name);
}

// Divides the code, exact in the original dtype, by the scale. A scale with dimensions promotes to float32.
std::optional<Tensor> dense_of_float8_training(const NamedTensor& tensor) {
  const Tensor *codes = find_payload(tensor, "_data"), *scale = find_payload(tensor, "_scale");
  if (!codes || codes->shape != tensor.shape || !holds_numbers(codes->dtype) || !scale ||
      scale->dtype != DType::float32)
    return std::nullopt;
  const std::vector<double> numbers = numbers_of(*codes), scales = numbers_of(*scale);
  const DType dtype = scale->shape.empty() ? tensor.dtype : DType::float32;
  // Axiswise scales are [N, 1] or [1, K], or the like with more dimensions.
  const int64_t first = tensor.shape.empty() ? 1 : tensor.shape.front(),
                last = tensor.shape.empty() ? 1 : tensor.shape.back();
  const bool by_first = scale->numel() == first && !scale->shape.empty() && scale->shape.front() == first,
             by_last = scale->numel() == last && !scale->shape.empty() && scale->shape.back() == last;
  if (scales.size() != 1 && !by_first && !by_last) return std::nullopt;
  const size_t inner = numbers.empty() ? 1 : numbers.size() / static_cast<size_t>(first);
  std::vector<float> values(numbers.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t at = scales.size() == 1 ? 0 : by_first ? i / inner : i % static_cast<size_t>(last);
    values[i] = div_in(dtype, static_cast<float>(numbers[i]), static_cast<float>(scales[at]));
  }
  return float_tensor(dtype, tensor.shape, values, tensor.name);
}

constexpr std::string_view kDenseUntilMultiplied[] = {"BitNetTrainingLinearWeight",
                                                      "Int8MixedPrecisionTrainingLinearWeight",
                                                      "WeightWithDynamicFloat8CastTensor",
                                                      "WeightWithDelayedFloat8CastTensor",
                                                      "WeightWithStaticFloat8CastTensor",
                                                      "TrainingWeightWrapperBaseTensor",
                                                      "Float8TrainingWeightWrapperTensor",
                                                      "MXFP8TrainingWeightWrapperTensor",
                                                      "ScaledGroupedMMTensor"};

}  // namespace

std::optional<Tensor> dense_of_optimizer_state(const NamedTensor& tensor) {
  if (tensor.type != "OptimState8bit" && tensor.type != "OptimState4bit" && tensor.type != "OptimStateFp8")
    return std::nullopt;
  const Tensor *codes = find_payload(tensor, "codes"), *scale = find_payload(tensor, "scale");
  if (!codes || !scale || scale->shape.size() != 1 || !is_float(scale->dtype)) return std::nullopt;
  std::vector<float> values = unscaled_state(tensor, *codes);
  const std::vector<double> scales = numbers_of(*scale);
  if (values.size() != static_cast<size_t>(numel_of(tensor.shape)) || scales.empty() ||
      values.size() % scales.size())
    return std::nullopt;
  const size_t block = values.size() / scales.size();
  for (size_t i = 0; i < values.size(); ++i) values[i] *= static_cast<float>(scales[i / block]);
  return float_tensor(DType::float32, tensor.shape, values, tensor.name);
}

std::optional<Tensor> dense_of_training_weight(const NamedTensor& tensor) {
  if (tensor.type == "BitNetPacked2bitLinearWeight") return dense_of_bitnet(tensor);
  // torchao up to 0.12 called the class Float8Tensor.
  if (tensor.type == "Float8TrainingTensor" ||
      (tensor.type == "Float8Tensor" && find_payload(tensor, "_data")))
    return dense_of_float8_training(tensor);
  if (std::ranges::find(kDenseUntilMultiplied, std::string_view(tensor.type)) ==
      std::ranges::end(kDenseUntilMultiplied))
    return std::nullopt;
  const Tensor* weight = first_part(tensor, {"_data", "_tensor"});
  const bool fits = weight && weight->shape == tensor.shape && weight->dtype == tensor.dtype;
  return fits ? std::optional(*weight) : std::nullopt;
}

}  // namespace qcts
