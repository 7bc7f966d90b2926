// SPDX-License-Identifier: BSD-3-Clause
// Classes and functions that torchao checkpoints name, collected from the sources of torchao 0.5.0, 0.6.1,
// 0.7.0 to 0.13.0, 0.14.1 and 0.15.0 to 0.18.0: subclasses of torch.Tensor, layouts, granularities, enums,
// argument records of quantized tensors, and everything passed to torch.serialization.add_safe_globals. A
// class that moved, or whose __module__ is set to its public alias, is listed under each of its modules.
// Objects of these classes are kept as nodes and never run; reference/dialects interprets them.
#include "reference/formats/pickle/globals.h"

namespace qcts::pickle {
namespace {

constexpr ModuleNames kClasses[] = {
    {"torchao.dtypes.affine_quantized_tensor",
     "AffineQuantizedTensor BlockSparseAQTLayout BlockSparseLayoutType Float8AQTLayout Float8LayoutType "
     "MarlinQQQTensor MarlinSparseAQTLayout MarlinSparseLayoutType PlainAQTLayout SemiSparseAQTLayout "
     "SemiSparseLayoutType TensorCoreTiledAQTLayout TensorCoreTiledLayoutType"},
    {"torchao.dtypes.fbgemm_fp8_tensor", "FbgemmFp8Tensor"},
    {"torchao.dtypes.fbgemm_int4_tensor", "FbgemmInt4Tensor"},
    {"torchao.dtypes.floatx.cutlass_semi_sparse_layout",
     "CutlassSemiSparseLayout CutlassSemiSparseTensorImpl"},
    {"torchao.dtypes.floatx.float8_layout", "Float8AQTTensorImpl Float8Layout"},
    {"torchao.dtypes.floatx.floatx", "FloatxTensorCoreAQTLayout FloatxTensorCoreLayoutType"},
    {"torchao.dtypes.floatx.floatx_tensor_core_layout",
     "FloatxTensorCoreAQTTensorImpl FloatxTensorCoreLayout"},
    {"torchao.dtypes.fpx.fpx", "FpxTensorCoreAQTLayout FpxTensorCoreLayoutType"},
    {"torchao.dtypes.nf4tensor", "NF4Tensor SubclassTensorArgs"},
    {"torchao.dtypes.uint4", "PerChannelSymmetricWeightUInt4Tensor UInt4Tensor"},
    {"torchao.dtypes.uintx.Uintx", "UintxAQTLayout UintxLayoutType UintxTensor"},
    {"torchao.dtypes.uintx.block_sparse_layout", "BlockSparseAQTTensorImpl BlockSparseLayout"},
    {"torchao.dtypes.uintx.cutlass_int4_packed_layout", "CutlassInt4PackedLayout Int4PackedTensorImpl"},
    {"torchao.dtypes.uintx.dyn_int8_act_int4_wei_cpu_layout",
     "DA8W4CPUAQTTensorImpl Int8DynamicActInt4WeightCPULayout"},
    {"torchao.dtypes.uintx.gemlite_layout", "GemliteAQTTensorImpl GemlitePackedLayout"},
    {"torchao.dtypes.uintx.int4_cpu_layout", "Int4CPUAQTTensorImpl Int4CPULayout"},
    {"torchao.dtypes.uintx.int4_xpu_layout", "Int4XPUAQTTensorImpl Int4XPULayout"},
    {"torchao.dtypes.uintx.marlin_qqq_layout", "MarlinQQQAQTTensorImpl MarlinQQQLayout"},
    {"torchao.dtypes.uintx.marlin_qqq_tensor", "MarlinQQQAQTTensorImpl MarlinQQQLayout MarlinQQQTensor"},
    {"torchao.dtypes.uintx.marlin_sparse_layout", "MarlinSparseAQTTensorImpl MarlinSparseLayout"},
    {"torchao.dtypes.uintx.packed_linear_int8_dynamic_activation_intx_weight_layout",
     "PackedLinearInt8DynamicActivationIntxWeightAQTTensorImpl "
     "PackedLinearInt8DynamicActivationIntxWeightLayout Target _AffineQuantizedTensor"},
    {"torchao.dtypes.uintx.plain_layout", "PlainAQTTensorImpl"},
    {"torchao.dtypes.uintx.q_dq_layout", "QDQLayout QDQTensorImpl _Impl"},
    {"torchao.dtypes.uintx.semi_sparse_layout", "SemiSparseAQTTensorImpl SemiSparseLayout"},
    {"torchao.dtypes.uintx.tensor_core_tiled_layout",
     "Int4CPUAQTTensorImpl Int4CPULayout TensorCoreTiledAQTTensorImpl TensorCoreTiledLayout"},
    {"torchao.dtypes.uintx.uint4_layout", "PerChannelSymmetricWeightUInt4Tensor UInt4Tensor"},
    {"torchao.dtypes.uintx.uintx", "UintxAQTLayout UintxLayoutType UintxTensor"},
    {"torchao.dtypes.uintx.uintx_layout", "UintxAQTTensorImpl UintxLayout UintxTensor"},
    {"torchao.dtypes.utils", "Layout LayoutType PlainLayout PlainLayoutType"},
    {"torchao.experimental._linear_8bit_act_xbit_weight_layout",
     "Linear8BitActXBitWeightAQTTensorImpl Linear8BitActXBitWeightLayout Target"},
    {"torchao.experimental.packed_linear_int8_dynamic_activation_intx_weight_layout",
     "PackedLinearInt8DynamicActivationIntxWeightAQTTensorImpl "
     "PackedLinearInt8DynamicActivationIntxWeightAtenTensor "
     "PackedLinearInt8DynamicActivationIntxWeightLayout Target"},
    {"torchao.experimental.q_dq_layout", "QDQLayout _Impl"},
    {"torchao.float8.config",
     "CastConfig Float8GemmConfig Float8LinearConfig Float8LinearRecipeName Float8TypeConfig "
     "ScalingGranularity ScalingType"},
    {"torchao.float8.float8_tensor", "Float8Tensor GemmInputRole LinearMMConfig ScaledMMConfig"},
    {"torchao.float8.float8_training_tensor",
     "Float8TrainingTensor GemmInputRole LinearMMConfig ScaledMMConfig"},
    {"torchao.float8.fsdp_utils",
     "WeightWithDelayedFloat8CastTensor WeightWithDynamicFloat8CastTensor "
     "WeightWithStaticFloat8CastTensor"},
    {"torchao.float8.inference", "Float8MMConfig"},
    {"torchao.optim.subclass_4bit", "OptimState4bit"},
    {"torchao.optim.subclass_8bit", "OptimState8bit"},
    {"torchao.optim.subclass_fp8", "OptimStateFp8"},
    {"torchao.prototype.dtypes.bitnet", "BitnetTensor"},
    {"torchao.prototype.dtypes.floatx.floatx_tensor_core_layout",
     "FloatxTensorCoreAQTTensorImpl FloatxTensorCoreLayout"},
    {"torchao.prototype.dtypes.uint2", "SubclassTensorArgs UInt2Tensor"},
    {"torchao.prototype.dtypes.uintx.block_sparse_layout", "BlockSparseAQTTensorImpl BlockSparseLayout"},
    {"torchao.prototype.dtypes.uintx.cutlass_int4_packed_layout",
     "CutlassInt4PackedLayout Int4PackedTensorImpl"},
    {"torchao.prototype.dtypes.uintx.dyn_int8_act_int4_wei_cpu_layout",
     "DA8W4CPUAQTTensorImpl Int8DynamicActInt4WeightCPULayout"},
    {"torchao.prototype.dtypes.uintx.gemlite_layout", "GemliteAQTTensorImpl GemlitePackedLayout"},
    {"torchao.prototype.dtypes.uintx.marlin_qqq_tensor",
     "MarlinQQQAQTTensorImpl MarlinQQQLayout MarlinQQQTensor"},
    {"torchao.prototype.dtypes.uintx.uintx_layout", "UintxAQTTensorImpl UintxLayout UintxTensor"},
    {"torchao.prototype.dtypes.uintx.uintx_utils", "UintxAQTTensorImpl UintxLayout UintxTensor"},
    {"torchao.prototype.float8_opaque_tensor", "Float8OpaqueTensor"},
    {"torchao.prototype.float8_opaque_tensor.float8_opaque_tensor", "Float8OpaqueTensor"},
    {"torchao.prototype.float8nocompile.kernels.fp8_dynamic_tensorwise", "KernelAlgorithm"},
    {"torchao.prototype.gptq.observer", "GPTQObserverTensor"},
    {"torchao.prototype.int4_opaque_tensor", "Int4OpaqueTensor"},
    {"torchao.prototype.int4_opaque_tensor.int4_opaque_tensor", "Int4OpaqueTensor"},
    {"torchao.prototype.low_bit_optim.subclass_4bit", "OptimState4bit"},
    {"torchao.prototype.low_bit_optim.subclass_8bit", "OptimState8bit"},
    {"torchao.prototype.low_bit_optim.subclass_fp8", "OptimStateFp8"},
    {"torchao.prototype.moe_quant.utils", "FakeExtraDimTensor UseFakeExtraDimTensor"},
    {"torchao.prototype.moe_training.config",
     "Float8TrainingOpConfig Float8TrainingRecipe MXFP8TrainingOpConfig MXFP8TrainingRecipe"},
    {"torchao.prototype.moe_training.tensor",
     "Float8TrainingWeightWrapperTensor MXFP8TrainingWeightWrapperTensor ScaledGroupedMMTensor "
     "TrainingWeightWrapperBaseTensor"},
    {"torchao.prototype.mx_formats.config",
     "MXFP8Dim0CastKernelChoice MXFP8Dim1CastKernelChoice MXGemmKernelChoice ScaleCalculationMode"},
    {"torchao.prototype.mx_formats.mx_tensor", "MXTensor QuantizeTensorToMXKwargs ScaleCalculationMode"},
    {"torchao.prototype.mx_formats.nvfp4_tensor", "NVFP4MMConfig NVFP4Tensor QuantizeTensorToNVFP4Kwargs"},
    {"torchao.prototype.parq.quant.quant_api", "StretchedAffineQuantizedTensor"},
    {"torchao.prototype.quantization.autoquant_v2",
     "AQBFloat16LinearWeight AQDefaultLinearWeight AQFloat16LinearWeight AQFloat32LinearWeight "
     "AQFloat8PerRowScalingDynamicallyQuantizedLinearWeight "
     "AQFloat8PerTensorScalingDynamicallyQuantizedLinearWeight AQFloat8WeightOnlyQuantizedLinearWeight "
     "AQFloatLinearWeight AQInt4G128WeightOnlyQuantizedLinearWeight "
     "AQInt4G256WeightOnlyQuantizedLinearWeight AQInt4G32WeightOnlyQuantizedLinearWeight "
     "AQInt4G64WeightOnlyQuantizedLinearWeight AQInt8DynamicallyQuantizedLinearWeight "
     "AQInt8WeightOnlyQuantizedLinearWeight AQInt8WeightOnlyQuantizedLinearWeight2 "
     "AQInt8WeightOnlyQuantizedLinearWeight3 AutoQuantizableLinearWeight BFloat16Tensor Float16Tensor "
     "Float32Tensor"},
    {"torchao.prototype.quantization.codebook.codebook_quantized_tensor", "CodebookQuantizedTensor"},
    {"torchao.prototype.quantization.codebook_coreml.codebook_quantized_tensor", "CodebookQuantizedTensor"},
    {"torchao.prototype.quantization.codebook_groupwise.codebook_quantized_tensor",
     "CodebookQuantizedPackedTensor"},
    {"torchao.prototype.quantization.dynamic_activation_lut.int8_dynamic_activation_lut_tensor",
     "Int8DynamicActivationLutTensor"},
    {"torchao.prototype.quantization.float8_static_quant.prototype_float8_tensor", "PrototypeFloat8Tensor"},
    {"torchao.prototype.quantization.gguf.gguf_quantized_tensor", "GGUFQuantizedTensor"},
    {"torchao.prototype.quantization.int4", "Int4OpaqueTensor"},
    {"torchao.prototype.quantization.int4.int4_opaque_tensor", "Int4OpaqueTensor"},
    {"torchao.prototype.quantization.int8_lut_tensor.int8_lut_tensor", "Int8LutTensor"},
    {"torchao.prototype.quantization.uintx.uintx_bit_packed_tensor", "UIntxBitPackedTensor"},
    {"torchao.prototype.quantized_training.bitnet",
     "BitNetPacked2bitLinearWeight BitNetTrainingLinearWeight"},
    {"torchao.prototype.quantized_training.int8", "Int8QuantizedTrainingLinearWeight"},
    {"torchao.prototype.quantized_training.int8_mixed_precision",
     "Int8MixedPrecisionTrainingConfig Int8MixedPrecisionTrainingLinearWeight"},
    {"torchao.prototype.sparsity.superblock.blocksparse", "BlockSparseTensor"},
    {"torchao.quantization",
     "Float8Tensor Int4GroupwisePreshuffleTensor Int4MarlinSparseTensor Int4OpaqueTensor "
     "Int4PlainInt32Tensor Int4PreshuffledTensor Int4Tensor Int4TilePackedTo4dTensor Int8Tensor "
     "IntxOpaqueTensor IntxUnpackedTensor IntxUnpackedToInt8Tensor PrototypeFloat8Tensor"},
    {"torchao.quantization.autoquant",
     "AQBFloat16LinearWeight AQDefaultLinearWeight AQFloat16LinearWeight AQFloat32LinearWeight "
     "AQFloat8PerRowScalingDynamicallyQuantizedLinearWeight "
     "AQFloat8PerTensorScalingDynamicallyQuantizedLinearWeight AQFloat8WeightOnlyQuantizedLinearWeight "
     "AQFloatLinearWeight AQGemliteInt4G128WeightOnlyQuantizedLinearWeight "
     "AQGemliteInt4G256WeightOnlyQuantizedLinearWeight AQGemliteInt4G32WeightOnlyQuantizedLinearWeight "
     "AQGemliteInt4G64WeightOnlyQuantizedLinearWeight AQInt4G128WeightOnlyQuantizedLinearWeight "
     "AQInt4G128WeightOnlyQuantizedMarlinSparseLinearWeight AQInt4G256WeightOnlyQuantizedLinearWeight "
     "AQInt4G32WeightOnlyQuantizedLinearWeight AQInt4G64WeightOnlyQuantizedLinearWeight "
     "AQInt8DynamicallyQuantizedLinearWeight AQInt8DynamicallyQuantizedSemiSparseLinearWeight "
     "AQInt8WeightOnlyQuantizedLinearWeight AQInt8WeightOnlyQuantizedLinearWeight2 "
     "AQInt8WeightOnlyQuantizedLinearWeight3 AutoQuantizableLinearWeight BFloat16Tensor Float16Tensor "
     "Float32Tensor"},
    {"torchao.quantization.granularity", "PerAxis PerBlock PerGroup PerRow PerTensor PerToken"},
    {"torchao.quantization.linear_activation_quantized_tensor", "LinearActivationQuantizedTensor"},
    {"torchao.quantization.linear_activation_scale", "WeightTensorWithLinearActivationScaleMetadata"},
    {"torchao.quantization.linear_activation_weight_observed_tensor", "LinearActivationWeightObservedTensor"},
    {"torchao.quantization.linear_activation_weight_observer", "LinearActivationWeightObservedTensor"},
    {"torchao.quantization.observer", "PerRow PerTensor"},
    {"torchao.quantization.prototype.qat.affine_fake_quantized_tensor", "AffineFakeQuantizedTensor"},
    {"torchao.quantization.qat.affine_fake_quantized_tensor",
     "AffineFakeQuantizedTensor _AffineFakeQuantizedTensor"},
    {"torchao.quantization.quant_primitives", "MappingType TorchAODType ZeroPointDomain"},
    {"torchao.quantization.quantize_.common.kernel_preference", "KernelPreference"},
    {"torchao.quantization.quantize_.common.packing_format", "PackingFormat"},
    {"torchao.quantization.quantize_.int4_groupwise_preshuffle_tensor", "Int4GroupwisePreshuffleTensor"},
    {"torchao.quantization.quantize_.workflows.float8.float8_packing_format", "Float8PackingFormat"},
    {"torchao.quantization.quantize_.workflows.float8.float8_sparse_2x4_1d_data_1d_metadata_tensor",
     "Float8Sparse2x4_1DData1DMetadataTensor"},
    {"torchao.quantization.quantize_.workflows.float8.float8_sparse_2x4_2d_data_2d_metadata_tensor",
     "Float8Sparse2x4_2DData2DMetadataTensor"},
    {"torchao.quantization.quantize_.workflows.float8.float8_tensor",
     "Float8Tensor QuantizeTensorToFloat8Kwargs"},
    {"torchao.quantization.quantize_.workflows.float8.sparse_2x4_cutlass_float8_tensor",
     "Sparse2x4CUTLASSFloat8Tensor"},
    {"torchao.quantization.quantize_.workflows.int4.int4_choose_qparams_algorithm",
     "Int4ChooseQParamsAlgorithm"},
    {"torchao.quantization.quantize_.workflows.int4.int4_marlin_sparse_tensor", "Int4MarlinSparseTensor"},
    {"torchao.quantization.quantize_.workflows.int4.int4_opaque_tensor", "Int4OpaqueTensor"},
    {"torchao.quantization.quantize_.workflows.int4.int4_packing_format", "Int4PackingFormat"},
    {"torchao.quantization.quantize_.workflows.int4.int4_plain_int32_tensor", "Int4PlainInt32Tensor"},
    {"torchao.quantization.quantize_.workflows.int4.int4_preshuffled_tensor", "Int4PreshuffledTensor"},
    {"torchao.quantization.quantize_.workflows.int4.int4_tensor", "Int4Tensor"},
    {"torchao.quantization.quantize_.workflows.int4.int4_tile_packed_to_4d_tensor",
     "Int4TilePackedTo4dTensor"},
    {"torchao.quantization.quantize_.workflows.int8.int8_tensor", "Int8Tensor QuantizeTensorToInt8Kwargs"},
    {"torchao.quantization.quantize_.workflows.intx.intx_choose_qparams_algorithm",
     "IntxChooseQParamsAlgorithm"},
    {"torchao.quantization.quantize_.workflows.intx.intx_opaque_tensor", "IntxOpaqueTensor"},
    {"torchao.quantization.quantize_.workflows.intx.intx_packing_format", "IntxPackingFormat"},
    {"torchao.quantization.quantize_.workflows.intx.intx_unpacked_tensor", "IntxUnpackedTensor"},
    {"torchao.quantization.quantize_.workflows.intx.intx_unpacked_to_int8_tensor",
     "IntxUnpackedToInt8Tensor IntxUnpackedToInt8TensorActivationQuantization"},
    {"torchao.quantization.quantize_.workflows.nf4.nf4_tensor", "NF4Tensor SubclassTensorArgs"},
    {"torchao.quantization.subclass",
     "Int4WeightOnlyQuantizedLinearWeight Int8DynamicallyQuantizedLinearWeight "
     "Int8WeightOnlyQuantizedLinearWeight QuantizedLinearWeightBase"},
    {"torchao.quantization.weight_tensor_linear_activation_quantization",
     "WeightTensorWithLinearActivationQuantizationMetadata"},
    {"torchao.sparsity.blocksparse", "BlockSparseTensor"},
    {"torchao.sparsity.prototype.superblock.blocksparse", "BlockSparseTensor"},
    {"torchao.swizzle.swizzle_tensor", "SwizzleTensor"},
};

// Activation quantizers that LinearActivationQuantizedTensor and
// WeightTensorWithLinearActivationQuantizationMetadata refer to.
constexpr ModuleNames kFunctions[] = {
    {"torchao.dtypes.fbgemm_fp8_tensor", "to_fbgemm_fp8"},
    {"torchao.quantization.quant_api",
     "_float8_cutlass_quant _float8_cutlass_quant_sparse _input_activation_quant_func_fp8 "
     "_input_quant_func_dyanmic_fp8 _int4_symm_cutlass_quant _int4_symm_per_token_quant_cutlass "
     "_int8_asymm_per_token_quant _int8_symm_cutlass_quant _int8_symm_per_token_quant "
     "_int8_symm_per_token_reduced_range_quant _int8_symm_per_token_reduced_range_quant_cutlass "
     "_int8_symm_per_token_reduced_range_quant_noop_decode _uint8_asymm_per_token_quant"},
};

}  // namespace

std::span<const ModuleNames> torchao_classes() { return kClasses; }
std::span<const ModuleNames> torchao_functions() { return kFunctions; }

}  // namespace qcts::pickle
