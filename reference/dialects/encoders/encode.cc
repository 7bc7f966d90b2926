// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/encoders/encode.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <unordered_set>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/encoder.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
#define QCTS_ENCODER(name) extern const Encoder kEncoder_##name;
#include "reference/dialects/encoders/encoders.inc"
#undef QCTS_ENCODER

namespace {

#define QCTS_ENCODER(name) &kEncoder_##name,
const Encoder* const kEncoders[] = {
#include "reference/dialects/encoders/encoders.inc"
};
#undef QCTS_ENCODER

pickle::Ref integers(const std::vector<int64_t>& values) {
  pickle::Refs items;
  for (int64_t value : values) items.push_back(pickle::integer(value));
  return pickle::tuple(std::move(items));
}

const Plane* find_plane(const SchemeTensor& tensor, std::string_view name) {
  for (const Planes* planes : {&tensor.planes, &tensor.policy_planes})
    for (const Plane& plane : *planes)
      if (plane.name == name) return &plane;
  return nullptr;
}

const Plane& require_plane(const SchemeTensor& tensor, std::string_view name) {
  const Plane* source = find_plane(tensor, name);
  if (!source) throw std::out_of_range("no plane " + std::string(name));
  return *source;
}

Tensor plane_tensor(const SchemeTensor& tensor, std::string_view name) {
  const Plane& source = require_plane(tensor, name);
  return make_tensor(source.dtype, source.shape, source.bytes);
}

void store_integer(DType dtype, std::span<std::byte> bytes, size_t index, int64_t value) {
  if (is_float(dtype))
    return store_float(dtype, bytes, static_cast<int64_t>(index), static_cast<double>(value));
  std::memcpy(&bytes[index * dtype_bytes(dtype)], &value, dtype_bytes(dtype));  // little-endian
}

// Two signed codes of four bits in a byte, the even one low.
std::vector<std::byte> pairs_of(std::span<const std::byte> codes) {
  std::vector<std::byte> pairs(codes.size() / 2);
  for (size_t i = 0; i < pairs.size(); ++i)
    pairs[i] = (codes[2 * i] & std::byte{15}) | (codes[2 * i + 1] << 4);
  return pairs;
}

// Converts a plane as plane_as() and pairs_here() say.
Tensor converted_plane(const SchemeTensor& tensor, const Json& asked) {
  const Plane& source = require_plane(tensor, asked.at("_plane").get<std::string>());
  const DType dtype = *dtype_from_name(asked.at("dtype").get<std::string>());
  const std::vector<int64_t> shape = asked.at("shape");
  if (asked.contains("pairs")) return make_tensor(dtype, shape, pairs_of(source.bytes));
  if (source.dtype == dtype) return make_tensor(dtype, shape, source.bytes);
  std::vector<std::byte> bytes(bytes_of(dtype, shape));
  for (size_t i = 0; i * dtype_bytes(dtype) < bytes.size(); ++i) {
    if (is_float(source.dtype))
      store_float(dtype, bytes, i, load_float(source.dtype, source.bytes, i));
    else
      store_integer(dtype, bytes, i, static_cast<int8_t>(source.bytes.at(i)));
  }
  return make_tensor(dtype, shape, std::move(bytes));
}

bool has_word(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

const Encoder* find_encoder(const Scheme& scheme, Layout layout, Policy activation,
                            std::string_view dialect) {
  for (const Encoder* encoder : kEncoders)
    if ((dialect.empty() || has_word(encoder->cls.dialects, dialect)) &&
        encoder->makes(scheme, layout, activation))
      return encoder;
  return nullptr;
}

const Encoder& require_encoder(const SchemeTensor& tensor) {
  const Encoder* encoder = find_encoder(*tensor.scheme, tensor.layout, tensor.activation, tensor.dialect);
  if (!encoder)
    throw std::invalid_argument("torchao has no class for " + std::string(tensor.scheme->name()) + " in " +
                                std::string(tensor.layout.name()) + ", " +
                                std::string(tensor.activation.name()));
  return *encoder;
}

// Does a wrapper's pickled state have the keys, the classes, the tensors and the numbers of an encoder's
// state?
bool spelled_as(const Json& state, const pickle::Ref& node) {
  if (!node || node->pairs.size() != state.size()) return false;
  auto pair = node->pairs.begin();
  for (const auto& [key, value] : state.items()) {
    const auto& [name, held] = *pair++;
    if (name->text != key) return false;
    const bool plane = value.is_object() && value.contains("_plane");
    const bool wrapper = value.is_object() && value.contains("_wrapper");
    if ((plane || wrapper) != is_tensor_node(held)) return false;
    if ((value.is_null() || value.is_number()) && attribute_json(held, key) != value) return false;
    if (wrapper) {
      const TensorNode parts = decode_tensor_node(held);
      const GlobalName cls = parts.cls ? split_global(parts.cls) : GlobalName();
      if (cls.module != value["_wrapper"].get_ref<const std::string&>() ||
          cls.name != value["name"].get_ref<const std::string&>() || !spelled_as(value["state"], parts.state))
        return false;
    }
  }
  return true;
}

// Converts tuples to lists, as torchao's metadata encoder does.
Json without_tuples(const Json& value) {
  return value.is_object() && value.value("_type", "") == "tuple" ? value["_data"] : value;
}

}  // namespace

std::span<const Encoder* const> encoders() { return kEncoders; }

Json plane_here() { return Json{{"_plane", true}}; }

Json plane_as(std::string_view plane, DType dtype, const std::vector<int64_t>& shape) {
  return Json{{"_plane", plane}, {"dtype", dtype_name(dtype)}, {"shape", shape}};
}

Json pairs_here(const std::vector<int64_t>& shape) {
  Json asked = plane_as("qdata", DType::int8, shape);
  asked["pairs"] = true;
  return asked;
}

Json wrapper_here(std::string_view module, std::string_view name, DType dtype,
                  const std::vector<int64_t>& shape, Json state) {
  return Json{{"_wrapper", module},
              {"name", name},
              {"dtype", dtype_name(dtype)},
              {"shape", shape},
              {"state", std::move(state)}};
}

Json typed_json(std::string_view type, Json data) {
  Json object = Json::object();
  object["_type"] = type;
  object["_data"] = std::move(data);
  return object;
}

Json group_block(const SchemeTensor& tensor) {
  return Json::array({1, tensor.scheme->group() ? tensor.scheme->group() : tensor.k});
}

const TorchaoClass* torchao_class(const Scheme& scheme, Layout layout, Policy activation,
                                  std::string_view dialect) {
  const Encoder* encoder = find_encoder(scheme, layout, activation, dialect);
  return encoder ? &encoder->cls : nullptr;
}

std::span<const std::string_view> write_dialects() {
  static constexpr std::string_view kWords[] = {"torchao_v2",  "torchao_v1",  "torchao_v1_qdq",
                                                "torchao_0.9", "torchao_0.8", "torchao_0.7",
                                                "torchao_0.6", "torchao_0.5"};
  return kWords;
}

std::string_view dialect_like(const pickle::Ref& node, const SchemeTensor& made) {
  const TensorNode parts = decode_tensor_node(node);
  for (std::string_view dialect : write_dialects().subspan(1)) {
    const Encoder* encoder = find_encoder(*made.scheme, made.layout, made.activation, dialect);
    if (encoder && spelled_as(encoder->state(made), parts.state)) return dialect;
  }
  return "torchao_v1";
}

std::string StorageTable::key_of(const std::shared_ptr<const Storage>& storage) {
  const auto [entry, is_new] = keys_.try_emplace(storage.get(), std::to_string(storages_.size()));
  if (is_new) storages_.push_back(storage);
  return entry->second;
}

pickle::Ref TorchaoEncoder::name(std::string_view text) {
  pickle::Ref& node = names_[std::string(text)];
  if (!node) node = pickle::string(std::string(text));
  return node;
}

pickle::Ref TorchaoEncoder::strided() {
  if (!strided_)
    strided_ =
        pickle::call(pickle::global("torch.serialization", "_get_layout"), {pickle::string("torch.strided")});
  return strided_;
}

pickle::Ref TorchaoEncoder::wrapper(const pickle::Ref& type, DType dtype, const std::vector<int64_t>& shape,
                                    const pickle::Ref& state) {
  const pickle::Ref arguments = pickle::tuple(
      {type, pickle::global("torch", dtype_name(dtype)), integers(shape), integers(contiguous_stride(shape)),
       pickle::integer(0), strided(),
       pickle::call(pickle::global("torch", "device"), {pickle::string("cpu")}), pickle::boolean(false)});
  return pickle::call(pickle::global("torch._tensor", "_rebuild_from_type_v2"),
                      {pickle::global("torch._utils", "_rebuild_wrapper_subclass"), type, arguments, state});
}

pickle::Ref TorchaoEncoder::encode(const SchemeTensor& tensor, StorageTable& table) {
  const Encoder& encoder = require_encoder(tensor);
  return encode_as(tensor, pickle::global(encoder.cls.module, encoder.cls.name), tensor.dtype,
                   {tensor.n, tensor.k}, encoder.state(tensor), table);
}

pickle::Ref TorchaoEncoder::encode_as(const SchemeTensor& tensor, const pickle::Ref& type, DType dtype,
                                      const std::vector<int64_t>& shape, const Json& entries,
                                      StorageTable& table) {
  const pickle::Ref state = pickle::dict();
  for (const auto& [key, value] : entries.items()) {
    const pickle::Ref word = name(key);
    if (value.is_object() && value.contains("_plane")) {
      const Tensor part = value == plane_here() ? plane_tensor(tensor, key) : converted_plane(tensor, value);
      state->pairs.emplace_back(word, tensor_node(part, table.key_of(part.storage)));
    } else if (value.is_object() && value.contains("_wrapper")) {
      const pickle::Ref inner =
          pickle::global(value["_wrapper"].get<std::string>(), value["name"].get<std::string>());
      state->pairs.emplace_back(
          word, encode_as(tensor, inner, *dtype_from_name(value["dtype"].get<std::string>()), value["shape"],
                          value["state"], table));
    } else {
      state->pairs.emplace_back(word, attribute(value));
    }
  }
  return wrapper(type, dtype, shape, state);
}

// Lists optional attributes first, then required ones, including the wrapper's shape and dtype.
nlohmann::ordered_json encoded_attributes(const SchemeTensor& tensor) {
  const Encoder& encoder = require_encoder(tensor);
  const ClassSchema& schema = *find_class(encoder.cls.name);
  const Json state = encoder.state(tensor);
  Json attributes = Json::object();
  const auto add = [&](std::string_view name) {
    const std::string key(name);
    if (key == "dtype")
      attributes[key] = dtype_json(tensor.dtype);
    else if (key == "shape")
      attributes[key] = Json::array({tensor.n, tensor.k});
    else
      attributes[key] = state.at(key);
  };
  for (std::string_view name : schema.optional_attributes) add(name);
  for (std::string_view name : schema.attributes) add(name);
  return attributes;
}

EditedZip encode_state_dict(const std::vector<OutputTensor>& tensors) {
  StorageTable table;
  TorchaoEncoder encoder;
  const pickle::Ref root = pickle::dict();
  for (const OutputTensor& tensor : tensors) {
    pickle::Ref value = tensor.quantized ? encoder.encode(*tensor.quantized, table)
                                         : tensor_node(*tensor.plain, table.key_of(tensor.plain->storage));
    root->pairs.emplace_back(pickle::string(tensor.name), std::move(value));
  }
  return {root, table.storages()};
}

EncodedSafetensors encode_safetensors(const std::vector<OutputTensor>& tensors) {
  EncodedSafetensors encoded;
  Json names = Json::array();
  std::set<std::string> listed;
  // The metadata has the names in memory, of which several tensors may be one.
  const auto describe = [&](const OutputTensor& tensor, const std::string& text) {
    const std::vector<std::string> own = {tensor.name};
    for (const std::string& name : tensor.in_memory.empty() ? own : tensor.in_memory) {
      if (!listed.insert(name).second) continue;
      names.push_back(name);
      encoded.metadata.emplace_back(name, text);
    }
  };
  for (const OutputTensor& tensor : tensors) {
    if (tensor.plain) {
      encoded.entries.emplace_back(tensor.name, *tensor.plain);
      encoded.owners.push_back(tensor.name);
      describe(tensor, python_json({{"_type", "Tensor"}}));
      continue;
    }
    const TorchaoClass& cls = require_encoder(*tensor.quantized).cls;
    const size_t dot = tensor.name.rfind('.');
    if (dot == std::string::npos)
      throw std::invalid_argument(tensor.name +
                                  ": torchao's safetensors dialect needs a name like MODULE.PARAM");
    const std::string prefix = tensor.name.substr(0, dot) + "._" + tensor.name.substr(dot + 1) + "_";
    const ClassSchema& schema = *find_class(cls.name);
    // Entries are in flatten order; the encoder lists optional tensors before required ones.
    Json optional = Json::array(), parts = Json::array();
    for (const auto* part_names : {&schema.tensors, &schema.optional_tensors}) {
      for (std::string_view part : *part_names) {
        if (!find_plane(*tensor.quantized, part)) continue;
        encoded.entries.emplace_back(prefix + std::string(part), plane_tensor(*tensor.quantized, part));
        encoded.owners.push_back(tensor.name);
        (part_names == &schema.tensors ? parts : optional).push_back(part);
      }
    }
    optional.insert(optional.end(), parts.begin(), parts.end());
    Json info = Json::object();
    info["_type"] = cls.name;
    info["_data"] = Json::object();
    const Json attributes = encoded_attributes(*tensor.quantized);
    for (const auto& [key, value] : attributes.items()) info["_data"][key] = without_tuples(value);
    info["_tensor_data_names"] = optional;
    describe(tensor, python_json(info));
  }
  encoded.metadata.emplace_back("tensor_names", python_json(names));
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, part] : encoded.entries)
    if (!keys.insert(key).second)
      throw std::invalid_argument("two tensors would be written to the entry " + key);
  return encoded;
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
