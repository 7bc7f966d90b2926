// SPDX-License-Identifier: BSD-3-Clause
// Builds the states that the encoders of torchao's first generation share: AffineQuantizedTensor around a
// tensor of one layout (dtypes/affine_quantized_tensor.py), and LinearActivationQuantizedTensor around that
// (quantization/linear_activation_quantized_tensor.py). States have the form of Encoder::state.
#pragma once

#include <string_view>

#include "reference/dialects/encoders/encoder.h"

namespace qcts {

using Json = nlohmann::ordered_json;

inline constexpr std::string_view kAffineModule = "torchao.dtypes.affine_quantized_tensor";
inline constexpr std::string_view kAffine = "AffineQuantizedTensor";
inline constexpr std::string_view kActivationModule =
    "torchao.quantization.linear_activation_quantized_tensor";
inline constexpr std::string_view kActivation = "LinearActivationQuantizedTensor";
inline constexpr std::string_view kStaticActivation = "WeightTensorWithLinearActivationQuantizationMetadata";

// A class for the inner tensor, and the class of its layout.
struct LayoutClasses {
  std::string_view module, name, layout_module, layout_class;
};

// The names that some versions have in common: attributes and classes.
struct Names {
  std::string_view inner, layout_attribute;
  LayoutClasses plain, tiles;
};
inline constexpr Names kNames05 = {
    "layout_tensor",
    "layout_type",
    {kAffineModule, "PlainAQTLayout", "torchao.dtypes.utils", "PlainLayoutType"},
    {kAffineModule, "TensorCoreTiledAQTLayout", kAffineModule, "TensorCoreTiledLayoutType"}};
inline constexpr std::string_view kTilesModule = "torchao.dtypes.uintx.tensor_core_tiled_layout";
inline constexpr Names kNames07 = {
    "tensor_impl",
    "_layout",
    {"torchao.dtypes.uintx.plain_layout", "PlainAQTTensorImpl", "torchao.dtypes.utils", "PlainLayout"},
    {kTilesModule, "TensorCoreTiledAQTTensorImpl", kTilesModule, "TensorCoreTiledLayout"}};

// Returns the layout object of `classes` with these fields.
Json layout_json(const LayoutClasses& classes, Json data);
// Marks a layout object that each weight has for itself. Without it, all weights of a file share one.
Json of_one_weight(Json layout);
// Returns an object that all weights of a file share, as they share a configuration's.
Json shared_object(std::string_view type, Json data);
// Returns the state of an AffineQuantizedTensor around `inner`, a wrapper_here(). Its block is [1, group].
Json affine_state(const SchemeTensor& tensor, const Names& names, Json inner, Json code_min, Json code_max,
                  const char* domain);
// Returns the state of a LinearActivationQuantizedTensor around an AffineQuantizedTensor of state `weight`,
// without its quant_kwargs. `function` is a name of quant_api.py.
Json activation_state(const SchemeTensor& tensor, Json weight, std::string_view function);

constexpr TorchaoClass affine_class(std::string_view dialects, std::string_view writers,
                                    WeightRecipe recipe = WeightRecipe::current) {
  return {kAffineModule, kAffine, false, dialects, writers, recipe};
}
constexpr TorchaoClass activation_class(std::string_view dialects, std::string_view writers,
                                        WeightRecipe recipe = WeightRecipe::current) {
  return {kActivationModule, kActivation, false, dialects, writers, recipe};
}

}  // namespace qcts
