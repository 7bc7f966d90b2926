// SPDX-License-Identifier: BSD-3-Clause
// Sources: torchao 0.18.0, prototype/quantization/codebook_coreml/codebook_ops.py (dequantize_codebook) and
// quantization/quant_primitives.py (_dequantize_gguf).
#include <algorithm>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/training.h"
#include "reference/numerics/soft_float.h"

namespace qcts {

// The codebook is [blocks of dimension 0, .., blocks of the last, entries, 1]; block_size -1 is the whole
// dimension.
std::optional<Tensor> dense_of_codebook(const NamedTensor& tensor) {
  const Tensor *codes = find_payload(tensor, "codes"), *table = find_payload(tensor, "codebook");
  if (tensor.type != "CodebookQuantizedTensor" || tensor.payload.size() != 2 || !codes || !table)
    return std::nullopt;
  std::vector<int64_t> blocks = integers_of(attribute_at(tensor, "block_size"));
  if (codes->dtype != DType::uint8 || codes->shape != tensor.shape || !is_float(table->dtype) ||
      blocks.size() != tensor.shape.size() || table->shape.size() != blocks.size() + 2 ||
      table->shape.back() != 1)
    return std::nullopt;
  for (size_t d = 0; d < blocks.size(); ++d) {
    if (blocks[d] == -1) blocks[d] = tensor.shape[d];
    if (blocks[d] < 1 || tensor.shape[d] % blocks[d] || tensor.shape[d] / blocks[d] != table->shape[d])
      return std::nullopt;
  }
  const size_t entries = static_cast<size_t>(table->shape[blocks.size()]);
  const std::vector<double> values = numbers_of(*table), numbers = numbers_of(*codes);
  std::vector<std::byte> out(numbers.size() * dtype_bytes(tensor.dtype));
  for (size_t i = 0; i < numbers.size(); ++i) {
    size_t group = 0, stride = 1, rest = i;
    for (size_t d = blocks.size(); d-- > 0;) {
      const size_t size = static_cast<size_t>(tensor.shape[d]);
      group += rest % size / static_cast<size_t>(blocks[d]) * stride;
      stride *= static_cast<size_t>(table->shape[d]);
      rest /= size;
    }
    if (numbers[i] >= static_cast<double>(entries)) return std::nullopt;
    store_float(tensor.dtype, out, i, values[group * entries + static_cast<size_t>(numbers[i])]);
  }
  return make_tensor(tensor.dtype, tensor.shape, std::move(out), tensor.name);
}

// Every operation rounds to the parts' dtype.
std::optional<Tensor> dense_of_gguf(const NamedTensor& tensor) {
  if (tensor.type != "GGUFQuantizedTensor") return std::nullopt;
  constexpr int64_t kSuperBlock = 256;
  const int64_t per_super = integer_at(tensor, "n_blocks_per_superblock"), elems = numel_of(tensor.shape);
  const Tensor* codes = find_payload(tensor, "int_data");
  if (!codes || codes->shape != tensor.shape || !is_float(codes->dtype) || per_super < 1 ||
      kSuperBlock % per_super || elems % kSuperBlock)
    return std::nullopt;
  const int64_t supers = elems / kSuperBlock;
  const auto part = [&](std::string_view name, int64_t count) {
    const Tensor* found = find_payload(tensor, name);
    const bool fits = found && found->dtype == codes->dtype && found->numel() == count;
    return fits ? numbers_of(*found) : std::vector<double>();
  };
  const std::vector<double> scale_scale = part("super_block_scale_scale", supers),
                            min_scale = part("super_block_min_scale", supers),
                            scales = part("quantized_block_scale", supers * per_super),
                            mins = part("quantized_block_min", supers * per_super);
  if (scale_scale.empty() || min_scale.empty() || scales.empty() || mins.empty()) return std::nullopt;
  const DType dtype = codes->dtype;
  const std::vector<double> numbers = numbers_of(*codes);
  std::vector<std::byte> out(numbers.size() * dtype_bytes(tensor.dtype));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t super = i / kSuperBlock, block = i / static_cast<size_t>(kSuperBlock / per_super);
    const auto level = [&](const std::vector<double>& outer, const std::vector<double>& inner) {
      return mul_in(dtype, static_cast<float>(outer[super]), static_cast<float>(inner[block]));
    };
    const float product = mul_in(dtype, static_cast<float>(numbers[i]), level(scale_scale, scales));
    store_float(tensor.dtype, out, i, add_in(dtype, product, level(min_scale, mins)));
  }
  return make_tensor(tensor.dtype, tensor.shape, std::move(out), tensor.name);
}

}  // namespace qcts
