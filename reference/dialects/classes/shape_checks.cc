// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/shape_checks.h"

#include <algorithm>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

std::vector<int64_t> require_integers(const NamedTensor& tensor, std::string_view attribute, int64_t min) {
  const Json& value = tensor.attributes[std::string(attribute)];
  const bool tuple = value.is_object() && value.value("_type", "") == "tuple" && value.contains("_data");
  const Json& list = tuple ? value["_data"] : value;
  std::vector<int64_t> integers;
  bool right = list.is_array();
  for (size_t i = 0; right && i < list.size(); ++i) {
    right = list[i].is_number_integer() &&
            (!list[i].is_number_unsigned() || list[i].get<uint64_t>() <= INT64_MAX) &&
            list[i].get<int64_t>() >= min;
    if (right) integers.push_back(list[i].get<int64_t>());
  }
  if (!right)
    contradict(tensor, std::string(attribute) + " " + value.dump() +
                           " is not a list of integers >= " + std::to_string(min));
  return integers;
}

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void contradict(const NamedTensor& tensor, const std::string& what) {
  refuse(RefusalClass::SubclassSchema, tensor.name + " (" + tensor.type + "): " + what);
}

const Tensor& require_payload(const NamedTensor& tensor, std::string_view name,
                              std::initializer_list<DType> dtypes) {
  const Tensor* part = find_payload(tensor, name);
  if (!part) contradict(tensor, "no tensor " + std::string(name));
  if (dtypes.size() && std::ranges::find(dtypes, part->dtype) == dtypes.end()) {
    std::string wanted;
    for (DType dtype : dtypes) wanted += (wanted.empty() ? "" : " or ") + std::string(dtype_name(dtype));
    contradict(tensor, std::string(name) + " is " + std::string(dtype_name(part->dtype)) + ", not " + wanted);
  }
  return *part;
}

void require_shape(const NamedTensor& tensor, std::string_view name, const Tensor& part,
                   const std::vector<int64_t>& shape) {
  if (part.shape != shape)
    contradict(tensor, std::string(name) + " is " + shape_text(part.shape) + ", but its class needs " +
                           shape_text(shape));
}

DType require_dtype(const NamedTensor& tensor, std::string_view attribute,
                    std::initializer_list<DType> dtypes) {
  const Json& value = tensor.attributes[std::string(attribute)];
  const std::optional<DType> dtype = dtype_of_json(value);
  if (!dtype || std::ranges::find(dtypes, *dtype) == dtypes.end())
    contradict(tensor, std::string(attribute) + " " + value.dump() +
                           " is not a floating-point dtype that this weight can have");
  return *dtype;
}

void require_class_or_null(const NamedTensor& tensor, std::string_view attribute, std::string_view cls) {
  const Json& value = tensor.attributes[std::string(attribute)];
  if (value.is_null() || (value.is_object() && value.value("_type", "") == cls)) return;
  contradict(tensor, std::string(attribute) + " " + value.dump() + " is not of type " + std::string(cls));
}

void require_bool_or_null(const NamedTensor& tensor, std::string_view attribute) {
  const Json& value = tensor.attributes[std::string(attribute)];
  if (!value.is_null() && !value.is_boolean())
    contradict(tensor, std::string(attribute) + " " + value.dump() + " is not a boolean");
}

std::vector<int64_t> require_outer_shape(const NamedTensor& tensor) {
  std::vector<int64_t> shape = require_integers(tensor, "shape", 0);
  if (shape.size() < 2) contradict(tensor, "shape " + shape_text(shape) + " has fewer than two dimensions");
  numel_of(shape);
  return shape;
}

std::vector<int64_t> require_positive_list(const NamedTensor& tensor, std::string_view attribute) {
  return require_integers(tensor, attribute, 1);
}

std::vector<int64_t> blocks_of(const NamedTensor& tensor, const std::vector<int64_t>& shape) {
  std::vector<int64_t> blocks =
      require_integers(tensor, "block_size", shape.empty() || numel_of(shape) ? 1 : 0);
  if (blocks.size() != shape.size())
    contradict(tensor, "block_size " + shape_text(blocks) + " does not fit the shape " + shape_text(shape));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (blocks[i] == 0 ? shape[i] != 0 : shape[i] % blocks[i] != 0)
      contradict(tensor, "block_size " + shape_text(blocks) + " does not divide " + shape_text(shape));
    blocks[i] = blocks[i] == 0 ? 0 : shape[i] / blocks[i];
  }
  return blocks;
}

int64_t require_group(const NamedTensor& tensor, const std::vector<int64_t>& shape, bool divides) {
  const std::vector<int64_t> blocks = require_integers(tensor, "block_size", 1);
  const bool grouped = blocks.size() == shape.size() && std::all_of(blocks.begin(), blocks.end() - 1,
                                                                    [](int64_t block) { return block == 1; });
  if (!grouped)
    contradict(tensor, "block_size " + shape_text(blocks) + " is not one group along K for shape " +
                           shape_text(shape));
  const int64_t group = blocks.back();
  if (divides && (group % 2 || shape.back() % group))
    contradict(tensor, "groups of " + std::to_string(group) + " do not divide " + shape_text(shape));
  return group;
}

std::vector<int64_t> with_last(std::vector<int64_t> shape, int64_t last) {
  shape.back() = last;
  return shape;
}

std::vector<int64_t> transposed_blocks(const std::vector<int64_t>& shape, int64_t group) {
  std::vector<int64_t> blocks = shape;
  blocks.back() = shape[shape.size() - 2];
  blocks[shape.size() - 2] = shape.back() / group;
  return blocks;
}

void require_codes_within(const NamedTensor& tensor, const Tensor& qdata, int bits) {
  if (bits >= 8) return;
  const int low = -(1 << (bits - 1)), high = (1 << (bits - 1)) - 1;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> codes = row_major_view(qdata, scratch);
  for (size_t i = 0; i < codes.size(); ++i) {
    const int code = static_cast<int8_t>(codes[i]);
    if (code < low || code > high)
      contradict(tensor, "qdata holds " + std::to_string(code) + " at element " + std::to_string(i) +
                             ", outside int" + std::to_string(bits));
  }
}

Padded padded_tile(const NamedTensor& tensor, const Tensor& words, const std::vector<int64_t>& shape,
                   int64_t inner_k_tiles) {
  const std::vector<int64_t>& w = words.shape;
  if (inner_k_tiles != 2 && inner_k_tiles != 4 && inner_k_tiles != 8)
    contradict(tensor, "inner_k_tiles " + std::to_string(inner_k_tiles) + " is not 2, 4 or 8");
  if (w.size() != 4 || w[2] != 32 || w[3] != inner_k_tiles / 2 || w[0] > INT32_MAX || w[1] > INT32_MAX)
    contradict(tensor, "words of shape " + shape_text(w) + " are not a tiled layout");
  if (shape[0] > INT32_MAX || shape[1] > INT32_MAX)
    contradict(tensor, "shape " + shape_text(shape) + " is larger than its words");
  const Padded padded = {w[0] * 8, w[1] * 16 * inner_k_tiles};
  const bool n_fits = padded.n == round_up(shape[0], 8) || padded.n == round_up(shape[0], 16);
  if (!n_fits || padded.k != round_up(shape[1], 1024))
    contradict(tensor, "words of shape " + shape_text(w) + " do not hold " + shape_text(shape));
  return padded;
}

}  // namespace qcts
