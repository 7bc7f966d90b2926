// SPDX-License-Identifier: BSD-3-Clause
// The names of torchao's classes that hold no weight for inference: states of optimizers, weights that are
// trained, lookup tables. Their parts are kept as they are. Sources: torchao 0.9.0, 0.13.0 and 0.18.0,
// optim/subclass_*.py, float8/float8_tensor.py, float8_training_tensor.py and fsdp_utils.py,
// prototype/quantized_training, prototype/moe_training/tensor.py, prototype/quantization/codebook*;
// 0.13.0, quantization/quantize_/workflows/intx/intx_unpacked_tensor.py.
#include "reference/dialects/classes/schema.h"

namespace qcts {
namespace {

using Words = std::vector<std::string_view>;

ClassSchema names_of(std::string_view name, Words tensors, Words optional_tensors, Words attributes) {
  return {name,  std::move(tensors),   std::move(optional_tensors), {}, {}, nullptr,
          false, std::move(attributes)};
}

}  // namespace

const std::vector<ClassSchema>& training_classes() {
  static const std::vector<ClassSchema> all = {
      names_of("OptimState8bit", {"codes", "scale", "qmap"}, {}, {"signed", "block_size"}),
      names_of("OptimState4bit", {"codes", "scale", "qmap"}, {}, {"signed", "_shape", "block_size"}),
      names_of("OptimStateFp8", {"codes", "scale"}, {}, {"block_size"}),
      names_of("BitNetTrainingLinearWeight", {"_data"}, {"_precomputed_scale"}, {}),
      names_of("BitNetPacked2bitLinearWeight", {"int_data", "scale"}, {}, {}),
      names_of("Int8QuantizedTrainingLinearWeight", {"int_data", "scale"}, {}, {}),
      names_of("Int8MixedPrecisionTrainingLinearWeight", {"_data"}, {}, {"config"}),
      names_of("Float8TrainingTensor", {"_data", "_scale"}, {},
               {"_orig_dtype", "_linear_mm_config", "_gemm_input_role", "_axiswise_dim"}),
      names_of("Float8Tensor", {"_data", "_scale"}, {},
               {"_orig_dtype", "_linear_mm_config", "_gemm_input_role", "_axiswise_dim", "_emulate"}),
      names_of("WeightWithDynamicFloat8CastTensor", {"_tensor"}, {"_precomputed_scale"},
               {"_linear_mm_config", "_dtype"}),
      names_of("WeightWithDelayedFloat8CastTensor",
               {"_tensor", "_amax_buffer", "_amax_history_buffer", "_scale_buffer"}, {},
               {"_linear_mm_config", "_dtype", "is_amax_initialized"}),
      names_of("WeightWithStaticFloat8CastTensor", {"_tensor", "_static_scale"}, {},
               {"_linear_mm_config", "_dtype"}),
      names_of("TrainingWeightWrapperBaseTensor", {"_data"}, {}, {"config"}),
      names_of("Float8TrainingWeightWrapperTensor", {"_data"}, {}, {"config"}),
      names_of("MXFP8TrainingWeightWrapperTensor", {"_data"}, {}, {"config"}),
      names_of("ScaledGroupedMMTensor", {"_data"}, {}, {"scaling_type"}),
      names_of("CodebookQuantizedTensor", {"codes", "codebook"}, {"scales"},
               {"block_size", "code_dtype", "_dtype"}),
      names_of("IntxUnpackedTensor", {"qdata", "scale", "zero_point"}, {}, {"target_dtype", "block_size"}),
  };
  return all;
}

}  // namespace qcts
