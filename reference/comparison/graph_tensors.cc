// SPDX-License-Identifier: BSD-3-Clause
// Tensors and storages of two object graphs.
#include <algorithm>
#include <cstring>

#include "reference/comparison/graph_walk.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/formats/torch/numpy_array.h"
#include "reference/formats/torch/storage.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Ref;

// Drops dimensions of stride 0: an expanded tensor can have any size.
Tensor without_expansion(Tensor tensor, const std::vector<bool>& expanded) {
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (expanded[d]) tensor.shape[d] = 1;
  return tensor;
}

std::string dtype_word(DType dtype) { return std::string(dtype_name(dtype)); }
std::string flag_word(bool flag) { return flag ? "True" : "False"; }

std::string hex_byte(std::span<const std::byte> bytes, size_t at) {
  return element_words(DType::uint8, bytes, at);
}

bool is_same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() &&
         (a.empty() || a.data() == b.data() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace

bool compare_elements(const std::string& path, const Tensor& a, const Tensor& b, const ElementPlace& place,
                      ContentDifferences& out) {
  if (a.numel() == 0) return false;
  std::vector<bool> expanded(a.shape.size());
  for (size_t d = 0; d < expanded.size(); ++d) expanded[d] = a.stride[d] == 0 && b.stride[d] == 0;
  const Tensor left = without_expansion(a, expanded), right = without_expansion(b, expanded);
  std::vector<std::byte> left_scratch, right_scratch;
  const auto x = row_major_view(left, left_scratch), y = row_major_view(right, right_scratch);
  if (is_same_bytes(x, y)) return false;
  const size_t width = std::max<size_t>(1, dtype_bits(a.dtype) / 8);
  uint64_t differing = 0, first = 0;
  const uint64_t total = x.size() / width;
  for (uint64_t i = total; i-- > 0;)
    if (std::memcmp(&x[i * width], &y[i * width], width) != 0) ++differing, first = i;
  out.add({path, place(left, first), element_words(a.dtype, x, first), element_words(a.dtype, y, first),
           differing, total});
  return true;
}

void GraphWalk::compare_flag(const char* field, bool a, bool b) {
  if (a != b) differ(field, flag_word(a), flag_word(b));
}

void GraphWalk::compare_hooks(const Ref& a, const Ref& b) {
  const bool empty_a = !a || is_empty_hooks(a), empty_b = !b || is_empty_hooks(b);
  if (empty_a && empty_b) return;
  if (empty_a || empty_b) return differ("hooks", value_text(a), value_text(b));
  visit_part(a, b, ".hooks");
}

void GraphWalk::compare_tensors(const Ref& a, const Ref& b) {
  const Layers left = layers_of(a), right = layers_of(b);
  compare_parameters(left, right);
  if (left.functions != right.functions) spelt("wrapped by", left.functions, right.functions);
  const ClassSchema* schema = left.type ? find_class(split_global(left.type).name) : nullptr;
  for (size_t i = 0; i < std::max(left.states.size(), right.states.size()); ++i) {
    const auto state = [i](const Layers& layers) {
      return i < layers.states.size() ? layers.states[i] : Ref();
    };
    compare_states(state(left), state(right), schema);
  }
  compare_elements_of(left.inner, right.inner);
}

void GraphWalk::compare_parameters(const Layers& a, const Layers& b) {
  const bool typed = a.type && b.type;
  if (a.parameter != b.parameter || (!typed && a.kind() != b.kind()))
    differ("type", a.kind(), b.kind());
  else if (typed)
    compare_globals("class", a.type, b.type);
  if (!a.parameter || !b.parameter) return;
  compare_flag("requires_grad", a.requires_grad && a.requires_grad->boolean,
               b.requires_grad && b.requires_grad->boolean);
  compare_hooks(a.hooks, b.hooks);
}

void GraphWalk::compare_elements_of(const Ref& a, const Ref& b) {
  const std::optional<Elements> x = elements_of(*a_object_, a), y = elements_of(*b_object_, b);
  if (!x || !y) return compare_nodes(a, b);
  if (x->function != y->function) spelt("rebuilt by", x->function, y->function);
  compare_flag("requires_grad", x->requires_grad, y->requires_grad);
  compare_flag("conj", x->conj, y->conj);
  compare_flag("neg", x->neg, y->neg);
  compare_hooks(x->hooks, y->hooks);
  if (x->tensor && y->tensor) compare_views(*x->tensor, *y->tensor);
}

std::optional<GraphWalk::Elements> GraphWalk::elements_of(const TorchObject& object, const Ref& node) {
  Elements elements;
  if (const std::optional<DeviceCall> call = device_call(node)) {
    const Tensor* array = array_of(object, node);
    elements.tensor = array ? std::optional(*array) : tensor_of(object, call->data);
    if (!elements.tensor) return std::nullopt;
    elements.tensor = on_device(std::move(*elements.tensor), call->device);
    elements.function = call->function;
    elements.requires_grad = call->requires_grad;
    return elements;
  }
  const std::optional<PlainCall> call = plain_call(node);
  if (!call) return std::nullopt;
  elements.function = call->function;
  elements.requires_grad = call->requires_grad;
  elements.conj = call->conj;
  elements.neg = call->neg;
  elements.hooks = call->hooks;
  elements.tensor = tensor_of(object, call->eager);
  if (elements.tensor)
    elements.tensor = in_its_window(std::move(*elements.tensor), object, call->eager->items[1]->items[0]);
  return elements;
}

// Such a tensor's storage is on the host, and the call names the device.
Tensor GraphWalk::on_device(Tensor tensor, const std::string& device) {
  auto& placed = on_devices_[{tensor.storage.get(), device}];
  if (!placed) {
    auto storage = std::make_shared<Storage>(*tensor.storage);
    const bool on_host = storage->location == "cpu";
    storage->location = on_host ? device : storage->location.str() + " to " + device;
    placed = std::move(storage);
  }
  tensor.storage = placed;
  return tensor;
}

// Before torch 0.4 a file could name a window of a storage, which is loaded as a separate storage.
Tensor GraphWalk::in_its_window(Tensor tensor, const TorchObject& object, const Ref& id_node) {
  const StorageId id = storage_id_of(id_node, object.id_parts);
  if (!id.view) return tensor;
  auto& window = windows_[{tensor.storage.get(), id.view->offset_elems, id.view->numel}];
  if (!window) {
    const size_t width = dtype_bytes(tensor.dtype);
    auto part = std::make_shared<Storage>(*tensor.storage);
    part->bytes = part->bytes.subspan(static_cast<size_t>(id.view->offset_elems) * width,
                                      static_cast<size_t>(id.view->numel) * width);
    window = std::move(part);
  }
  tensor.storage = window;
  tensor.offset_elems -= id.view->offset_elems;
  return tensor;
}

void GraphWalk::compare_views(const Tensor& a, const Tensor& b) {
  const auto field = [&](const char* name, const std::string& left, const std::string& right) {
    if (left != right) differ(name, left, right);
    return left == right;
  };
  const bool same_kind = field("dtype", dtype_word(a.dtype), dtype_word(b.dtype));
  const bool same_shape = field("shape", shape_words(a.shape), shape_words(b.shape));
  const bool same_stride = field("stride", shape_words(a.stride), shape_words(b.stride));
  const bool same_offset = field("offset", std::to_string(a.offset_elems), std::to_string(b.offset_elems));
  StoragePair& storages = compare_storages(*a.storage, *b.storage);
  const bool same_view = same_kind && same_shape && same_stride && same_offset;
  if (same_view && storages.equal) return;
  storages.told = storages.told || !same_view;
  if (!same_kind || !same_shape) return;
  storages.told |= compare_elements(path_, a, b, place_, out_.different);
}

GraphWalk::StoragePair& GraphWalk::compare_storages(const Storage& a, const Storage& b) {
  const auto [first_a, first_b] = storages_.meet(&a, &b, path_);
  const auto [entry, fresh] = storage_pairs_.try_emplace({&a, &b});
  StoragePair& pair = entry->second;
  if (first_a != first_b) {
    const auto words = [&](const std::string& first) {
      return first == path_ ? std::string("its own") : "that of " + first;
    };
    differ("storage", words(first_a), words(first_b));
    pair.told = true;
  }
  if (!fresh) return pair;
  pair.path = path_;
  pair.equal = is_same_bytes(a.bytes, b.bytes);
  if (a.location != b.location) differ("device", a.location.str(), b.location.str());
  if (a.bytes.size() != b.bytes.size() && first_a == first_b) {
    differ("bytes of its storage", std::to_string(a.bytes.size()), std::to_string(b.bytes.size()));
    pair.told = true;
  }
  return pair;
}

// A storage that stands alone in the graph, or is an argument of a function other than a plain rebuild.
void GraphWalk::compare_bare_storages(const Ref& a, const Ref& b) {
  std::optional<Tensor> left = storage_of(*a_object_, a), right = storage_of(*b_object_, b);
  if (!left || !right) return;
  left = in_its_window(*left, *a_object_, a), right = in_its_window(*right, *b_object_, b);
  const StorageId x = storage_id_of(a, a_object_->id_parts), y = storage_id_of(b, b_object_->id_parts);
  const auto kind = [](const StorageId& id) { return id.dtype ? dtype_word(*id.dtype) : "untyped"; };
  if (kind(x) != kind(y)) differ("dtype", kind(x), kind(y));
  StoragePair& pair = compare_storages(*left->storage, *right->storage);
  if (pair.equal || left->dtype != right->dtype || left->shape != right->shape) return;
  pair.told |= compare_elements(path_, *left, *right, place_, out_.different);
}

void GraphWalk::finish() {
  for (const auto& [storages, pair] : storage_pairs_) {
    if (pair.equal || pair.told) continue;
    const auto x = storages.first->bytes, y = storages.second->bytes;
    const auto at = static_cast<size_t>(std::ranges::mismatch(x, y).in1 - x.begin());
    out_.different.add({pair.path, "byte " + std::to_string(at) + " of its storage, which no tensor sees",
                        hex_byte(x, at), hex_byte(y, at)});
  }
}

}  // namespace qcts
