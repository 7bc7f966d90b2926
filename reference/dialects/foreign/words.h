// SPDX-License-Identifier: BSD-3-Clause
// Tells scales, tables and codes in the formats of other libraries by the dtype and the name of a tensor.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "reference/formats/tensor.h"

namespace qcts {

// A float that is too narrow to be a weight without a scale.
inline bool is_scaled_dtype(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2fnuz:
    case DType::float4_e2m1fn_x2:
    case DType::float6_e2m3fn:
    case DType::float6_e3m2fn:
      return true;
    default:
      return false;
  }
}

// Codes come in any of these: one code per element, or several packed into a word.
inline bool holds_integers(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::int8:
    case DType::uint8:
    case DType::int16:
    case DType::uint16:
    case DType::int32:
    case DType::uint32:
    case DType::int64:
    case DType::uint64:
      return true;
    default:
      return false;
  }
}

inline std::string_view dtype_word(DType dtype) {
  switch (dtype) {
    case DType::int8:
      return "i8";
    case DType::uint8:
      return "u8";
    case DType::int16:
      return "i16";
    case DType::int32:
      return "i32";
    case DType::uint32:
      return "u32";
    case DType::int64:
      return "i64";
    case DType::float16:
      return "f16";
    case DType::bfloat16:
      return "bf16";
    case DType::float32:
      return "f32";
    case DType::float4_e2m1fn_x2:
      return "f4";
    default:
      return is_scaled_dtype(dtype) ? "f8" : "";
  }
}

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

inline bool contains_any(std::string_view word, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return word.find(part) != word.npos; });
}

// Returns true if the last word of a name says that the parameter is a scale, or a table of values.
inline bool names_scale(std::string_view word) {
  return contains_any(word, {"scale", "scaling", "absmax", "codebook", "palette", "lookup_table",
                             "zero_point", "quant_step", "step_size"}) ||
         is_one_of(word, {"SCB", "lut", "zeros", "qzeros"}) || word.ends_with("_lut");
}

// Returns true if the last word of a name says that the parameter is a weight, or the codes of a weight.
inline bool names_weight(std::string_view word) {
  return contains_any(word, {"weight", "W_q"}) && !names_scale(word);
}

// Returns true if the last word of a name says that the parameter holds codes, provided that floats are next
// to it.
inline bool hints_at_codes(std::string_view word) {
  return contains_any(word, {"packed", "codes", "quantized", "qdata"}) && !names_scale(word);
}

// Returns true if the last word of a name is enough to say that the parameter holds codes.
inline bool is_name_of_codes(std::string_view word) {
  return is_one_of(word, {"qweight", "q_weight", "quant_weight", "weight_packed", "packed_weight",
                          "int_weight", "weight_int", "weight_int8", "weight_q", "weight_codes", "W_q"});
}

// Returns true if the last word of a name says that the parameter is a bias, a mask, or numbers that select
// or place something: "position_ids", "relative_position_index", "tid2eid", "attention_bias_idxs".
inline bool names_other(std::string_view word) {
  constexpr std::string_view kEndings[] = {
      "bias",      "biases", "mask",    "masks",  "index",    "indices",   "indexes",     "idx",
      "idxs",      "id",     "ids",     "inds",   "bucket",   "buckets",   "pos",         "position",
      "positions", "map",    "mapping", "order",  "ordering", "perm",      "permutation", "offset",
      "offsets",   "length", "lengths", "shape",  "shapes",   "size",      "sizes",       "count",
      "counts",    "coords", "bbox",    "tokens", "label",    "labels",    "targets",     "anchors",
      "causal",    "tril",   "triu",    "adj",    "edges",    "neighbors", "tracked",     "steps"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return word.ends_with(ending); });
}

// Returns true if the last word of a name says that the parameter is a table of values that codes select.
inline bool names_table(std::string_view word) {
  return contains_any(word, {"codebook", "palette", "lookup_table", "centroid"}) ||
         is_one_of(word, {"lut"}) || word.ends_with("_lut");
}

inline std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace qcts
