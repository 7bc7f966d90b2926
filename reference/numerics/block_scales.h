// SPDX-License-Identifier: BSD-3-Clause
// Functions that the block-scaled formats share. Some handle small element types in bytes.
// Others handle the order of scales that NVIDIA's block-scaled matrix products read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/formats/tensor.h"

namespace qcts {

// Returns the nearest element, ties to even, saturating.
// The source is torchao 0.18.0 prototype/custom_fp_utils.py, _f32_to_floatx_unpacked.
// `element` is float4_e2m1fn_x2, float6_e2m3fn or float6_e3m2fn. These have no NaN.
// A NaN in x goes through the integer arithmetic of a normal number.
// The low eight bits of the result are kept (choice floatx_nan_bits).
uint8_t floatx_code(DType element, float x);

// Multiply and divide in float32 with x86's rules for NaN.
// The default NaN (Intel SDM volume 1, 4.8.3.7) is the result of 0/0, Inf/Inf and 0*Inf.
// The sign bit of the default NaN is set. An operand's NaN is kept.
// If both operands are NaN, a product keeps the right one and a quotient the left one.
// torch 2.13's kernels are compiled in this way.
float mul_x86(float a, float b);
float div_x86(float a, float b);

// Stores two elements in a byte, the even one in the low nibble.
// The source is torchao 0.18.0 prototype/mx_formats/kernels.py, pack_uint4: low | high << 4 in eight bits.
void store_pair(std::span<std::byte> bytes, int64_t pair, uint8_t even, uint8_t odd);
uint8_t load_nibble(std::span<const std::byte> bytes, int64_t index);
// Stores the low four bits of `code` in a nibble that is 0.
void put_nibble(std::span<std::byte> bytes, int64_t index, int code);

// Returns the shape of swizzled scales as torchao stores it: [32 ceil(rows / 128), 16 ceil(cols / 4)].
// Scales [rows, cols] of one byte each are padded with zeros to tiles of 128 x 4.
// The 512 bytes of a tile are 32 x 16.
// The source is torchao 0.18.0 prototype/mx_formats/utils.py, to_blocked.
// The cuBLAS documentation, "1D block scaling factors layout", describes the tiles.
std::vector<int64_t> swizzled_shape(int64_t rows, int64_t cols);
int64_t swizzled_offset(int64_t cols, int64_t row, int64_t col);
// Convert between row-major [rows, cols] and the tiles.
// unswizzle throws std::invalid_argument if the padding is not zero, since those bytes would be lost.
void swizzle(int64_t rows, int64_t cols, std::span<const std::byte> plain, std::span<std::byte> tiles);
void unswizzle(int64_t rows, int64_t cols, std::span<const std::byte> tiles, std::span<std::byte> plain);
// Describes a byte of the tiles: "row 3, block 2" or "padding".
std::string swizzled_place(int64_t rows, int64_t cols, int64_t offset);

}  // namespace qcts
