// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/qtensor.h"

#include <algorithm>
#include <limits>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

bool is_by_tensor(const NamedTensor& tensor) {
  return data_name(attribute_at(tensor, "qscheme")) == "torch.per_tensor_affine";
}

int codes_in_a_byte(DType dtype) { return dtype == DType::quint4x2 ? 2 : dtype == DType::quint2x4 ? 4 : 1; }

const Tensor* qtensor_part(const NamedTensor& tensor, std::string_view name) {
  for (const InnerTensor& inner : tensor.payload)
    if (inner.name == name) return &inner.tensor;
  return nullptr;
}

// The packed codes of a view begin in another byte, or do not follow each other.
bool is_whole(const NamedTensor& tensor, const Tensor& codes) {
  const int64_t in_a_byte = codes_in_a_byte(codes.dtype);
  const Json offset = attribute_at(tensor, "offset"), stride = attribute_at(tensor, "stride");
  return offset == 0 && integers_of(stride) == contiguous_stride(tensor.shape) &&
         codes.numel() >= (numel_of(tensor.shape) + in_a_byte - 1) / in_a_byte;
}

std::vector<int32_t> qtensor_codes(const Tensor& codes, int64_t count) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(codes, scratch);
  std::vector<int32_t> values(static_cast<size_t>(count));
  const auto in_a_byte = static_cast<size_t>(codes_in_a_byte(codes.dtype)), bits = 8 / in_a_byte;
  for (size_t i = 0; i < values.size(); ++i) {
    if (codes.dtype == DType::qint32) {
      for (size_t b = 0; b < 4; ++b)
        values[i] |= static_cast<int32_t>(std::to_integer<uint32_t>(bytes[4 * i + b]) << (8 * b));
      continue;
    }
    const auto byte = std::to_integer<uint32_t>(bytes[i / in_a_byte]);
    const uint32_t field = byte >> (i % in_a_byte * bits) & ((1U << bits) - 1);
    values[i] = codes.dtype == DType::qint8 ? static_cast<int8_t>(field) : static_cast<int32_t>(field);
  }
  return values;
}

// The int32 difference wraps around, as it does in torch.
float by_tensor(int32_t code, int32_t zero_point, float scale, bool packed) {
  if (packed) return (static_cast<float>(code) - static_cast<float>(zero_point)) * scale;
  const auto difference =
      static_cast<int32_t>(static_cast<uint32_t>(code) - static_cast<uint32_t>(zero_point));
  return static_cast<float>(difference) * scale;
}

float by_channel(int32_t code, double zero_point, double scale, bool floats) {
  const float difference = static_cast<float>(code) - static_cast<float>(zero_point);
  if (floats) return difference * static_cast<float>(scale);
  return static_cast<float>(static_cast<double>(difference) * scale);
}

bool in_range(const ZeroPointRange& range) {
  return std::ranges::all_of(range.zero_points,
                             [&](double zero) { return zero >= range.least && zero <= range.greatest; });
}

}  // namespace

bool is_qtensor(const NamedTensor& tensor) {
  return attribute_at(tensor, "rebuild") == "_rebuild_qtensor" && qtensor_part(tensor, "data") != nullptr;
}

std::string qtensor_scheme(const NamedTensor& tensor) {
  const Tensor* zero_points = qtensor_part(tensor, "zero_points");
  const bool floats = zero_points != nullptr && is_float(zero_points->dtype);
  return "torch_" + std::string(dtype_name(qtensor_part(tensor, "data")->dtype)) +
         (is_by_tensor(tensor) ? "_tensor"
          : floats             ? "_float_channel"
                               : "_channel");
}

std::optional<ZeroPointRange> qtensor_zero_points(const NamedTensor& tensor) {
  ZeroPointRange range;
  if (is_by_tensor(tensor)) {
    const Json zero_point = attribute_at(tensor, "zero_point");
    if (!zero_point.is_number_integer()) return std::nullopt;
    range.zero_points = {zero_point.get<double>()};
  } else {
    const Tensor* zero_points = qtensor_part(tensor, "zero_points");
    if (zero_points == nullptr || is_float(zero_points->dtype)) return std::nullopt;
    range.zero_points = numbers_of(*zero_points);
  }
  const DType dtype = qtensor_part(tensor, "data")->dtype;
  range.least = dtype == DType::qint8    ? -128
                : dtype == DType::qint32 ? std::numeric_limits<int32_t>::min()
                                         : 0;
  range.greatest = dtype == DType::qint8    ? 127
                   : dtype == DType::qint32 ? std::numeric_limits<int32_t>::max()
                                            : 255;
  return range;
}

std::optional<Tensor> dense_of_qtensor(const NamedTensor& tensor) {
  if (!is_qtensor(tensor)) return std::nullopt;
  const Tensor& codes = *qtensor_part(tensor, "data");
  const bool packed = codes_in_a_byte(codes.dtype) > 1;
  if (packed ? !is_whole(tensor, codes) : codes.shape != tensor.shape) return std::nullopt;
  const std::optional<ZeroPointRange> integers = qtensor_zero_points(tensor);
  if (integers && !in_range(*integers)) return std::nullopt;
  const std::vector<int32_t> fields = qtensor_codes(codes, numel_of(tensor.shape));
  std::vector<std::byte> bytes(fields.size() * sizeof(float));
  if (is_by_tensor(tensor)) {
    const Json scale = attribute_at(tensor, "scale");
    if (!scale.is_number() || !integers) return std::nullopt;
    const auto factor = static_cast<float>(scale.get<double>());
    const auto zero_point = static_cast<int32_t>(integers->zero_points[0]);
    for (size_t i = 0; i < fields.size(); ++i)
      store_float(DType::float32, bytes, i, by_tensor(fields[i], zero_point, factor, packed));
    return make_tensor(DType::float32, tensor.shape, std::move(bytes), tensor.name);
  }
  const Tensor *scales = qtensor_part(tensor, "scales"), *zero_points = qtensor_part(tensor, "zero_points");
  const Json axis = attribute_at(tensor, "axis");
  if (scales == nullptr || zero_points == nullptr || !axis.is_number_integer() || !is_float(scales->dtype) ||
      (packed && integers))
    return std::nullopt;
  const auto along = axis.get<size_t>();
  if (along >= tensor.shape.size()) return std::nullopt;
  const std::vector<double> factors = numbers_of(*scales), zeros = numbers_of(*zero_points);
  const auto channels = static_cast<size_t>(tensor.shape[along]);
  if (factors.size() != channels || zeros.size() != channels) return std::nullopt;
  const auto inner = static_cast<size_t>(numel_of(std::span(tensor.shape).subspan(along + 1)));
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t channel = i / inner % channels;
    store_float(DType::float32, bytes, i, by_channel(fields[i], zeros[channel], factors[channel], !integers));
  }
  return make_tensor(DType::float32, tensor.shape, std::move(bytes), tensor.name);
}

}  // namespace qcts
