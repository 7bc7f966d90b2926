// SPDX-License-Identifier: BSD-3-Clause
// Source: torchao 0.18.0, quantization/quantize_/workflows/nf4/nf4_tensor.py: get_original_weight,
// dequantize_scalers. Every operation rounds to the weight's dtype.
#include "reference/dialects/classes/nf4.h"

#include <algorithm>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/block_scales.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

int64_t count_at(const NamedTensor& tensor, std::string_view name) {
  const auto value = tensor.attributes.find(name);
  const bool found = value != tensor.attributes.end() && value->is_number_integer();
  return found ? value->get<int64_t>() : 0;
}

std::vector<double> part_numbers(const NamedTensor& tensor, std::string_view name) {
  const Tensor* part = find_payload(tensor, name);
  return part ? numbers_of(*part) : std::vector<double>();
}

// Returns one scaler for each block; empty where the counts contradict each other.
std::vector<float> nf4_scalers(const NamedTensor& tensor, int64_t blocks) {
  const std::vector<double> codes = part_numbers(tensor, "quantized_scalers"),
                            factors = part_numbers(tensor, "quantization_factor"),
                            mean = part_numbers(tensor, "scaler_mean");
  const size_t per_factor = static_cast<size_t>(std::max<int64_t>(0, count_at(tensor, "scaler_block_size")));
  if (per_factor == 0 || mean.size() != 1 || codes.size() != static_cast<size_t>(blocks) ||
      codes.size() != factors.size() * per_factor)
    return {};
  std::vector<float> scalers;
  scalers.reserve(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const float quotient =
        div_in(tensor.dtype, static_cast<float>(codes[i]), static_cast<float>(factors[i / per_factor]));
    scalers.push_back(add_in(tensor.dtype, quotient, static_cast<float>(mean[0])));
  }
  return scalers;
}

}  // namespace

std::optional<Tensor> dense_of_nf4(const NamedTensor& tensor) {
  if (tensor.type != "NF4Tensor") return std::nullopt;
  const int64_t elems = numel_of(tensor.shape), block = count_at(tensor, "block_size");
  const Tensor* pairs = find_payload(tensor, "quantized_data");
  const std::vector<double> table = part_numbers(tensor, "nf4");
  if (!pairs || pairs->numel() * 2 != elems || block < 2 || block % 2 || elems % block || table.size() != 16)
    return std::nullopt;
  const std::vector<float> scalers = nf4_scalers(tensor, elems / block);
  if (scalers.empty()) return std::nullopt;
  const std::vector<std::byte> codes = row_major_bytes(*pairs);
  std::vector<std::byte> out(static_cast<size_t>(elems) * dtype_bytes(tensor.dtype));
  for (int64_t i = 0; i < elems; ++i) {
    const float value = static_cast<float>(table[load_nibble(codes, i ^ 1)]);  // the even element is high
    const float scaler = scalers[static_cast<size_t>(i / block)];
    store_float(tensor.dtype, out, static_cast<size_t>(i), mul_in(tensor.dtype, value, scaler));
  }
  return make_tensor(tensor.dtype, tensor.shape, std::move(out), tensor.name);
}

}  // namespace qcts
