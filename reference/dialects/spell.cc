#include "reference/dialects/spell.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "reference/dialects/attributes.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

// torchao 0.18.0: int8_tensor.py, int4_tile_packed_to_4d_tensor.py under
// quantization/quantize_/workflows; prototype/quantization/int4/int4_opaque_tensor.py.
const TorchaoClass kInt8 = {"torchao.quantization", "Int8Tensor", {"qdata", "scale", "zero_point"}, true};
const TorchaoClass kTilePacked = {
    "torchao.quantization", "Int4TilePackedTo4dTensor", {"qdata", "scale_and_zero"}, true};
const TorchaoClass kOpaque = {
    "torchao.prototype.quantization.int4", "Int4OpaqueTensor", {"qdata", "scale_and_zero"}, false};

std::vector<int64_t> block_size(const SchemeTensor& tensor) {
  return {1, tensor.scheme->group() ? tensor.scheme->group() : tensor.k};
}

pickle::Ref integers(const std::vector<int64_t>& values, pickle::Ref (*make)(std::vector<pickle::Ref>)) {
  std::vector<pickle::Ref> items;
  for (int64_t value : values) items.push_back(pickle::integer(value));
  return make(std::move(items));
}

Tensor plane_tensor(const SchemeTensor& tensor, std::string_view name) {
  const Plane& source = plane(tensor.planes, name);
  return make_tensor(source.dtype, source.shape, source.bytes);
}

pickle::Ref rebuilt(pickle::Ref type, pickle::Ref wrapper, pickle::Ref state) {
  return pickle::call(pickle::global("torch._tensor", "_rebuild_from_type_v2"),
                      {pickle::global("torch._utils", "_rebuild_wrapper_subclass"), std::move(type),
                       std::move(wrapper), std::move(state)});
}

const TorchaoClass& required_class(const SchemeTensor& tensor) {
  const TorchaoClass* cls = torchao_class(*tensor.scheme, tensor.layout);
  if (!cls)
    throw std::invalid_argument("torchao has no class for " + std::string(tensor.scheme->name()) + " in " +
                                tensor.layout);
  return *cls;
}

}  // namespace

const TorchaoClass* torchao_class(const Scheme& scheme, std::string_view layout) {
  if (const TorchaoClass* cls = float_class(scheme, layout)) return cls;
  if (scheme.name() == "int8_row" && layout == "plain") return &kInt8;
  if (scheme.family() == "int4_tinygemm" && layout == "tile_packed_4d") return &kTilePacked;
  if (scheme.family() == "int4_tinygemm" && layout.starts_with("cpu_")) return &kOpaque;
  return nullptr;
}

std::string StorageTable::key_of(const std::shared_ptr<const Storage>& storage) {
  const auto [entry, is_new] = keys_.try_emplace(storage.get(), std::to_string(storages_.size()));
  if (is_new) storages_.push_back(storage);
  return entry->second;
}

pickle::Ref TorchaoSpeller::name(std::string_view text) {
  pickle::Ref& node = names_[std::string(text)];
  if (!node) node = pickle::string(std::string(text));
  return node;
}

pickle::Ref TorchaoSpeller::strided() {
  if (!strided_)
    strided_ =
        pickle::call(pickle::global("torch.serialization", "_get_layout"), {pickle::string("torch.strided")});
  return strided_;
}

pickle::Ref TorchaoSpeller::kernel(std::string_view member) {
  pickle::Ref& node = kernels_[std::string(member)];
  if (!node)
    node = pickle::call(
        pickle::global("torchao.quantization.quantize_.common.kernel_preference", "KernelPreference"),
        {pickle::string(std::string(member))});
  return node;
}

pickle::Ref TorchaoSpeller::spell(const SchemeTensor& tensor, StorageTable& table) {
  const TorchaoClass& cls = required_class(tensor);
  const pickle::Ref type = pickle::global(cls.module, cls.name);
  const std::vector<int64_t> shape = {tensor.n, tensor.k};
  const pickle::Ref wrapper = pickle::tuple(
      {type, pickle::global("torch", dtype_name(tensor.dtype)), integers(shape, pickle::tuple),
       integers(contiguous_stride(shape), pickle::tuple), pickle::integer(0), strided(),
       pickle::call(pickle::global("torch", "device"), {pickle::string("cpu")}), pickle::boolean(false)});
  const pickle::Ref state = pickle::dict();
  const auto put = [&](std::string_view key, pickle::Ref value) {
    state->pairs.emplace_back(name(key), std::move(value));
  };
  const auto put_plane = [&](std::string_view key) {
    const Tensor part = plane_tensor(tensor, key);
    put(key, tensor_node(part, table.key_of(part.storage)));
  };
  if (cls.state) {
    cls.state(tensor, {put, put_plane, [&](std::string_view text) { return name(text); },
                       [&](std::string_view member) { return kernel(member); }});
    return rebuilt(type, wrapper, state);
  }
  put_plane(cls.planes[0]);
  put_plane(cls.planes[1]);
  put("block_size", integers(block_size(tensor), pickle::list));
  if (cls.name == kInt8.name) {
    put_plane("zero_point");
    for (std::string_view key :
         {"act_quant_kwargs", "act_quant_scale", "act_quant_zero_point", "act_pre_scale"})
      put(key, pickle::none());
    put("reduce_range", pickle::boolean(false));
  } else if (cls.name == kTilePacked.name) {
    put("act_pre_scale", pickle::none());
  } else {
    for (std::string_view key : {"act_pre_scale", "qzeros", "compensation", "act_mapping_type"})
      put(key, pickle::none());
  }
  return rebuilt(type, wrapper, state);
}

nlohmann::ordered_json spelled_attributes(const SchemeTensor& tensor) {
  const TorchaoClass& cls = required_class(tensor);
  if (cls.attributes) return cls.attributes(tensor);
  Json attributes = Json::object();
  const Json blocks = block_size(tensor), dtype = dtype_json(tensor.dtype);
  const Json shape = {tensor.n, tensor.k};
  if (cls.name == kInt8.name) {
    attributes["act_quant_kwargs"] = nullptr;
    attributes["reduce_range"] = false;
    attributes["block_size"] = blocks;
    attributes["dtype"] = dtype;
  } else {
    if (cls.name == kOpaque.name) attributes["act_mapping_type"] = nullptr;
    attributes["block_size"] = blocks;
    attributes["shape"] = shape;
  }
  return attributes;
}

EditedZip spell_state_dict(const std::vector<SpelledTensor>& tensors) {
  StorageTable table;
  TorchaoSpeller speller;
  const pickle::Ref root = pickle::dict();
  for (const SpelledTensor& tensor : tensors) {
    pickle::Ref value = tensor.quantized ? speller.spell(*tensor.quantized, table)
                                         : tensor_node(*tensor.plain, table.key_of(tensor.plain->storage));
    root->pairs.emplace_back(pickle::string(tensor.name), std::move(value));
  }
  return {root, table.storages()};
}

SpelledSafetensors spell_safetensors(const std::vector<SpelledTensor>& tensors) {
  SpelledSafetensors spelled;
  Json names = Json::array();
  for (const SpelledTensor& tensor : tensors) {
    names.push_back(tensor.name);
    if (tensor.plain) {
      spelled.entries.emplace_back(tensor.name, *tensor.plain);
      spelled.metadata.emplace_back(tensor.name, python_json({{"_type", "Tensor"}}));
      continue;
    }
    const TorchaoClass& cls = required_class(*tensor.quantized);
    const size_t dot = tensor.name.rfind('.');
    if (dot == std::string::npos)
      throw std::invalid_argument(tensor.name +
                                  ": torchao's safetensors dialect needs a name of module and parameter");
    const std::string prefix = tensor.name.substr(0, dot) + "._" + tensor.name.substr(dot + 1) + "_";
    for (std::string_view part : cls.planes)
      spelled.entries.emplace_back(prefix + std::string(part), plane_tensor(*tensor.quantized, part));
    // The encoder lists optional tensors before required ones: zero_point is Int8Tensor's, per_tensor_scale
    // NVFP4Tensor's.
    Json parts = Json::array();
    for (size_t i = 2; i < cls.planes.size(); ++i) parts.push_back(cls.planes[i]);
    parts.push_back(cls.planes[0]);
    parts.push_back(cls.planes[1]);
    Json info = Json::object();
    info["_type"] = cls.name;
    info["_data"] = spelled_attributes(*tensor.quantized);
    info["_tensor_data_names"] = parts;
    spelled.metadata.emplace_back(tensor.name, python_json(info));
  }
  spelled.metadata.emplace_back("tensor_names", python_json(names));
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, part] : spelled.entries)
    if (!keys.insert(key).second) throw std::invalid_argument("two tensors would become the entry " + key);
  return spelled;
}

std::string python_json(const nlohmann::ordered_json& value) {
  if (value.is_array() || value.is_object()) {
    std::string text;
    for (const auto& [key, item] : value.items()) {
      if (!text.empty()) text += ", ";
      if (value.is_object()) text += Json(key).dump(-1, ' ', true) + ": ";
      text += python_json(item);
    }
    return value.is_array() ? "[" + text + "]" : "{" + text + "}";
  }
  return value.dump(-1, ' ', true);
}

}  // namespace qcts
