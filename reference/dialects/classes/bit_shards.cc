// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/bit_shards.h"

#include <algorithm>

#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"

namespace qcts {

// A code is split into shards, the widest lowest. A shard byte holds 8 / w codes that are size * w / 8 apart
// along pack_dim.
std::optional<std::vector<double>> bit_shard_codes(const NamedTensor& tensor, const std::string& at,
                                                   const std::vector<int64_t>& shape) {
  const int64_t dims = static_cast<int64_t>(shape.size());
  int64_t dim = integer_at(tensor, at + "pack_dim", dims);
  if (dim < 0) dim += dims;
  if (dim < 0 || dim >= dims) return std::nullopt;
  const int64_t size = shape[static_cast<size_t>(dim)];
  const int64_t inner = numel_of(std::span(shape).subspan(static_cast<size_t>(dim) + 1));
  std::vector<double> codes(static_cast<size_t>(numel_of(shape)), 0);
  int shift = 0;
  for (const int width : {4, 2, 1}) {
    const Tensor* shard = find_payload(tensor, at + "int" + std::to_string(width) + "_shard");
    if (!shard) continue;
    const int64_t held = size / 8 * width;
    std::vector<int64_t> packed = shape;
    packed[static_cast<size_t>(dim)] = held;
    if (size % 8 || shard->dtype != DType::uint8 || shard->shape != packed) return std::nullopt;
    const std::vector<std::byte> bytes = row_major_bytes(*shard);
    for (int64_t i = 0; i < static_cast<int64_t>(codes.size()); ++i) {
      const int64_t along = i / inner % size, before = i / inner / size;
      const size_t from = static_cast<size_t>((before * held + along % held) * inner + i % inner);
      const int part = std::to_integer<int>(bytes[from]) >> (along / held * width) & ((1 << width) - 1);
      codes[static_cast<size_t>(i)] += part << shift;
    }
    shift += width;
  }
  if (integer_at(tensor, at + "bit_width") != shift) return std::nullopt;
  return codes;
}

std::optional<Tensor> dense_of_bit_shards(const NamedTensor& tensor) {
  if (tensor.type != "UintxTensor" || tensor.dtype != DType::uint8) return std::nullopt;
  const std::optional<std::vector<double>> codes = bit_shard_codes(tensor, "", tensor.shape);
  if (!codes) return std::nullopt;
  std::vector<std::byte> bytes(codes->size());
  std::ranges::transform(*codes, bytes.begin(),
                         [](double code) { return static_cast<std::byte>(static_cast<int>(code)); });
  return make_tensor(tensor.dtype, tensor.shape, std::move(bytes), tensor.name);
}

}  // namespace qcts
