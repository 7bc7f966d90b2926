// SPDX-License-Identifier: BSD-3-Clause
// Sources. BlockSparseTensor: torchao 0.9 to 0.18, torchao/sparsity/blocksparse.py; its parts are torch's BSR
// (torch/sparse). SparseSemiStructuredTensorCUTLASS: torch 2.13.0, torch/sparse/semi_structured.py, which
// torchao's SemiSparseWeightConfig makes; the order of its parts:
// torch/sparse/_semi_structured_conversions.py, sparse_semi_structured_to_dense_cutlass.
#include "reference/dialects/classes/sparse.h"

#include <algorithm>
#include <cstring>

#include "reference/dialects/classes/shape_checks.h"

namespace qcts {
namespace {

std::optional<std::vector<int64_t>> indices_from(const Tensor& part) {
  const std::vector<std::byte> bytes = row_major_bytes(part);
  std::vector<int64_t> indices(static_cast<size_t>(part.numel()));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (part.dtype == DType::int64) {
      std::memcpy(&indices[i], bytes.data() + i * sizeof(int64_t), sizeof(int64_t));
    } else if (part.dtype == DType::int32) {
      int32_t index;
      std::memcpy(&index, bytes.data() + i * sizeof index, sizeof index);
      indices[i] = index;
    } else {
      return std::nullopt;
    }
  }
  return indices;
}

// Checks that crow ascends from 0 to the number of blocks, and that columns ascend in each row of blocks.
bool are_bsr_indices(const std::vector<int64_t>& crow, const std::vector<int64_t>& col, int64_t columns) {
  if (crow.empty() || crow.front() != 0 || crow.back() != static_cast<int64_t>(col.size()) ||
      !std::ranges::is_sorted(crow))
    return false;
  for (size_t row = 0; row + 1 < crow.size(); ++row)
    for (int64_t at = crow[row]; at < crow[row + 1]; ++at) {
      const int64_t smallest = at == crow[row] ? 0 : col[static_cast<size_t>(at) - 1] + 1;
      if (col[static_cast<size_t>(at)] < smallest || col[static_cast<size_t>(at)] >= columns) return false;
    }
  return true;
}

struct Blocks {
  std::vector<int64_t> rows, columns;  // crow and col indices
  const Tensor* values = nullptr;
  int64_t block = 0;  // elements per side
};

// A small file could describe a matrix of any size; at least one block in 256 must be stored.
constexpr int64_t kMaxPlacesPerBlock = 256;

std::optional<Blocks> blocks_in(const NamedTensor& tensor, const std::string& at) {
  const Tensor *crow = find_payload(tensor, at + "bsr_crow_indices"),
               *col = find_payload(tensor, at + "bsr_col_indices"),
               *values = find_payload(tensor, at + "bsr_values");
  if (!crow || !col || !values || tensor.shape.size() != 2 || values->shape.size() != 3) return std::nullopt;
  const int64_t n = tensor.shape[0], k = tensor.shape[1], block = values->shape[1];
  if (block < 1 || values->shape[2] != block || n % block || k % block ||
      crow->shape != std::vector<int64_t>{n / block + 1} ||
      col->shape != std::vector<int64_t>{values->shape[0]})
    return std::nullopt;
  if (n / block * (k / block) / kMaxPlacesPerBlock > crow->numel() + col->numel()) return std::nullopt;
  std::optional<std::vector<int64_t>> rows = indices_from(*crow), columns = indices_from(*col);
  if (!rows || !columns || !are_bsr_indices(*rows, *columns, k / block)) return std::nullopt;
  return Blocks{std::move(*rows), std::move(*columns), values, block};
}

// torch's to_dense() adds the blocks to zeros (sparse_compressed_to_dense of
// ATen/native/TensorConversions.cpp), so a stored -0 comes out as +0. It does not implement float8, whose
// bits stay.
void clear_sign_of_zeros(DType dtype, std::vector<std::byte>& row_major) {
  if (dtype != DType::float16 && dtype != DType::bfloat16 && dtype != DType::float32 &&
      dtype != DType::float64)
    return;
  const size_t width = dtype_bytes(dtype);
  uint64_t bits = 0;
  for (size_t at = 0; at < row_major.size(); at += width) {
    std::memcpy(&bits, row_major.data() + at, width);
    if (bits == uint64_t{1} << (8 * width - 1)) std::memset(row_major.data() + at, 0, width);
  }
}

struct Kept {
  int first = 0, second = 0;  // kept among a nibble's four elements (float32: two, and equal)
};

// Returns the elements that a nibble keeps; float32 is encoded as if each element were two half-size ones.
std::optional<Kept> kept_by(uint32_t nibble, bool pairs) {
  if (pairs)
    return nibble == 4    ? std::optional<Kept>({0, 0})
           : nibble == 14 ? std::optional<Kept>({1, 1})
                          : std::nullopt;
  const Kept kept = {static_cast<int>(nibble & 3), static_cast<int>(nibble >> 2)};
  return kept.first == kept.second ? std::nullopt : std::optional(kept);
}

// Returns the position of a metadata word. Eight rows by eight, then 2 x 2 words crosswise, then two columns
// of words side by side.
int64_t word_place(int64_t row, int64_t column, int64_t rows, int word_bytes) {
  const int64_t group = word_bytes == 2 ? 32 : 16;
  int64_t r = row / group * group + row % 8 * (group / 8) + row % group / 8, c = column;
  const int64_t step = (r % 2 == 0 && c % 2 == 1) - (r % 2 == 1 && c % 2 == 0);
  r += step;
  c -= step;
  return c / 2 * rows * 2 + r * 2 + c % 2;
}

struct SemiStructured {
  const Tensor *values = nullptr, *meta = nullptr;
  int word_bytes = 2;
  int64_t quad = 4;  // elements per nibble
};

// nullopt: a form for training, with the transpose's parts or CUDA-only metadata.
std::optional<SemiStructured> parts_of_semi_structured(const NamedTensor& tensor) {
  SemiStructured parts = {find_payload(tensor, "packed"), find_payload(tensor, "meta")};
  if (!parts.values || !parts.meta || parts.meta->shape.size() != 2 || tensor.shape.size() != 2)
    return std::nullopt;
  parts.word_bytes = parts.values->dtype == DType::int8 ? 4 : 2;
  parts.quad = parts.values->dtype == DType::float32 ? 2 : 4;
  return parts;
}

std::optional<Tensor> dense_of_semi_structured(const NamedTensor& tensor) {
  const std::optional<SemiStructured> parts = parts_of_semi_structured(tensor);
  if (!parts) return std::nullopt;
  const int64_t n = tensor.shape[0], k = tensor.shape[1], word_quads = parts->word_bytes * 2;
  const size_t width = dtype_bytes(tensor.dtype), word_bytes = static_cast<size_t>(parts->word_bytes);
  const std::vector<std::byte> values = row_major_bytes(*parts->values), meta = row_major_bytes(*parts->meta);
  std::vector<std::byte> dense(static_cast<size_t>(n * k) * width);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t quad = 0; quad < k / parts->quad; ++quad) {
      const int64_t place = word_place(row, quad / word_quads, n, parts->word_bytes);
      uint32_t word = 0;
      std::memcpy(&word, meta.data() + static_cast<size_t>(place) * word_bytes, word_bytes);
      const std::optional<Kept> kept = kept_by(word >> (quad % word_quads * 4) & 15, parts->quad == 2);
      if (!kept) return std::nullopt;
      const int64_t held = parts->quad / 2, from = row * (k / 2) + quad * held,
                    to = row * k + quad * parts->quad;
      for (int64_t i = 0; i < held; ++i)
        std::memcpy(dense.data() + static_cast<size_t>(to + (i ? kept->second : kept->first)) * width,
                    values.data() + static_cast<size_t>(from + i) * width, width);
    }
  return make_tensor(tensor.dtype, tensor.shape, std::move(dense), tensor.name);
}

}  // namespace

std::optional<Tensor> dense_of_blocks(const NamedTensor& tensor, const std::string& at) {
  const std::optional<Blocks> blocks = blocks_in(tensor, at);
  if (!blocks) return std::nullopt;
  const int64_t n = tensor.shape[0], k = tensor.shape[1], block = blocks->block;
  const DType dtype = blocks->values->dtype;
  const size_t width = dtype_bytes(dtype), run = static_cast<size_t>(block) * width;
  const std::vector<std::byte> bytes = row_major_bytes(*blocks->values);
  std::vector<std::byte> dense(static_cast<size_t>(n * k) * width);
  for (size_t strip = 0; strip + 1 < blocks->rows.size(); ++strip)
    for (int64_t b = blocks->rows[strip]; b < blocks->rows[strip + 1]; ++b)
      for (int64_t row = 0; row < block; ++row) {
        const int64_t column = blocks->columns[static_cast<size_t>(b)] * block;
        const int64_t to = (static_cast<int64_t>(strip) * block + row) * k + column;
        std::memcpy(dense.data() + static_cast<size_t>(to) * width,
                    bytes.data() + static_cast<size_t>(b * block + row) * run, run);
      }
  clear_sign_of_zeros(dtype, dense);
  return make_tensor(dtype, tensor.shape, std::move(dense), tensor.name);
}

std::optional<Tensor> dense_of_sparse_weight(const NamedTensor& tensor) {
  if (tensor.type == "BlockSparseTensor") return dense_of_blocks(tensor, "");
  if (tensor.type == "SparseSemiStructuredTensorCUTLASS") return dense_of_semi_structured(tensor);
  return std::nullopt;
}

Outer block_sparse_outer(const NamedTensor& tensor) {
  const Tensor& values = require_payload(tensor, "bsr_values", {});
  if (!blocks_in(tensor, ""))
    contradict(tensor, "blocks of " + shape_text(values.shape) + " do not fit " + shape_text(tensor.shape));
  return {tensor.shape, values.dtype};
}

Outer semi_structured_outer(const NamedTensor& tensor) {
  const std::optional<SemiStructured> parts = parts_of_semi_structured(tensor);
  if (!parts) return {tensor.shape, tensor.dtype};
  const Tensor& values =
      require_payload(tensor, "packed", {DType::int8, DType::float16, DType::bfloat16, DType::float32});
  const Tensor& meta =
      require_payload(tensor, "meta", {parts->word_bytes == 4 ? DType::int32 : DType::int16});
  const int64_t n = tensor.shape[0], k = tensor.shape[1], word_elems = parts->quad * parts->word_bytes * 2;
  if (n % (parts->word_bytes == 2 ? 32 : 16) || k % word_elems)
    contradict(tensor, shape_text(tensor.shape) + " does not hold whole words of metadata");
  require_shape(tensor, "packed", values, {n, k / 2});
  require_shape(tensor, "meta", meta, {n, k / word_elems});
  return {tensor.shape, values.dtype};
}

Outer cusparselt_outer(const NamedTensor& tensor) {
  const Tensor* packed = find_payload(tensor, "packed");
  if (!packed || tensor.shape.size() != 2) return {tensor.shape, tensor.dtype};
  require_payload(tensor, "packed", {DType::int8, DType::float8_e4m3fn, DType::float16, DType::bfloat16});
  if (packed->numel() < tensor.shape[0] * tensor.shape[1] / 2)
    contradict(tensor, "packed of " + shape_text(packed->shape) + " does not hold half of " +
                           shape_text(tensor.shape));
  return {tensor.shape, packed->dtype};
}

}  // namespace qcts
