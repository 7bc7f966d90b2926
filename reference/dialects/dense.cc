// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/dense.h"

#include "reference/dialects/blocks/blocks.h"
#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/input_scale.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/choices/choices.h"

namespace qcts {

bool is_meta(const NamedTensor& tensor) {
  return tensor.payload.empty() && tensor.attributes.value("device", nlohmann::ordered_json()) == "meta";
}

bool is_plain(const NamedTensor& tensor) {
  const auto beside = [](std::string_view name) { return is_beside_elements(name) || name == "device"; };
  if (tensor.payload.empty() || tensor.payload[0].name != "data" || !tensor.foreign.empty()) return false;
  for (size_t i = 1; i < tensor.payload.size(); ++i)
    if (!beside(tensor.payload[i].name)) return false;
  for (const auto& [name, value] : tensor.attributes.items())
    if (!beside(name)) return false;
  return true;
}

namespace {

// A slice without elements, such as the part of a rank that holds none: no scheme has such a shape.
bool is_empty_weight(const NamedTensor& tensor) {
  const bool of_torch = tensor.type == "DTensor" || tensor.attributes.contains("rebuild");
  return !of_torch && !tensor.payload.empty() && numel_of(tensor.shape) == 0;
}

}  // namespace

std::optional<Tensor> dense_of(const NamedTensor& tensor, std::string_view cpu_layout) {
  if (is_plain(tensor)) return tensor.payload[0].tensor;
  if (!tensor.foreign.empty()) return std::nullopt;
  if (tensor.coded) return dense_of_coded(*tensor.coded, tensor.shape);
  if (tensor.blocks) return dense_of_blocks(*tensor.blocks, tensor.payload[0].tensor, tensor.shape);
  if (const std::optional<NamedTensor> inside = weight_behind_input_scale(tensor))
    return dense_of(*inside, cpu_layout);
  const std::optional<SchemeTensor> quantized = scheme_tensor(tensor, cpu_layout);
  if (!quantized) {
    const std::optional<Tensor> dense = dense_by_dialect(tensor);
    return dense || !is_empty_weight(tensor) ? dense
                                             : make_tensor(tensor.dtype, tensor.shape, {}, tensor.name);
  }
  const WeightShape shape = {quantized->dtype, quantized->n, quantized->k};
  const Scheme& scheme = *quantized->scheme;
  std::vector<std::byte> bytes =
      quantized->layout == kPlain
          ? scheme.dequantize(quantized->planes, shape)
          : scheme.dequantize(scheme.unpack(quantized->planes, shape, quantized->layout), shape);
  return make_tensor(quantized->dtype, tensor.shape, std::move(bytes), tensor.name);
}

std::vector<std::byte> in_dtype(const Tensor& tensor, DType dtype) {
  std::vector<std::byte> bytes = row_major_bytes(tensor);
  if (tensor.dtype == dtype) return bytes;
  std::vector<std::byte> widened(static_cast<size_t>(tensor.numel()) * dtype_bytes(dtype));
  for (int64_t i = 0; i < tensor.numel(); ++i)
    store_float(dtype, widened, i, load_float(tensor.dtype, bytes, i));
  return widened;
}

namespace {

bool names_layout(const NamedTensor& tensor, std::string_view layout) {
  if (tensor.type == layout) return true;
  for (const auto& [name, value] : tensor.attributes.items()) {
    const auto type = value.is_object() ? value.find("_type") : value.end();
    if (type != value.end() && type->is_string() && type->get_ref<const std::string&>().starts_with(layout))
      return true;
  }
  return false;
}

// For a tensor of torch that is not one strided view, says what to save instead. Returns "" for any other.
std::string why_of_torch(const NamedTensor& tensor) {
  const auto attribute = [&](const char* name) {
    return tensor.attributes.value(name, nlohmann::ordered_json());
  };
  if (is_meta(tensor)) return "a tensor on the meta device, whose elements are in no file";
  if (attribute("conj") == true || attribute("neg") == true)
    return "a lazy view: save resolve_conj().resolve_neg()";
  const std::string rebuild = attribute("rebuild").is_string() ? attribute("rebuild").get<std::string>() : "";
  if (rebuild == "_rebuild_qtensor")
    return "one of torch's own quantized tensors, whose zero points or packed view torch does not dequantize";
  if (rebuild == "_rebuild_sparse_tensor") return "a sparse tensor: save its to_dense()";
  if (rebuild == "_rebuild_nested_tensor" || rebuild == "_rebuild_njt")
    return "a nested tensor: save its to_padded_tensor(), or its parts";
  return "";
}

}  // namespace

std::string why_not_dense(const NamedTensor& tensor) {
  if (!tensor.foreign.empty()) return "of " + std::string(tensor.foreign) + ", which qcts cannot read";
  if (tensor.type == "DTensor")
    return "a DTensor's part " +
           tensor.attributes.value("dtensor.local_shape", nlohmann::ordered_json()).dump() +
           " of one rank: save full_tensor(), or gather the ranks with torch.distributed.checkpoint";
  for (const KeptLayout& layout : kept_layouts())
    if (names_layout(tensor, layout.name))
      return std::string(layout.name) +
             " can be read and saved but not dequantized: " + std::string(layout.why);
  if (const std::string why = why_of_torch(tensor); !why.empty()) return why;
  std::string text = tensor.type;
  const auto block = tensor.attributes.find("block_size");
  if (block != tensor.attributes.end()) {
    const bool tuple = block->is_object() && block->contains("_data");
    text += " with block_size " + (tuple ? (*block)["_data"] : *block).dump();
  }
  return text + " does not belong to a scheme that can be dequantized";
}

}  // namespace qcts
