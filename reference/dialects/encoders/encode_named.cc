// SPDX-License-Identifier: BSD-3-Clause
// Pickles tensors as their dialect reads them: no scheme, parts and attributes as they are.
#include <algorithm>
#include <stdexcept>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/encoders/encode.h"

namespace qcts {
namespace {

// A class's __dict__ in its order, without what the wrapper carries (shape, dtype).
struct PickledClass {
  std::string_view name, module;
  std::vector<std::string_view> state;
};

constexpr std::string_view kQuantization = "torchao.quantization";

// torchao 0.18.0, __new__ and __init__ of each class; the last is torchao 0.13.0's.
const std::vector<PickledClass>& pickled_classes() {
  static const std::vector<PickledClass> all = {
      {"Int8Tensor",
       kQuantization,
       {"qdata", "scale", "block_size", "zero_point", "act_quant_kwargs", "act_quant_scale",
        "act_quant_zero_point", "act_pre_scale", "reduce_range"}},
      {"Float8Tensor",
       kQuantization,
       {"qdata", "scale", "block_size", "mm_config", "act_quant_kwargs", "kernel_preference"}},
      {"Int4Tensor",
       kQuantization,
       {"qdata", "scale", "zero_point", "block_size", "activation_dtype", "act_pre_scale"}},
      {"Int4PlainInt32Tensor",
       kQuantization,
       {"qdata", "scale", "zero_point", "block_size", "act_pre_scale"}},
      {"Int4TilePackedTo4dTensor", kQuantization, {"qdata", "scale_and_zero", "block_size", "act_pre_scale"}},
      {"IntxUnpackedToInt8Tensor",
       kQuantization,
       {"qdata", "scale", "zero_point", "target_dtype", "block_size", "activation_quantization"}},
      {"MXTensor",
       "torchao.prototype.mx_formats.mx_tensor",
       {"qdata", "scale", "elem_dtype", "block_size", "orig_dtype", "kernel_preference", "act_quant_kwargs",
        "is_swizzled_scales"}},
      {"NVFP4Tensor",
       "torchao.prototype.mx_formats.nvfp4_tensor",
       {"qdata", "scale", "block_size", "orig_dtype", "per_tensor_scale", "act_per_tensor_scale",
        "is_swizzled_scales", "use_triton_kernel", "act_quant_kwargs"}},
      {"LinearActivationQuantizedTensor",
       "torchao.quantization.linear_activation_quantized_tensor",
       {"original_weight_tensor", "input_quant_func", "quant_kwargs"}},
  };
  return all;
}

const PickledClass& pickled_class(const NamedTensor& tensor) {
  for (const PickledClass& cls : pickled_classes())
    if (cls.name == tensor.type) return cls;
  throw std::invalid_argument(tensor.name + ": qcts does not write a pickle of " + tensor.type);
}

const Tensor* part_of(const NamedTensor& tensor, std::string_view name) {
  if (const Tensor* part = find_payload(tensor, name)) return part;
  return name == "original_weight_tensor" ? find_payload(tensor, "original_weight") : nullptr;  // ao#2338
}

}  // namespace

pickle::Ref TorchaoEncoder::encode(const NamedTensor& tensor, StorageTable& table) {
  const PickledClass& cls = pickled_class(tensor);
  const pickle::Ref state = pickle::dict();
  const auto add = [&](std::string_view key) {
    const auto attribute_of = tensor.attributes.find(key);
    if (const Tensor* part = part_of(tensor, key)) {
      state->pairs.emplace_back(name(key), tensor_node(*part, table.key_of(part->storage)));
    } else if (attribute_of == tensor.attributes.end()) {
      state->pairs.emplace_back(name(key), pickle::none());
    } else {
      // torchao makes this class with a tuple, which its JSON cannot tell from a list.
      const bool tuple =
          cls.name == "IntxUnpackedToInt8Tensor" && key == "block_size" && attribute_of->is_array();
      state->pairs.emplace_back(
          name(key), attribute(tuple ? Json{{"_type", "tuple"}, {"_data", *attribute_of}} : *attribute_of));
    }
  };
  for (std::string_view key : cls.state) add(key);
  for (const auto& [key, value] : tensor.attributes.items())  // of older versions
    if (key != "shape" && key != "dtype" && std::ranges::find(cls.state, key) == cls.state.end()) add(key);
  return wrapper(pickle::global(cls.module, cls.name), tensor.dtype, tensor.shape, state);
}

}  // namespace qcts
