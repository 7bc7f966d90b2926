// SPDX-License-Identifier: BSD-3-Clause
// The common output of all readers: element types, storages and tensors.
// A tensor is a strided view of a storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/compact.h"

namespace qcts {

// Element types under torch's names (torch/csrc/utils/tensor_dtypes.cpp, 2.13).
// The last two are types that only safetensors has.
enum class DType : uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  float8_e4m3fnuz,
  float8_e5m2fnuz,
  float8_e8m0fnu,
  float4_e2m1fn_x2,  // two values in one element of eight bits, as torch counts them
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  boolean,
  complex32,
  complex64,
  complex128,
  qint8,
  quint8,
  qint32,
  quint4x2,
  quint2x4,
  bits8,
  bits16,
  bits1x8,
  bits2x4,
  bits4x2,
  float6_e2m3fn,
  float6_e3m2fn,  // safetensors F6_E2M3 and F6_E3M2, with six bits per element
};
inline constexpr int kDTypeCount = static_cast<int>(DType::float6_e3m2fn) + 1;

std::string_view dtype_name(DType dtype);  // torch's name without "torch.": "bfloat16", "bool"
std::optional<DType> dtype_from_name(std::string_view name);
uint32_t dtype_bits(DType dtype);
inline uint32_t dtype_bytes(DType dtype) { return dtype_bits(dtype) / 8; }  // for types of whole bytes only

// Bytes that several tensors may share. `owner` keeps the mapping or heap block alive.
struct Storage {
  std::span<const std::byte> bytes;
  Text key;       // name in the container: "3" for data/3; the tensor's name in safetensors
  Text location;  // torch's tag: "cpu", "cuda:0"; kept unchanged
  std::shared_ptr<const void> owner;
};

// A strided view of a storage. The reader has checked that every element is inside it.
struct Tensor {
  DType dtype = DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> stride;  // in elements
  int64_t offset_elems = 0;
  std::shared_ptr<const Storage> storage;

  int64_t numel() const;
  bool is_contiguous() const;
};

// Returns the product of the shape. Throws Refused (Overflow) if it does not fit int64.
int64_t numel_of(std::span<const int64_t> shape);
std::vector<int64_t> contiguous_stride(std::span<const int64_t> shape);
// Returns ceil(numel * bits / 8).
uint64_t bytes_of(DType dtype, std::span<const int64_t> shape);

// Returns the elements in row-major order, little-endian; `inspect` hashes these bytes.
std::vector<std::byte> row_major_bytes(const Tensor& tensor);
// Returns the bytes of row_major_bytes() without a copy if the tensor is contiguous.
// Otherwise `scratch` holds the copy.
std::span<const std::byte> row_major_view(const Tensor& tensor, std::vector<std::byte>& scratch);

// Makes a contiguous tensor that owns its bytes.
Tensor make_tensor(DType dtype, std::vector<int64_t> shape, std::vector<std::byte> bytes,
                   std::string key = "");

}  // namespace qcts
