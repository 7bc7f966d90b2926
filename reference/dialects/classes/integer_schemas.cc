// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/integer_schemas.h"

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/shape_checks.h"

namespace qcts {
namespace {

// Slices of no rows keep the scale of the whole tensor where it has one scale.
void require_block_shape(const NamedTensor& t, std::string_view name, const Tensor& part,
                         const std::vector<int64_t>& whole, const std::vector<int64_t>& blocks) {
  const bool one_of_nothing = numel_of(whole) == 0 && part.numel() == 1;
  if (!one_of_nothing) require_shape(t, name, part, blocks);
}

}  // namespace

// int8_tensor.py; scales have the logical dtype in 0.15, float32 since 0.16.
Outer int8_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {DType::int8});
  const std::vector<int64_t> blocks = blocks_of(t, qdata.shape);
  require_block_shape(t, "scale", require_payload(t, "scale", kFloats), qdata.shape, blocks);
  if (const Tensor* zero_point = find_payload(t, "zero_point")) {
    require_payload(t, "zero_point", {DType::int8});
    require_block_shape(t, "zero_point", *zero_point, qdata.shape, blocks);
  }
  require_class_or_null(t, "act_quant_kwargs", "QuantizeTensorToInt8Kwargs");
  require_bool_or_null(t, "reduce_range");
  return {qdata.shape, require_dtype(t, "dtype", kFloats)};
}

// int4_tensor.py: two codes per byte along K, scale and zero_point [K/g, N] (3-D: [B, K/g, N]).
Outer int4_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {DType::int8});
  const std::vector<int64_t> shape = require_outer_shape(t);
  const int64_t group = require_group(t, shape);
  require_shape(t, "qdata", qdata, with_last(shape, shape.back() / 2));
  const Tensor& scale = require_payload(t, "scale", kFloats);
  require_shape(t, "scale", scale, transposed_blocks(shape, group));
  require_shape(t, "zero_point", require_payload(t, "zero_point", {scale.dtype}),
                transposed_blocks(shape, group));
  return {shape, scale.dtype};
}

// int4_plain_int32_tensor.py: eight codes per word along K.
Outer int4_int32_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {DType::int32});
  const std::vector<int64_t> shape = require_outer_shape(t);
  const int64_t group = require_group(t, shape);
  if (shape.back() % 8) contradict(t, "shape " + shape_text(shape) + ": K is not a multiple of 8");
  require_shape(t, "qdata", qdata, with_last(shape, shape.back() / 8));
  const Tensor& scale = require_payload(t, "scale", kFloats);
  require_shape(t, "scale", scale, transposed_blocks(shape, group));
  require_shape(t, "zero_point", require_payload(t, "zero_point", {scale.dtype, DType::int8}),
                transposed_blocks(shape, group));
  return {shape, scale.dtype};
}

// int4_tile_packed_to_4d_tensor.py: bfloat16 only, K padded to 1024, N to 8 (16 on AMD), inner k tiles 8.
Outer int4_tile_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {DType::int32});
  const Tensor& pairs = require_payload(t, "scale_and_zero", {DType::bfloat16});
  const std::vector<int64_t> shape = require_outer_shape(t);
  const int64_t group = require_group(t, shape, false);
  if (shape.size() == 2) {
    const Padded padded = padded_tile(t, qdata, shape, 8);
    if (padded.k % group) contradict(t, "groups of " + std::to_string(group) + " do not divide the padded K");
    require_shape(t, "scale_and_zero", pairs, {padded.k / group, padded.n, 2});
  }
  return {shape, DType::bfloat16};
}

// int4_opaque_tensor.py: A16W4 packs [N, K/2] bytes and [K/g, N, 2] pairs; DA8W4 (act_mapping_type set) packs
// differently.
Outer int4_opaque_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {DType::uint8});
  const Tensor& pairs = require_payload(t, "scale_and_zero", kFloats);
  const std::vector<int64_t> shape = require_outer_shape(t);
  const int64_t group = require_group(t, shape);
  const Json& mapping = t.attributes["act_mapping_type"];
  if (!mapping.is_null()) {
    if (mapping != "symmetric" && mapping != "asymmetric")
      contradict(t, "act_mapping_type " + mapping.dump());
    return {shape, pairs.dtype};
  }
  if (shape.size() != 2) contradict(t, "shape " + shape_text(shape) + " is not 2-D");
  require_shape(t, "qdata", qdata, {shape[0], shape[1] / 2});
  require_shape(t, "scale_and_zero", pairs, {shape[1] / group, shape[0], 2});
  return {shape, pairs.dtype};
}

// intx_unpacked_to_int8_tensor.py: one code per byte; target_dtype int1 .. int8 bounds the codes.
Outer intx_outer(const NamedTensor& t) {
  const Tensor& qdata = require_payload(t, "qdata", {DType::int8});
  const std::vector<int64_t> blocks = blocks_of(t, qdata.shape);
  require_block_shape(t, "scale", require_payload(t, "scale", kFloats), qdata.shape, blocks);
  require_block_shape(
      t, "zero_point",
      require_payload(t, "zero_point", {DType::int8, DType::float32, DType::float16, DType::bfloat16}),
      qdata.shape, blocks);
  const Json& target = t.attributes["target_dtype"];
  const std::string name = data_name(target);
  if (name.size() != 4 || !name.starts_with("int") || name[3] < '1' || name[3] > '8')
    contradict(t, "target_dtype " + target.dump() + " is not int1 .. int8");
  require_codes_within(t, qdata, name[3] - '0');
  return {qdata.shape, require_dtype(t, "dtype", kFloats)};
}

// prototype/quantization/gguf/gguf_quantized_tensor.py: codes with the shape and dtype of the weight.
Outer gguf_outer(const NamedTensor& t) {
  const Tensor& codes = require_payload(t, "int_data", kFloats);
  return {codes.shape, codes.dtype};
}

}  // namespace qcts
