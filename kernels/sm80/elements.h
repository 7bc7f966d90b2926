// SPDX-License-Identifier: BSD-3-Clause
// Element types of x and y as template parameters, and the choice between them on the host. A type has
//   kBytes, kChunk     its size; the number of elements in 16 bytes
//   Bits               its bit pattern
//   decode(bits)       the exact float32 value; a NaN becomes some NaN
//   decode_all(bits)   the same, but a NaN keeps its sign and its fraction
//   encode(value)      the value rounded to nearest even; a NaN becomes some NaN
//   encode_all(value)  the same, but a NaN becomes the NaN of kernels/families/elements.h
#pragma once

#include "kernels/abi/qcts_kernel.h"
#include "kernels/cuda/device.h"

namespace qcts::sm80 {
namespace {

using namespace qcts::device;

struct F32 {
  static constexpr int kBytes = 4, kChunk = 4;
  using Bits = uint32_t;
  static QCTS_DEVICE float decode(Bits bits) { return float_of(bits); }
  static QCTS_DEVICE float decode_all(Bits bits) { return decode(bits); }
  static QCTS_DEVICE Bits encode(float value) { return bits_of(value); }
  static QCTS_DEVICE Bits encode_all(float value) { return encode(value); }
};
struct F16 {
  static constexpr int kBytes = 2, kChunk = 8;
  using Bits = uint16_t;
  static QCTS_DEVICE float decode(Bits bits) { return f16_to_f32(bits); }
  static QCTS_DEVICE float decode_all(Bits bits) {
    const uint32_t magnitude = bits & 0x7FFFu, sign = bits & 0x8000u;
    return magnitude > 0x7C00 ? float_of(sign << 16 | 0x7F800000u | magnitude << 13) : decode(bits);
  }
  static QCTS_DEVICE Bits encode(float value) { return f32_to_f16(value); }
  static QCTS_DEVICE Bits encode_all(float value) {
    return value == value ? encode(value) : static_cast<Bits>((bits_of(value) >> 16 & 0x8000) | 0x7E00);
  }
};
struct BF16 {
  static constexpr int kBytes = 2, kChunk = 8;
  using Bits = uint16_t;
  static QCTS_DEVICE float decode(Bits bits) { return bf16_to_f32(bits); }
  static QCTS_DEVICE float decode_all(Bits bits) { return decode(bits); }
  static QCTS_DEVICE Bits encode(float value) { return f32_to_bf16(value); }
  static QCTS_DEVICE Bits encode_all(float value) { return value == value ? encode(value) : Bits{0x7FC0}; }
};

// Rounds as a library's operation does if it computes in float32 and keeps its result in a tensor of T.
template <class T>
QCTS_DEVICE float round_to(float value) {
  return T::decode(T::encode(value));
}

// element() returns element i of a chunk. set_element() sets it.
template <class T>
QCTS_DEVICE typename T::Bits element(const Words4& chunk, int i) {
  if constexpr (T::kBytes == 4) return chunk.word[i];
  return static_cast<typename T::Bits>(chunk.word[i / 2] >> (16 * (i % 2)));
}
template <class T>
QCTS_DEVICE void set_element(Words4& chunk, int i, typename T::Bits bits) {
  if constexpr (T::kBytes == 4)
    chunk.word[i] = bits;
  else if (i % 2 == 0)
    chunk.word[i / 2] = bits;
  else
    chunk.word[i / 2] |= static_cast<uint32_t>(bits) << 16;
}

// Reads or writes one element of a type that is known only at run time.
QCTS_DEVICE float load_float(uint32_t dtype, const void* array, int64_t index) {
  if (dtype == QCTS_F32) return float_of(load_global<uint32_t>(static_cast<const uint32_t*>(array) + index));
  const auto bits = load_global<uint16_t>(static_cast<const uint16_t*>(array) + index);
  return dtype == QCTS_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}
QCTS_DEVICE void store_float(uint32_t dtype, void* array, int64_t index, float value) {
  if (dtype == QCTS_F32)
    store_global(static_cast<uint32_t*>(array) + index, bits_of(value));
  else
    store_global(static_cast<uint16_t*>(array) + index,
                 dtype == QCTS_F16 ? F16::encode_all(value) : BF16::encode_all(value));
}

// On the host.

// Returns call(T()) for the type T of `dtype`, one of F32, F16 and BF16.
template <class Call>
qcts_status with_type(uint32_t dtype, const Call& call) {
  if (dtype == QCTS_F32) return call(F32());
  if (dtype == QCTS_F16) return call(F16());
  return call(BF16());
}

[[maybe_unused]] bool is_multiple_of_16(const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; }
// Returns true if each row of a matrix begins at a multiple of 16 bytes.
[[maybe_unused]] bool has_aligned_rows(const void* first, int64_t rows, int64_t stride_bytes) {
  return is_multiple_of_16(first) && (rows <= 1 || stride_bytes % 16 == 0);
}

}  // namespace
}  // namespace qcts::sm80
