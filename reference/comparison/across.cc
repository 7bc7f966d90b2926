// SPDX-License-Identifier: BSD-3-Clause
// Compares a pickle with safetensors, a program with a checkpoint, or safetensors of two dialects: tensors by
// name, as the dialects read them, and by path everything that only one of the two formats can hold.
#include <algorithm>
#include <map>

#include "reference/comparison/content_parts.h"
#include "reference/comparison/json_values.h"
#include "reference/comparison/object_values.h"
#include "reference/comparison/words.h"

namespace qcts {
namespace {

constexpr const char* kNoPlace = "no place";

// Everything that one side holds.
class Alone {
 public:
  Alone(bool left, ContentDifferences& out) : left_(left), out_(out) {}
  void add(const std::string& path, const std::string& field, const std::string& has,
           const std::string& other = kNoPlace) {
    out_.add({path, field, left_ ? has : other, left_ ? other : has});
  }

 private:
  bool left_;
  ContentDifferences& out_;
};

// Lists views, ties and devices of a pickle's tensors.
void views_alone(const Checkpoint& checkpoint, Alone out) {
  std::map<const Storage*, std::string> first;
  for (const NamedTensor& named : checkpoint.tensors) {
    if (const auto device = named.attributes.find("device");
        device != named.attributes.end() && device->is_string())
      out.add(named.name, "device", *device, "cpu");  // of a tensor that its call moves there
    for (const InnerTensor& inner : named.payload) {
      const Tensor& tensor = inner.tensor;
      const std::string path = inner.name == "data" ? named.name : named.name + "." + inner.name;
      const auto [entry, fresh] = first.try_emplace(tensor.storage.get(), path);
      if (!fresh) out.add(path, "storage", "that of " + entry->second, "its own");
      if (!tensor.is_contiguous()) out.add(path, "stride", shape_words(tensor.stride));
      const uint64_t bytes = bytes_of(tensor.dtype, tensor.shape);
      if (fresh && tensor.is_contiguous() && bytes < tensor.storage->bytes.size())
        out.add(path, "view",
                "at element " + std::to_string(tensor.offset_elems) + " of " +
                    std::to_string(tensor.storage->bytes.size()) + " bytes");
      if (fresh && tensor.storage->location != "cpu")
        out.add(path, "device", tensor.storage->location, "cpu");
    }
  }
}

void metadata_alone(const Checkpoint& checkpoint, Alone out) {
  for (const auto& [key, value] : own_metadata(checkpoint))
    out.add("__metadata__." + key, "", in_quotes(value));
  for (const auto& file : checkpoint.ggufs)
    for (const GgufPair& pair : file->metadata)
      out.add("metadata." + pair.key, "", in_quotes(gguf_value_text(pair.value)));
}

bool is_pickled(const Checkpoint& checkpoint) { return !objects_of(checkpoint).empty(); }

// Lists what a checkpoint holds besides tensors and the other format cannot hold.
void rest_alone(const Checkpoint& checkpoint, const Checkpoint& other, bool left, ContentFindings& out) {
  const Alone alone(left, out.not_comparable);
  if (checkpoint.script) Alone(alone).add("", "program", "TorchScript");
  if (is_pickled(checkpoint)) {
    for_each_object_value(checkpoint, [&](const ObjectValue& held) {
      Alone(alone).add(held.path, held.field, held.text, held.plain.empty() ? kNoPlace : held.plain);
    });
    views_alone(checkpoint, alone);
  } else if (!other.safetensors.empty()) {
    return;
  } else {
    metadata_alone(checkpoint, alone);
  }
}

// The same for safetensors in two dialects.
void compare_own_metadata(const Checkpoint& a, const Checkpoint& b, ContentFindings& out) {
  const auto own = [](const Checkpoint& checkpoint) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (const auto& [key, value] : own_metadata(checkpoint)) object[key] = value;
    return object;
  };
  compare_json("__metadata__", own(a), own(b), out);
}

// JSON cannot tell a tuple from a list.
nlohmann::ordered_json without_tuples(const nlohmann::ordered_json& value) {
  const bool tuple = value.is_object() && value.value("_type", nlohmann::ordered_json()) == "tuple";
  nlohmann::ordered_json copy = tuple ? value.value("_data", nlohmann::ordered_json()) : value;
  for (auto& item : copy)
    if (item.is_structured()) item = without_tuples(item);
  return copy;
}

// pytorch/ao#2338 calls the part of this class "original_weight", and does not repeat its shape and dtype.
NamedTensor in_words_of_its_class(const NamedTensor& named) {
  NamedTensor tensor = named;
  tensor.attributes = without_tuples(named.attributes);
  if (named.type != "LinearActivationQuantizedTensor") return tensor;
  for (InnerTensor& inner : tensor.payload)
    if (inner.name == "original_weight") inner.name = "original_weight_tensor";
  for (const char* key : {"shape", "dtype"}) tensor.attributes.erase(key);
  return tensor;
}

// Removes the attributes that no class has: rest_alone() lists them.
void erase_further(NamedTensor& tensor) {
  std::erase_if(tensor.payload, [](const InnerTensor& inner) { return inner.name.starts_with(kFurther); });
  for (auto at = tensor.attributes.begin(); at != tensor.attributes.end();)
    at = at.key().starts_with(kFurther) ? tensor.attributes.erase(at) : std::next(at);
}

// A missing attribute equals None.
void erase_nulls_that_lack(nlohmann::ordered_json& attributes, const nlohmann::ordered_json& in) {
  for (auto at = attributes.begin(); at != attributes.end();)
    at = at->is_null() && !in.contains(at.key()) ? attributes.erase(at) : std::next(at);
}

class NamedComparison {
 public:
  NamedComparison(const Content& a, const Content& b, ContentFindings& out)
      : a_(a), b_(b), table_(a), out_(out) {}

  void compare() {
    std::map<std::string_view, const NamedTensor*> others;
    for (const NamedTensor& named : b_.checkpoint.tensors) others.emplace(named.name, &named);
    for (const NamedTensor& named : a_.checkpoint.tensors) {
      const auto other = others.find(named.name);
      if (other == others.end()) {
        out_.different.add({named.name, "", named.type, "absent"});
        continue;
      }
      NamedTensor left = in_words_of_its_class(named), right = in_words_of_its_class(*other->second);
      erase_further(left);
      erase_further(right);
      erase_nulls_that_lack(left.attributes, right.attributes);
      erase_nulls_that_lack(right.attributes, left.attributes);
      compare(left, right);
      others.erase(other);
    }
    for (const auto& [name, named] : others) out_.different.add({named->name, "", "absent", named->type});
  }

 private:
  static std::string type_of(const NamedTensor& named) {
    constexpr std::string_view kPlain[] = {"Parameter", "Buffer", "Attribute", "Constant"};
    return std::ranges::find(kPlain, named.type) == std::end(kPlain) ? named.type : "Tensor";
  }

  bool field(const std::string& path, const char* name, const std::string& a, const std::string& b) {
    if (a != b) out_.different.add({path, name, a, b});
    return a == b;
  }

  void compare(const NamedTensor& a, const NamedTensor& b) {
    if (!field(a.name, "type", type_of(a), type_of(b))) return;
    field(a.name, "dtype", std::string(dtype_name(a.dtype)), std::string(dtype_name(b.dtype)));
    field(a.name, "shape", shape_words(a.shape), shape_words(b.shape));
    const bool plain = type_of(a) == "Tensor";
    if (!plain) compare_json(a.name, a.attributes, b.attributes, out_);
    std::map<std::string_view, const InnerTensor*> others;
    for (const InnerTensor& inner : b.payload) others.emplace(inner.name, &inner);
    for (const InnerTensor& inner : a.payload) {
      const auto other = others.find(inner.name);
      if (other == others.end()) {
        lone_part(a, inner, true, plain);
        continue;
      }
      compare_parts(a, inner, other->second->tensor);
      others.erase(other);
    }
    for (const auto& [name, inner] : others) lone_part(b, *inner, false, plain);
  }

  // An attribute of a plain tensor, which only a pickle can hold.
  void lone_part(const NamedTensor& named, const InnerTensor& inner, bool left, bool plain) {
    Alone(left, plain ? out_.not_comparable : out_.different)
        .add(named.name + "." + inner.name, "", "Tensor", plain ? kNoPlace : "absent");
  }

  void compare_parts(const NamedTensor& named, const InnerTensor& a, const Tensor& b) {
    const std::string path = a.name == "data" ? named.name : named.name + "." + a.name;
    const bool same_dtype =
        field(path, "dtype", std::string(dtype_name(a.tensor.dtype)), std::string(dtype_name(b.dtype)));
    const bool same_shape = field(path, "shape", shape_words(a.tensor.shape), shape_words(b.shape));
    if (!same_dtype || !same_shape) return;
    const ElementPlace place = [&](const Tensor& tensor, uint64_t index) {
      return table_.element_place(tensor, index);
    };
    compare_elements(path, a.tensor, b, place, out_.different);
  }

  const Content &a_, &b_;
  const PlaceTable table_;
  ContentFindings& out_;
};

}  // namespace

void compare_across(const Content& a, const Content& b, ContentFindings& out) {
  NamedComparison(a, b, out).compare();
  rest_alone(a.checkpoint, b.checkpoint, true, out);
  rest_alone(b.checkpoint, a.checkpoint, false, out);
  if (!a.checkpoint.safetensors.empty() && !b.checkpoint.safetensors.empty())
    compare_own_metadata(a.checkpoint, b.checkpoint, out);
}

}  // namespace qcts
