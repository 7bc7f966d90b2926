// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/first_recipes.h"

#include "suites/base/run_error.h"
#include "suites/cli/commands.h"

namespace qcts::cli {
namespace {

// Functions and configurations of torchao 0.9.0 and 0.13.0, quantization/quant_api.py. `recipe_09`: the same
// under --as torchao_0.9, if it has another scheme or policy there.
struct NamedRecipe {
  std::string_view word;
  FirstRecipe recipe, recipe_09 = {};
};
constexpr std::string_view kV1 = "torchao_v1";
constexpr NamedRecipe kWritten[] = {
    {"int4_weight_only", {"int4_tinygemm_g128", "weight_only", kV1}},
    {"int8_weight_only", {"int8_row_v1", "weight_only", kV1}},
    {"int8_dynamic_activation_int8_weight", {"int8_row_v1", "dyn_row_sym_127", kV1}},
    {"int8_dynamic_activation_int4_weight", {"intx_b4_g32_sym", "dyn_token_asym_s32", kV1}},
    {"int4_dynamic_activation_int4_weight",
     {"intx_b4_axis_s32_sym", "dyn_token_sym_b4_s32", kV1},
     {"intx_b4_axis_sym", "dyn_token_sym_b4", kV1}},
    {"float8_weight_only", {"fp8_row", "weight_only", kV1}},
    {"float8_dynamic_activation_float8_weight",
     {"fp8_e4m3_tensor", "dyn_tensor", kV1},
     {"fp8_e4m3_tensor", "dyn_tensor_recip", kV1}},
    {"float8_static_activation_float8_weight",
     {"fp8_e4m3_tensor", "static_tensor", kV1},
     {"fp8_e4m3_tensor", "static_tensor_recip", kV1}},
    {"IntxWeightOnlyConfig", {"intx_b8_axis_sym", "weight_only", kV1}},
    {"Int8DynamicActivationIntxWeightConfig", {"intx_b8_g32_sym", "dyn_token_asym_s32", kV1}},
};

struct UnwrittenRecipe {
  std::string_view word, made;
};
constexpr UnwrittenRecipe kUnwritten[] = {
    {"uintx_weight_only", "AffineQuantizedTensor with UintxAQTTensorImpl"},
    {"UIntXWeightOnlyConfig", "AffineQuantizedTensor with UintxAQTTensorImpl"},
    {"fpx_weight_only", "AffineQuantizedTensor with FloatxTensorCoreAQTTensorImpl"},
    {"FPXWeightOnlyConfig", "AffineQuantizedTensor with FloatxTensorCoreAQTTensorImpl"},
    {"gemlite_uintx_weight_only", "AffineQuantizedTensor with GemliteAQTTensorImpl"},
    {"GemliteUIntXWeightOnlyConfig", "AffineQuantizedTensor with GemliteAQTTensorImpl"},
    {"int8_dynamic_activation_int8_semi_sparse_weight",
     "LinearActivationQuantizedTensor with SemiSparseAQTTensorImpl"},
    {"Float8DynamicActivationFloat8SemiSparseWeightConfig",
     "LinearActivationQuantizedTensor with CutlassSemiSparseTensorImpl"},
    {"Float8DynamicActivationInt4WeightConfig", "Int4PreshuffledTensor"},
    {"FbgemmConfig", "FbgemmFp8Tensor, Int4Tensor or Int4PreshuffledTensor"},
};

// Configurations that make another class in each of their versions.
struct VersionedConfig {
  std::string_view word, first, today;
};
constexpr VersionedConfig kVersioned[] = {
    {"Int4WeightOnlyConfig", "int4_weight_only", "int4_plain_g128"},
    {"Int8WeightOnlyConfig", "int8_weight_only", "int8_row"},
    {"Int8DynamicActivationInt8WeightConfig", "int8_dynamic_activation_int8_weight",
     "int8_row --activation dyn_row_sym"},
    {"Int8DynamicActivationInt4WeightConfig", "int8_dynamic_activation_int4_weight",
     "intx_b4_g32_sym --activation dyn_token_asym"},
    {"Int4DynamicActivationInt4WeightConfig", "int4_dynamic_activation_int4_weight", ""},
    {"Float8WeightOnlyConfig", "float8_weight_only", "fp8_row"},
    {"Float8DynamicActivationFloat8WeightConfig", "float8_dynamic_activation_float8_weight",
     "fp8_e4m3_tensor --activation dyn_tensor"},
    {"Float8StaticActivationFloat8WeightConfig", "float8_static_activation_float8_weight",
     "fp8_e4m3_tensor --activation static_tensor"},
};

}  // namespace

const FirstRecipe* find_first_recipe(std::string_view word, std::string_view dialect) {
  for (const NamedRecipe& named : kWritten) {
    if (named.word != word) continue;
    return dialect == "torchao_0.9" && !named.recipe_09.scheme.empty() ? &named.recipe_09 : &named.recipe;
  }
  const std::string name(word);
  for (const UnwrittenRecipe& unwritten : kUnwritten)
    if (unwritten.word == word)
      throw UsageError(name + " makes " + std::string(unwritten.made) +
                       ", which qcts can read but not write");
  for (const VersionedConfig& config : kVersioned)
    if (config.word == word)
      throw UsageError(name + ": version 1 is --scheme " + std::string(config.first) +
                       (config.today.empty() ? "" : ", version 2 --scheme " + std::string(config.today)));
  if (word == "ModuleFqnToConfig")
    throw UsageError(
        "ModuleFqnToConfig names a recipe per module: pass one recipe, and choose its modules with "
        "--include");
  return nullptr;
}

}  // namespace qcts::cli
