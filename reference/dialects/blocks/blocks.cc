// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/blocks/blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/dialects/blocks/decoders.h"

namespace qcts {
namespace {

BlockDecoder decoder_of(uint32_t type) {
  for (const auto rows : {simple_decoders(), super_decoders(), grid_decoders()})
    for (const BlockDecoderRow& row : rows)
      if (row.type == type) return row.decode;
  return nullptr;
}

// The places of the float16 scales and minima in a block; -1 for none.
struct HalfPlaces {
  uint32_t type;
  int first, second;
};
constexpr HalfPlaces kHalves[] = {
    {2, 0, -1},    {3, 0, 2},    {6, 0, -1},  {7, 0, 2},     {8, 0, -1},  {10, 80, 82},
    {11, 108, -1}, {12, 0, 2},   {13, 0, 2},  {14, 208, -1}, {16, 0, -1}, {17, 0, -1},
    {18, 0, -1},   {19, 0, -1},  {20, 0, -1}, {21, 0, -1},   {22, 0, -1}, {23, 0, -1},
    {34, 52, -1},  {35, 64, -1}, {41, 0, -1}, {42, 0, -1},
};

constexpr uint32_t kIq1M = 29, kTq2 = 35, kMxfp4 = 39, kNvfp4 = 40;

// Returns a scale of the block that is not a finite number: 255 stands for none in MXFP4, and 0x7F for none
// in NVFP4. --check-tensors of llama.cpp refuses the other types' as well (ggml_validate_row_data).
std::optional<double> odd_scale(const GgufType& type, const uint8_t* block) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto odd = [](float value) {
    return std::isfinite(value) ? std::nullopt : std::optional(static_cast<double>(value));
  };
  if (type.id == kIq1M) return odd(half_of_iq1_m(block));
  if (type.id == kMxfp4) return block[0] == 255 ? std::optional(kNan) : std::nullopt;
  if (type.id == kNvfp4) {
    const bool nan = std::any_of(block, block + 4, [](uint8_t byte) { return (byte & 0x7F) == 0x7F; });
    return nan ? std::optional(kNan) : std::nullopt;
  }
  const auto places = std::ranges::find(kHalves, type.id, &HalfPlaces::type);
  if (places == std::end(kHalves)) return std::nullopt;
  for (const int place : {places->first, places->second})
    if (place >= 0)
      if (const std::optional<double> found = odd(half_of_block(block + place))) return found;
  return std::nullopt;
}

bool has_sign_bit(const uint8_t* block) {
  return std::any_of(block, block + 4, [](uint8_t byte) { return byte > 0x7F; });
}

bool has_code_three(const uint8_t* block) {
  return std::any_of(block, block + 64, [](uint8_t byte) { return (byte & byte >> 1 & 0x55) != 0; });
}

}  // namespace

bool can_decode_blocks(const GgufType& type) { return decoder_of(type.id) != nullptr; }

std::string gguf_scheme_name(const GgufType& type) {
  std::string name = "gguf_" + std::string(type.name);
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return name;
}

uint64_t block_formula_bytes(const GgufType& type, const std::vector<int64_t>& shape) {
  return static_cast<uint64_t>(numel_of(shape)) / type.block_elements * type.block_bytes;
}

Tensor dense_of_blocks(const GgufType& type, const Tensor& blocks, const std::vector<int64_t>& shape) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> from = row_major_view(blocks, scratch);
  std::vector<std::byte> bytes(bytes_of(DType::float32, shape));
  const BlockDecoder decode = decoder_of(type.id);
  std::vector<float> values(type.block_elements);
  const size_t count = from.size() / type.block_bytes, run = values.size() * sizeof(float);
  for (size_t i = 0; i < count; ++i) {
    decode(reinterpret_cast<const uint8_t*>(from.data()) + i * type.block_bytes, values.data());
    std::memcpy(bytes.data() + i * run, values.data(), run);
  }
  return make_tensor(DType::float32, shape, std::move(bytes), gguf_scheme_name(type));
}

std::vector<BlockFault> block_faults(const GgufType& type, const Tensor& blocks) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(blocks, scratch);
  BlockFault scale{.kind = BlockFault::Kind::scale}, code{.kind = BlockFault::Kind::code, .value = 3},
      idle{.kind = BlockFault::Kind::idle_bits, .value = 1};
  scale.total = code.total = idle.total = bytes.size() / type.block_bytes;
  for (uint64_t i = 0; i < scale.total; ++i) {
    const auto* block = reinterpret_cast<const uint8_t*>(bytes.data()) + i * type.block_bytes;
    if (const std::optional<double> value = odd_scale(type, block); value && scale.count++ == 0)
      scale.first = i, scale.value = *value;
    if (type.id == kTq2 && has_code_three(block) && code.count++ == 0) code.first = i;
    if (type.id == kNvfp4 && has_sign_bit(block) && idle.count++ == 0) idle.first = i;
  }
  std::vector<BlockFault> faults;
  for (const BlockFault& fault : {scale, code, idle})
    if (fault.count > 0) faults.push_back(fault);
  return faults;
}

}  // namespace qcts
