// SPDX-License-Identifier: BSD-3-Clause
// Sources in torchao 0.7 to 0.15. MarlinSparse: torchao/sparsity/marlin/__init__.py and utils.py
// (unpack_from_marlin_24, sparse_semi_structured_to_dense_cutlass). MarlinQQQ:
// torchao/quantization/marlin_qqq/__init__.py and utils.py (unpack_from_marlin_qqq), and
// dequantize_affine_qqq of quant_primitives.py. Both store the weight transposed, as [K, N], in permuted
// tiles of 16 x 64; a word holds eight codes of four bits, the first one lowest.
#include "reference/dialects/classes/marlin.h"

#include <array>
#include <string>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr int kTileElems = 1024;  // 16 rows of K, 64 columns of N
constexpr int64_t kGroupQqq = 128;

std::string marlin_prefix(const NamedTensor& tensor) {
  return tensor.attributes.contains("original_weight_tensor") ? "original_weight_tensor." : "";
}

std::string class_of(const NamedTensor& tensor, const std::string& name) {
  const auto value = tensor.attributes.find(name);
  return value != tensor.attributes.end() && value->is_object() ? value->value("_type", "") : "";
}

int64_t whole_number(const NamedTensor& tensor, const std::string& name) {
  const auto value = tensor.attributes.find(name);
  return value != tensor.attributes.end() && value->is_number_integer() ? value->get<int64_t>() : 0;
}

// Returns the position in the tile of element j of a packed tile (get_perms_24).
std::array<int, kTileElems> sparse_tile_order() {
  constexpr std::array<int, 8> kInterleave = {0, 2, 4, 6, 1, 3, 5, 7};
  std::array<int, kTileElems> order;
  for (int lane = 0; lane < 32; ++lane)
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 8; ++i) {
        const int column = lane / 4, at = kInterleave[static_cast<size_t>(i)], block = at / 4;
        const int row = 2 * (lane % 4 + at % 4 / 2 * 4) + at % 2;
        order[static_cast<size_t>((lane * 4 + j) * 8 + i)] =
            16 * row + column / 2 * 256 + 8 * (column % 2) + 4 * block + j;
      }
  return order;
}

// Returns the same for MarlinQQQ with groups (get_qqq_weight_perm).
std::array<int, kTileElems> qqq_tile_order() {
  constexpr std::array<int, 8> kInterleave = {0, 2, 4, 6, 1, 3, 5, 7};
  std::array<int, kTileElems> order;
  for (int lane = 0; lane < 32; ++lane)
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 8; ++i) {
        const int at = kInterleave[static_cast<size_t>(i)];
        order[static_cast<size_t>((lane * 4 + j) * 8 + i)] =
            16 * (4 * (lane % 4) + at % 4) + lane / 4 + 8 * (at / 4) + 256 * j;
      }
  return order;
}

// Returns the codes 0..15, row-major [k, n].
std::vector<int> tile_codes(const Tensor& words, int64_t k, int64_t n,
                            const std::array<int, kTileElems>& order) {
  const std::vector<std::byte> bytes = row_major_bytes(words);
  std::vector<int> codes(static_cast<size_t>(k * n));
  for (int64_t index = 0; index < k * n; ++index) {
    const int byte = std::to_integer<int>(bytes[static_cast<size_t>(index / 2)]);
    const int64_t strip = index / (16 * n), inside = index % (16 * n);  // 16 rows of K
    const int64_t place = inside / kTileElems * kTileElems + order[static_cast<size_t>(inside % kTileElems)];
    const int64_t row = strip * 16 + place % 256 / 16, column = place / 256 * 16 + place % 16;
    codes[static_cast<size_t>(row * n + column)] = index % 2 ? byte >> 4 : byte & 15;
  }
  return codes;
}

// Undoes the permutation of scales [groups, n], in runs of order.size(): stored[j] belongs at order[j].
template <size_t Count>
std::vector<float> ordered_scales(const Tensor& stored, const std::array<int, Count>& order) {
  const std::vector<float> values = load_floats(stored.dtype, row_major_bytes(stored));
  std::vector<float> scales(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    scales[i / Count * Count + static_cast<size_t>(order[i % Count])] = values[i];
  return scales;
}

// Returns the position of the metadata word of `row` and `column`
// (_calculate_meta_reordering_scatter_offsets, 16-bit metadata).
int64_t meta_offset(int64_t row, int64_t column, int64_t rows) {
  int64_t r = row / 64 * 64 + row % 2 * 2 + row % 8 / 4 + row % 4 / 2 * 32 + row % 64 / 8 * 4, c = column;
  const int64_t step = (r % 2 == 0 && c % 2 == 1) - (r % 2 == 1 && c % 2 == 0);
  r += step;
  c -= step;
  return c / 2 * rows * 2 + r * 2 + c % 2;
}

bool is_shaped(const Tensor* part, DType dtype, std::vector<int64_t> shape) {
  return part && part->dtype == dtype && part->shape == shape;
}

Tensor dense_from(const NamedTensor& tensor, std::span<const float> values) {
  std::vector<std::byte> out(values.size() * dtype_bytes(tensor.dtype));
  for (size_t i = 0; i < values.size(); ++i) store_float(tensor.dtype, out, i, values[i]);
  return make_tensor(tensor.dtype, tensor.shape, std::move(out), tensor.name);
}

// Returns codes minus 8, row-major [n, k], with 0 where the metadata keeps nothing. nullopt when the metadata
// names a position twice.
std::optional<std::vector<int>> sparse_values(const Tensor& words, const Tensor& meta, int64_t n, int64_t k) {
  const std::vector<int> kept = tile_codes(words, k / 2, n, sparse_tile_order());
  const std::vector<std::byte> bytes = row_major_bytes(meta);
  std::vector<int> values(static_cast<size_t>(n * k), 0);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t quad = 0; quad < k / 4; ++quad) {
      const size_t at = static_cast<size_t>(meta_offset(row, quad / 4, n)) * 2;
      const int word = std::to_integer<int>(bytes[at]) | std::to_integer<int>(bytes[at + 1]) << 8;
      const int nibble = word >> (quad % 4 * 4) & 15;
      if ((nibble & 3) == nibble >> 2) return std::nullopt;
      for (int i = 0; i < 2; ++i)
        values[static_cast<size_t>(row * k + quad * 4 + (i ? nibble >> 2 : nibble & 3))] =
            kept[static_cast<size_t>((quad * 2 + i) * n + row)] - 8;
    }
  return values;
}

// Dequantizes in the weight's dtype (dequantize_affine). The zero point is the middle code, 8, so subtracting
// it gives 0 for pruned weights.
std::optional<Tensor> dense_of_sparse(const NamedTensor& tensor, const std::string& at) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1], group = whole_number(tensor, at + "group_size");
  const Tensor *words = find_payload(tensor, at + "int_data"), *scale = find_payload(tensor, at + "scale"),
               *meta = find_payload(tensor, at + "meta"),
               *zero_point = find_payload(tensor, at + "zero_point");
  if (!zero_point) zero_point = find_payload(tensor, at + "zero");  // 0.15
  if (n % 64 || k % 32 || group < 1 || k % group || !is_shaped(words, DType::int32, {k / 32, 2 * n}) ||
      !is_shaped(meta, DType::int16, {k / 32, 2 * n}) || !scale || !is_float(scale->dtype) ||
      scale->numel() != k / group * n || whole_number(tensor, at + "num_bits") != 4)
    return std::nullopt;
  if (!zero_point || !is_float(zero_point->dtype)) return std::nullopt;
  for (const float value : load_floats(zero_point->dtype, row_major_bytes(*zero_point)))
    if (value != 8) return std::nullopt;
  std::array<int, 64> order;
  for (int i = 0; i < 64; ++i)
    order[static_cast<size_t>(i)] = group == k ? i : i / 8 * 8 + i % 2 * 4 + i % 8 / 2;
  const std::vector<float> scales = ordered_scales(*scale, order);
  const std::optional<std::vector<int>> values = sparse_values(*words, *meta, n, k);
  if (!values) return std::nullopt;
  std::vector<float> dense(values->size());
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column)
      dense[static_cast<size_t>(row * k + column)] =
          round_to(tensor.dtype, static_cast<float>((*values)[static_cast<size_t>(row * k + column)]) *
                                     scales[static_cast<size_t>(column / group * n + row)]);
  return dense_from(tensor, dense);
}

// Computes (code - 8) * (s_group * s_channel), each operation rounded to float16.
std::optional<Tensor> dense_of_qqq(const NamedTensor& tensor, const std::string& at) {
  const int64_t n = tensor.shape[0], k = tensor.shape[1];
  const Tensor *words = find_payload(tensor, at + "int_data"), *groups = find_payload(tensor, at + "s_group"),
               *channels = find_payload(tensor, at + "s_channel");
  if (n % 64 || k % kGroupQqq || whole_number(tensor, at + "group_size") != kGroupQqq ||
      whole_number(tensor, at + "num_bits") != 4 || !is_shaped(words, DType::int32, {k / 16, 2 * n}) ||
      !is_shaped(groups, DType::float16, {k / kGroupQqq, n}) || !is_shaped(channels, DType::float32, {1, n}))
    return std::nullopt;
  std::array<int, 64> group_order;
  for (int i = 0; i < 64; ++i) group_order[static_cast<size_t>(i)] = i / 8 + i % 8 * 8;
  std::array<int, 32> channel_order;
  for (int i = 0; i < 32; ++i) channel_order[static_cast<size_t>(i)] = i / 8 * 2 + i % 8 / 2 * 8 + i % 2;
  const std::vector<float> by_group = ordered_scales(*groups, group_order);
  const std::vector<float> by_channel = ordered_scales(*channels, channel_order);
  const std::vector<int> codes = tile_codes(*words, k, n, qqq_tile_order());
  std::vector<float> dense(codes.size());
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const float channel = round_to(DType::float16, by_channel[static_cast<size_t>(row)]);
      const float scale =
          mul_in(DType::float16, by_group[static_cast<size_t>(column / kGroupQqq * n + row)], channel);
      dense[static_cast<size_t>(row * k + column)] =
          mul_in(DType::float16, static_cast<float>(codes[static_cast<size_t>(column * n + row)] - 8), scale);
    }
  return dense_from(tensor, dense);
}

}  // namespace

std::optional<Tensor> dense_of_marlin(const NamedTensor& tensor) {
  const std::string prefix = marlin_prefix(tensor), impl = prefix + "tensor_impl";
  if (tensor.shape.size() != 2) return std::nullopt;
  if (class_of(tensor, impl) == "MarlinSparseAQTTensorImpl") return dense_of_sparse(tensor, impl + ".");
  if (class_of(tensor, impl) == "MarlinQQQAQTTensorImpl") return dense_of_qqq(tensor, impl + ".");
  return std::nullopt;
}

}  // namespace qcts
