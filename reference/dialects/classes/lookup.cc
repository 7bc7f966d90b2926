// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/lookup.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// float8_e4m3fnuz and float8_e5m2fnuz (c10/util/Float8_fnuz_cvt.h): a bias one larger than IEEE's, 0x80 is
// the only NaN.
double fnuz_at(std::span<const std::byte> bytes, size_t i, int exponent_bits, int mantissa_bits) {
  const int code = std::to_integer<int>(bytes[i]);
  return code == 0x80 ? std::nan("") : floatx_value(code, exponent_bits, mantissa_bits) / 2;
}

double number_at(DType dtype, std::span<const std::byte> bytes, size_t i) {
  const auto read = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case DType::int8:
      return read(int8_t{});
    case DType::uint8:
      return read(uint8_t{});
    case DType::int16:
      return read(int16_t{});
    case DType::int32:
      return read(int32_t{});
    case DType::int64:
      return read(int64_t{});
    case DType::float8_e4m3fnuz:
      return fnuz_at(bytes, i, 4, 3);
    case DType::float8_e5m2fnuz:
      return fnuz_at(bytes, i, 5, 2);
    default:
      return std::nan("");
  }
}

}  // namespace

Json attribute_at(const NamedTensor& tensor, std::string_view name) {
  const auto value = tensor.attributes.find(name);
  return value == tensor.attributes.end() ? Json(nullptr) : *value;
}

int64_t integer_at(const NamedTensor& tensor, std::string_view name, int64_t otherwise) {
  const Json value = attribute_at(tensor, name);
  return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

std::vector<int64_t> integers_of(const Json& value) {
  const Json& list = value.is_object() && value.contains("_data") ? value["_data"] : value;
  std::vector<int64_t> numbers;
  if (list.is_array())
    for (const Json& item : list) numbers.push_back(item.is_number_integer() ? item.get<int64_t>() : 0);
  return numbers;
}

const Tensor* first_part(const NamedTensor& tensor, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (const Tensor* part = find_payload(tensor, name)) return part;
  return nullptr;
}

void swap_last_axes(Tensor& tensor) {
  const size_t dims = tensor.shape.size();
  if (dims < 2) return;
  std::swap(tensor.shape[dims - 2], tensor.shape[dims - 1]);
  std::swap(tensor.stride[dims - 2], tensor.stride[dims - 1]);
}

Tensor with_axes_swapped(Tensor tensor, const std::string& name) {
  swap_last_axes(tensor);
  std::vector<std::byte> bytes = row_major_bytes(tensor);
  return make_tensor(tensor.dtype, tensor.shape, std::move(bytes), name);
}

bool holds_numbers(DType dtype) {
  return is_float(dtype) || dtype == DType::int8 || dtype == DType::uint8 || dtype == DType::int16 ||
         dtype == DType::int32 || dtype == DType::int64 || dtype == DType::float8_e4m3fnuz ||
         dtype == DType::float8_e5m2fnuz;
}

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(tensor, scratch);
  std::vector<double> numbers(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] =
        is_float(tensor.dtype) ? load_float(tensor.dtype, bytes, i) : number_at(tensor.dtype, bytes, i);
  return numbers;
}

}  // namespace qcts
