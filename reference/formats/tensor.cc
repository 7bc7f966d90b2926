// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "reference/formats/refusal.h"

namespace qcts {
namespace {

struct DTypeInfo {
  std::string_view name;
  uint32_t bits;
};

// In the order of DType. Bits per element as torch counts elements (c10/core/ScalarType.h): packed sub-byte
// types hold several codes in an eight-bit element.
constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"float32", 32},
    {"float64", 64},
    {"float16", 16},
    {"bfloat16", 16},
    {"float8_e4m3fn", 8},
    {"float8_e5m2", 8},
    {"float8_e4m3fnuz", 8},
    {"float8_e5m2fnuz", 8},
    {"float8_e8m0fnu", 8},
    {"float4_e2m1fn_x2", 8},
    {"int8", 8},
    {"uint8", 8},
    {"int16", 16},
    {"uint16", 16},
    {"int32", 32},
    {"uint32", 32},
    {"int64", 64},
    {"uint64", 64},
    {"bool", 8},
    {"complex32", 32},
    {"complex64", 64},
    {"complex128", 128},
    {"qint8", 8},
    {"quint8", 8},
    {"qint32", 32},
    {"quint4x2", 8},
    {"quint2x4", 8},
    {"bits8", 8},
    {"bits16", 16},
    {"bits1x8", 8},
    {"bits2x4", 8},
    {"bits4x2", 8},
    {"float6_e2m3fn", 6},
    {"float6_e3m2fn", 6},
}};

// An expanded view can claim any size; it is materialised up to this many bytes beyond its storage.
constexpr uint64_t kExpandedBytesLimit = uint64_t{1} << 30;

// Copies the elements of dimension `dim` and the later ones, `item` bytes each.
void copy_strided(const Tensor& tensor, size_t item, std::byte* out) {
  const size_t dims = tensor.shape.size();
  std::vector<int64_t> index(dims, 0);
  const std::byte* base = tensor.storage->bytes.data();
  int64_t at = tensor.offset_elems;
  const int64_t count = tensor.numel();
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out, base + static_cast<size_t>(at) * item, item);
    out += item;
    for (size_t d = dims; d-- > 0;) {
      at += tensor.stride[d];
      if (++index[d] < tensor.shape[d]) break;
      at -= tensor.stride[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::string_view dtype_name(DType dtype) { return kInfo.at(static_cast<size_t>(dtype)).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); ++i) {
    if (kInfo[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

uint32_t dtype_bits(DType dtype) { return kInfo.at(static_cast<size_t>(dtype)).bits; }

int64_t numel_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool wraps = false, zero = false;
  for (int64_t size : shape) {
    if (size < 0) refuse(RefusalClass::Overflow, "negative dimension " + std::to_string(size));
    if (size == 0)
      zero = true;
    else if (__builtin_mul_overflow(count, size, &count))
      wraps = true;
  }
  if (wraps) refuse(RefusalClass::Overflow, "the product of the dimensions does not fit in 63 bits");
  return zero ? 0 : count;
}

std::vector<int64_t> contiguous_stride(std::span<const int64_t> shape) {
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    if (__builtin_mul_overflow(stride[d], std::max<int64_t>(shape[d], 1), &stride[d - 1])) {
      refuse(RefusalClass::Overflow, "a stride does not fit in 63 bits");
    }
  }
  return stride;
}

uint64_t bytes_of(DType dtype, std::span<const int64_t> shape) {
  const unsigned __int128 bits = static_cast<unsigned __int128>(numel_of(shape)) * dtype_bits(dtype);
  const unsigned __int128 bytes = (bits + 7) / 8;
  if (bytes > INT64_MAX) refuse(RefusalClass::Overflow, "a tensor's bytes do not fit in 63 bits");
  return static_cast<uint64_t>(bytes);
}

int64_t Tensor::numel() const { return numel_of(shape); }

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && stride[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

std::span<const std::byte> row_major_view(const Tensor& tensor, std::vector<std::byte>& scratch) {
  const uint64_t bytes = bytes_of(tensor.dtype, tensor.shape);
  if (bytes == 0) return {};
  if (tensor.is_contiguous()) {
    return tensor.storage->bytes.subspan(
        static_cast<size_t>(tensor.offset_elems) * dtype_bits(tensor.dtype) / 8, bytes);
  }
  if (bytes > tensor.storage->bytes.size() && bytes > kExpandedBytesLimit) {
    refuse(RefusalClass::LimitExceeded, "an expanded view of " + std::to_string(bytes) +
                                            " bytes over a storage of " +
                                            std::to_string(tensor.storage->bytes.size()) + " bytes");
  }
  scratch.resize(bytes);
  copy_strided(tensor, dtype_bytes(tensor.dtype), scratch.data());
  return scratch;
}

std::vector<std::byte> row_major_bytes(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  const auto view = row_major_view(tensor, scratch);
  if (!scratch.empty()) return scratch;
  return {view.begin(), view.end()};
}

Tensor make_tensor(DType dtype, std::vector<int64_t> shape, std::vector<std::byte> bytes, std::string key) {
  if (bytes.size() != bytes_of(dtype, shape)) {
    refuse(RefusalClass::TensorBounds, "tensor " + key + ": " + std::to_string(bytes.size()) +
                                           " bytes given, its shape and dtype take " +
                                           std::to_string(bytes_of(dtype, shape)));
  }
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  auto storage = std::make_shared<Storage>();
  storage->bytes = *owner;
  storage->key = std::move(key);
  storage->location = "cpu";
  storage->owner = owner;
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.stride = contiguous_stride(shape);
  tensor.shape = std::move(shape);
  tensor.storage = std::move(storage);
  return tensor;
}

}  // namespace qcts
