// SPDX-License-Identifier: BSD-3-Clause
// Decodes NF4Tensor. torchao 0.18.0: quantization/quantize_/workflows/nf4/nf4_tensor.py.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/float_schemas.h"
#include "reference/dialects/classes/shape_checks.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

int64_t require_count(const NamedTensor& tensor, const char* attribute) {
  const Json& value = tensor.attributes[attribute];
  if (!value.is_number_integer() || value.get<int64_t>() < 1)
    contradict(tensor, std::string(attribute) + " " + value.dump() + " is not a positive integer");
  return value.get<int64_t>();
}

Recognized recognize_nf4(const NamedTensor& tensor) {
  if (tensor.type != "NF4Tensor") return {};
  for (const char* name : {"block_size", "scaler_block_size"})
    if (!tensor.attributes.contains(name)) return {};
  return {
      "nf4_b" + tensor.attributes["block_size"].dump() + "_s" + tensor.attributes["scaler_block_size"].dump(),
      "plain"};
}

}  // namespace

// Checks the flat parts: two codes per byte, one scaler per block, one factor per block of scalers. n_blocks
// takes no part in dequantizing, and a chunk of torch.split() keeps the n_blocks of the whole tensor.
Outer nf4_outer(const NamedTensor& t) {
  const int64_t elems = numel_of(t.shape), block = require_count(t, "block_size"),
                whole = require_count(t, "n_blocks"), per_factor = require_count(t, "scaler_block_size");
  const int64_t blocks = elems / block;
  if (elems % block || blocks == 0 || whole % blocks || blocks % per_factor || elems % 2)
    contradict(t, shape_text(t.shape) + " is not " + std::to_string(whole) + " blocks of " +
                      std::to_string(block) + " in scaler blocks of " + std::to_string(per_factor) +
                      ", or an equal chunk of them");
  const auto part = [&](const char* name, DType dtype, const std::vector<int64_t>& shape) {
    require_shape(t, name, require_payload(t, name, {dtype}), shape);
  };
  part("quantized_data", DType::uint8, {elems / 2});
  part("quantized_scalers", DType::int8, {blocks});
  part("quantization_factor", t.dtype, {blocks / per_factor});
  part("scaler_mean", t.dtype, {});
  part("nf4", t.dtype, {16});
  return {t.shape, t.dtype};
}

extern const Decoder kDecoder_nf4 = {recognize_nf4};

}  // namespace qcts
