// SPDX-License-Identifier: BSD-3-Clause
// One affine algebra for blocks of any shape, and the classes that need nothing else:
//   FbgemmFp8Tensor           torchao 0.11 to 0.15, dtypes/fbgemm_fp8_tensor.py: float8_data [N, K] times
//                             scale [N], the inverse of fbgemm's quantize_fp8_row
//   IntxUnpackedTensor        torchao 0.13, quantize_/workflows/intx/intx_unpacked_tensor.py: qdata, scale,
//                             zero_point over block_size
//   IntxUnpackedToInt8Tensor, Int8Tensor
//                             torchao 0.18.0, over block_size
//   Float8Tensor, PrototypeFloat8Tensor
//                             torchao 0.18.0, over blocks that the scale's shape gives: split and view leave
//                             a block_size that nothing reads
//   Int8QuantizedTrainingLinearWeight
//                             torchao 0.5 to 0.18, prototype/quantized_training/int8.py: int_data [N, K]
//                             times scale [N]
#include <algorithm>
#include <cmath>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// Returns the row-major index of an element's block.
int64_t block_of(const Affine& affine, int64_t element) {
  int64_t block = 0, grid = 1;
  for (size_t d = affine.shape.size(); d-- > 0;) {
    block += element % affine.shape[d] / affine.block[d] * grid;
    grid *= affine.shape[d] / affine.block[d];
    element /= affine.shape[d];
  }
  return block;
}

std::vector<int64_t> one_block_a_row(const std::vector<int64_t>& shape) {
  std::vector<int64_t> block(shape.size(), 1);
  if (!block.empty()) block.back() = shape.back();
  return block;
}

struct FlatNames {
  std::string_view type, codes;
  bool zero_points;
};
constexpr FlatNames kFlat[] = {{"FbgemmFp8Tensor", "float8_data", false},
                               {"IntxUnpackedTensor", "qdata", true},
                               {"IntxUnpackedToInt8Tensor", "qdata", true},
                               {"Int8Tensor", "qdata", true},
                               {"Float8Tensor", "qdata", false},
                               {"PrototypeFloat8Tensor", "qdata", false},
                               {"Int8QuantizedTrainingLinearWeight", "int_data", false}};

std::vector<int64_t> flat_blocks(const NamedTensor& tensor, const Tensor& scale) {
  if (tensor.type.ends_with("Float8Tensor")) return blocks_by_scale(tensor.shape, scale);
  if (tensor.type == "FbgemmFp8Tensor" || tensor.type == "Int8QuantizedTrainingLinearWeight")
    return one_block_a_row(tensor.shape);
  return integers_of(attribute_at(tensor, "block_size"));
}

}  // namespace

std::vector<int64_t> blocks_by_scale(const std::vector<int64_t>& shape, const Tensor& scale) {
  if (scale.numel() == 1) return shape;
  if (scale.shape.size() != shape.size()) return {};
  std::vector<int64_t> blocks = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (scale.shape[d] == 0 && shape[d] == 0) continue;
    if (scale.shape[d] < 1 || shape[d] % scale.shape[d]) return {};
    blocks[d] = shape[d] / scale.shape[d];
  }
  return blocks;
}

int64_t block_count(const Affine& affine) {
  if (affine.block.size() != affine.shape.size()) return 0;
  int64_t blocks = 1;
  for (size_t d = 0; d < affine.shape.size(); ++d) {
    if (affine.block[d] <= 0 || affine.shape[d] % affine.block[d]) return 0;
    blocks *= affine.shape[d] / affine.block[d];
  }
  return blocks;
}

bool all_integers(const Tensor& tensor) {
  return std::ranges::all_of(numbers_of(tensor),
                             [](double z) { return std::nearbyint(z) == z && std::fabs(z) <= 256; });
}

// Computes the code, exact in the weight's dtype, times the scale in float32 (torch's compute type for narrow
// types, and the promotion with a float32 scale), then rounds to the weight's dtype. With a floating zero
// point that dtype rounds twice (_dequantize_affine_tinygemm).
Tensor dense_of_affine(const Affine& affine, const std::string& name) {
  const std::vector<double> scales = numbers_of(*affine.scale);
  std::vector<double> zeros(scales.size(), 0);
  if (affine.zero_point) zeros = numbers_of(*affine.zero_point);
  const bool floating = affine.domain == ZeroPoints::floating,
             any_number = affine.domain == ZeroPoints::any_number;
  std::vector<std::byte> out(affine.codes.size() * dtype_bytes(affine.dtype));
  for (size_t i = 0; i < affine.codes.size(); ++i) {
    const size_t block = static_cast<size_t>(block_of(affine, static_cast<int64_t>(i)));
    double code = affine.codes[i] - (floating ? affine.middle : zeros[block]);
    if (any_number) {
      const float zero = static_cast<float>(round_to(affine.dtype, zeros[block]));
      code = sub_in(affine.dtype, static_cast<float>(affine.codes[i]), zero);
    }
    const float product = static_cast<float>(code) * static_cast<float>(scales[block]);
    float value = round_to(affine.dtype, product);
    if (floating) value = add_in(affine.dtype, value, static_cast<float>(zeros[block]));
    store_float(affine.dtype, out, i, value);
  }
  Tensor dense = make_tensor(affine.dtype, affine.shape, std::move(out), name);
  return affine.transposed ? with_axes_swapped(std::move(dense), name) : dense;
}

std::optional<Affine> read_flat_affine(const NamedTensor& tensor) {
  const auto names = std::ranges::find(kFlat, std::string_view(tensor.type), &FlatNames::type);
  if (names == std::ranges::end(kFlat)) return std::nullopt;
  const Tensor* codes = find_payload(tensor, names->codes);
  Affine affine;
  affine.dtype = tensor.dtype;
  affine.shape = tensor.shape;
  affine.scale = find_payload(tensor, "scale");
  affine.impl = tensor.type;
  affine.domain = ZeroPoints::any_number;
  if (!codes || codes->shape != tensor.shape || !holds_numbers(codes->dtype) || !affine.scale ||
      !is_float(affine.scale->dtype))
    return std::nullopt;
  affine.block = flat_blocks(tensor, *affine.scale);
  const int64_t blocks = block_count(affine);
  if (!blocks || affine.scale->numel() != blocks) return std::nullopt;
  if (names->zero_points) affine.zero_point = find_payload(tensor, "zero_point");
  if (affine.zero_point && (affine.zero_point->numel() != blocks || !holds_numbers(affine.zero_point->dtype)))
    return std::nullopt;
  affine.codes = numbers_of(*codes);
  return affine;
}

}  // namespace qcts
