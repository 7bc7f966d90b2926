// Float8Tensor, MXTensor, NVFP4Tensor and NF4Tensor as torchao 0.18.0 pickles and encodes them: keys in the
// order of each class's __init__, attributes in that of its encoder (optional ones first).
#include <stdexcept>

#include "reference/dialects/attributes.h"
#include "reference/dialects/spell.h"

namespace qcts {
namespace {

Json typed(std::string_view type, Json data) {
  Json object = Json::object();
  object["_type"] = type;
  object["_data"] = std::move(data);
  return object;
}

pickle::Ref dtype_node(DType dtype) { return pickle::global("torch", dtype_name(dtype)); }

// A dataclass: class, no arguments, its fields as state.
pickle::Ref dataclass(pickle::Ref cls, pickle::Ref fields) {
  auto node = std::make_shared<pickle::Node>();
  node->kind = pickle::Kind::new_object;
  node->items = {std::move(cls), pickle::tuple({})};
  node->state = std::move(fields);
  return node;
}

// float8_tensor.py. Sides of a block: those of the weight over those of the scale.
std::vector<int64_t> float8_blocks(const SchemeTensor& tensor) {
  const std::vector<int64_t>& scales = plane(tensor.planes, "scale").shape;
  return {tensor.n / scales[0], tensor.k / scales[1]};
}

void float8_state(const SchemeTensor& tensor, const StateSpelling& spelling) {
  spelling.put_plane("qdata");
  spelling.put_plane("scale");
  std::vector<pickle::Ref> blocks;
  for (int64_t side : float8_blocks(tensor)) blocks.push_back(pickle::integer(side));
  spelling.put("block_size", pickle::list(std::move(blocks)));
  spelling.put("mm_config", pickle::none());
  spelling.put("act_quant_kwargs", pickle::none());
  spelling.put("kernel_preference", spelling.kernel("auto"));
}

Json float8_attributes(const SchemeTensor& tensor) {
  Json attributes = Json::object();
  attributes["block_size"] = float8_blocks(tensor);
  attributes["mm_config"] = nullptr;
  attributes["act_quant_kwargs"] = nullptr;
  attributes["kernel_preference"] = typed("KernelPreference", "AUTO");
  attributes["dtype"] = dtype_json(tensor.dtype);
  return attributes;
}

// mx_tensor.py, as MXDynamicActivationMXWeightConfig(kernel_preference=EMULATED) writes it: the kernels of
// AUTO run on sm100 alone. The scheme's mode is that of the activations.
struct MxNames {
  std::string_view scheme;
  std::string_view elem_dtype;  // torch's, or torchao's own string
  bool is_dtype;
};
constexpr MxNames kMxNames[] = {{"mxfp8_e4m3", "float8_e4m3fn", true},
                                {"mxfp8_e5m2", "float8_e5m2", true},
                                {"mxfp6_e2m3", "fp6_e2m3", false},
                                {"mxfp6_e3m2", "fp6_e3m2", false},
                                {"mxfp4", "float4_e2m1fn_x2", true}};

const MxNames& mx_names(const SchemeTensor& tensor) {
  for (const MxNames& names : kMxNames)
    if (names.scheme == tensor.scheme->meaning()) return names;
  throw std::logic_error("no element type of " + std::string(tensor.scheme->name()));
}

std::string mx_mode(const SchemeTensor& tensor) {
  const std::string_view name = tensor.scheme->name();
  return std::string(name.substr(name.rfind('_') + 1));
}

void mx_state(const SchemeTensor& tensor, const StateSpelling& spelling) {
  const MxNames& names = mx_names(tensor);
  const auto element = [&] {
    return names.is_dtype ? pickle::global("torch", names.elem_dtype) : spelling.name(names.elem_dtype);
  };
  const bool swizzled = tensor.layout == "swizzled";
  spelling.put_plane("qdata");
  spelling.put_plane("scale");
  spelling.put("elem_dtype", element());
  spelling.put("block_size", pickle::integer(32));
  spelling.put("orig_dtype", dtype_node(tensor.dtype));
  spelling.put("kernel_preference", spelling.kernel("emulated"));
  const pickle::Ref fields = pickle::dict();
  const auto field = [&](std::string_view key, pickle::Ref value) {
    fields->pairs.emplace_back(spelling.name(key), std::move(value));
  };
  field("elem_dtype", element());
  field("block_size", pickle::integer(32));
  field("scaling_mode",
        pickle::call(pickle::global("torchao.prototype.mx_formats.config", "ScaleCalculationMode"),
                     {pickle::string(mx_mode(tensor))}));
  field("kernel_preference", spelling.kernel("emulated"));
  field("is_swizzled_scales", pickle::boolean(swizzled));
  spelling.put("act_quant_kwargs",
               dataclass(pickle::global("torchao.prototype.mx_formats.mx_tensor", "QuantizeTensorToMXKwargs"),
                         fields));
  spelling.put("is_swizzled_scales", pickle::boolean(swizzled));
}

Json mx_attributes(const SchemeTensor& tensor) {
  const MxNames& names = mx_names(tensor);
  const Json element = names.is_dtype ? typed("torch.dtype", names.elem_dtype) : Json(names.elem_dtype);
  std::string mode = mx_mode(tensor);
  for (char& c : mode) c = static_cast<char>(c - 'a' + 'A');
  const bool swizzled = tensor.layout == "swizzled";
  Json kwargs = Json::object();
  kwargs["elem_dtype"] = element;
  kwargs["block_size"] = 32;
  kwargs["scaling_mode"] = typed("ScaleCalculationMode", mode);
  kwargs["kernel_preference"] = typed("KernelPreference", "EMULATED");
  kwargs["is_swizzled_scales"] = swizzled;
  Json attributes = Json::object();
  attributes["elem_dtype"] = element;
  attributes["block_size"] = 32;
  attributes["orig_dtype"] = dtype_json(tensor.dtype);
  attributes["kernel_preference"] = typed("KernelPreference", "EMULATED");
  attributes["act_quant_kwargs"] = typed("QuantizeTensorToMXKwargs", kwargs);
  attributes["is_swizzled_scales"] = swizzled;
  return attributes;
}

// nvfp4_tensor.py, as NVFP4WeightOnlyConfig writes it.
void nvfp4_state(const SchemeTensor& tensor, const StateSpelling& spelling) {
  spelling.put_plane("qdata");
  spelling.put_plane("scale");
  spelling.put("block_size", pickle::integer(16));
  spelling.put("orig_dtype", dtype_node(tensor.dtype));
  if (tensor.scheme->name() == "nvfp4_two_level")
    spelling.put_plane("per_tensor_scale");
  else
    spelling.put("per_tensor_scale", pickle::none());
  spelling.put("act_per_tensor_scale", pickle::none());
  spelling.put("is_swizzled_scales", pickle::boolean(tensor.layout == "swizzled"));
  spelling.put("use_triton_kernel", pickle::boolean(false));
  spelling.put("act_quant_kwargs", pickle::none());
}

Json nvfp4_attributes(const SchemeTensor& tensor) {
  Json attributes = Json::object();
  attributes["is_swizzled_scales"] = tensor.layout == "swizzled";
  attributes["use_triton_kernel"] = false;
  attributes["act_quant_kwargs"] = nullptr;
  attributes["block_size"] = 16;
  attributes["orig_dtype"] = dtype_json(tensor.dtype);
  return attributes;
}

// nf4_tensor.py
void nf4_state(const SchemeTensor& tensor, const StateSpelling& spelling) {
  spelling.put("block_size", pickle::integer(64));
  spelling.put("n_blocks", pickle::integer(tensor.n * tensor.k / 64));
  spelling.put("scaler_block_size", pickle::integer(256));
  for (std::string_view part :
       {"quantized_scalers", "quantization_factor", "scaler_mean", "quantized_data", "nf4"})
    spelling.put_plane(part);
}

Json nf4_attributes(const SchemeTensor& tensor) {
  Json attributes = Json::object();
  attributes["block_size"] = 64;
  attributes["n_blocks"] = tensor.n * tensor.k / 64;
  attributes["scaler_block_size"] = 256;
  return attributes;
}

const TorchaoClass kFloat8 = {"torchao.quantization", "Float8Tensor",   {"qdata", "scale"}, true,
                              float8_state,           float8_attributes};
const TorchaoClass kMx = {
    "torchao.prototype.mx_formats.mx_tensor", "MXTensor", {"qdata", "scale"}, true, mx_state, mx_attributes};
const TorchaoClass kNvfp4OneLevel = {"torchao.prototype.mx_formats.nvfp4_tensor",
                                     "NVFP4Tensor",
                                     {"qdata", "scale"},
                                     true,
                                     nvfp4_state,
                                     nvfp4_attributes};
const TorchaoClass kNvfp4TwoLevel = {"torchao.prototype.mx_formats.nvfp4_tensor",
                                     "NVFP4Tensor",
                                     {"qdata", "scale", "per_tensor_scale"},
                                     true,
                                     nvfp4_state,
                                     nvfp4_attributes};
const TorchaoClass kNf4 = {
    "torchao.quantization.quantize_.workflows.nf4.nf4_tensor",
    "NF4Tensor",
    {"quantized_data", "scaler_mean", "quantization_factor", "quantized_scalers", "nf4"},
    false,
    nf4_state,
    nf4_attributes};

}  // namespace

const TorchaoClass* float_class(const Scheme& scheme, std::string_view layout) {
  if (!scheme.find_layout(layout)) return nullptr;
  if (scheme.family() == "fp8_row" || scheme.family() == "fp8") return &kFloat8;
  if (scheme.family() == "mx") return &kMx;
  if (scheme.name() == "nvfp4_one_level") return &kNvfp4OneLevel;
  if (scheme.name() == "nvfp4_two_level") return &kNvfp4TwoLevel;
  return scheme.family() == "nf4" ? &kNf4 : nullptr;
}

}  // namespace qcts
