// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/mutants/value_faults.h"

#include <unordered_map>
#include <unordered_set>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/pickle/graph.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::mutants {
namespace {

using enum Fault;
using pickle::Kind;
using pickle::Ref;

bool is_number(const Ref& node) { return node->kind == Kind::integer || node->kind == Kind::real; }

Ref plus_one(const Ref& node) {
  return node->kind == Kind::integer ? pickle::integer(node->integer + 1) : pickle::real(node->real + 1);
}

bool is_data(const Ref& node) {
  return node->kind == Kind::dict || node->kind == Kind::list || node->kind == Kind::tuple ||
         pickle::is_call(node, "collections", "OrderedDict");
}

// Values of dicts, lists and tuples, wherever they are, except for the arguments of calls, because sizes,
// strides and quantizers make the tensors.
class DataFaults {
 public:
  void strike(Ref& value) {
    if (is_number(value) && planted(f_numbers_plus_one)) value = plus_one(value);
    if (value->kind == Kind::boolean && planted(f_flags_flipped)) value = pickle::boolean(!value->boolean);
    if (value->kind == Kind::string && planted(f_strings_lengthened))
      value = pickle::string(value->text.str() + "x");
    if (is_tensor_node(value)) return strike_attributes(value);
    if (!is_data(value)) return;
    const bool sequence = value->kind != Kind::dict && value->kind != Kind::call;
    if (planted(f_lists_and_tuples_swapped) && sequence) return swap(value);
    if (!seen_.insert(value.get()).second) return;
    if (sequence)
      for (Ref& item : value->items) strike(item);
    for (auto& [key, item] : value->pairs) strike(item);
    if (value->state != nullptr) strike(value->state);
  }

 private:
  void swap(Ref& value) {
    Ref& other = swapped_[value.get()];
    if (other == nullptr) {
      other = value->kind == Kind::list ? pickle::tuple(value->items) : pickle::list(value->items);
      kept_.push_back(value);
      const Ref fresh = other;
      for (Ref& item : fresh->items) strike(item);
    }
    value = swapped_[value.get()];
  }

  // The values attached to a tensor or Parameter.
  void strike_attributes(const Ref& tensor) {
    const bool held = pickle::is_call(tensor, "torch._utils", "_rebuild_parameter_with_state") ||
                      pickle::is_call(tensor, "torch._tensor", "_rebuild_from_type_v2");
    if (held && decode_tensor_node(tensor).wrapper.empty()) strike(tensor->items[1]->items.at(3));
  }

  std::unordered_set<const pickle::Node*> seen_;
  std::unordered_map<const pickle::Node*, Ref> swapped_;
  pickle::Refs kept_;  // so that no other node gets the address of one in swapped_
};

bool can_require_gradients(const TorchObject& object, const Ref& node) {
  const TensorNode parts = decode_tensor_node(node);
  const Ref dtype = parts.wrapper.empty() ? Ref() : parts.wrapper[1];
  const std::optional<Tensor> plain = dtype ? std::nullopt : tensor_of(object, parts.plain);
  const std::string_view name = dtype ? split_global(dtype).name : plain ? dtype_name(plain->dtype) : "";
  return name.starts_with("float") || name.starts_with("bfloat");
}

void flip_gradients(const TorchObject& object, const Ref& node) {
  const bool parameter = pickle::is_call(node, "torch._utils", "_rebuild_parameter");
  const bool plain = pickle::is_call(node, "torch._utils", "_rebuild_tensor_v2");
  if ((!parameter && !plain) || !can_require_gradients(object, node)) return;
  Ref& flag = node->items[1]->items[parameter ? 1 : 4];
  flag = pickle::boolean(!flag->boolean);
}

// A number in an object whose class is not a container: in its arguments or its state.
void change_object(const Ref& node) {
  const std::string_view module = node->items[0]->text;
  const bool kept = pickle::is_global(node->items[0], kKeptModule, kKeptClass);
  if ((!kept && !module.starts_with("torchao")) || is_tensor_node(node)) return;
  pickle::Refs& arguments = node->items[1]->items;
  const bool is_enum = node->kind == Kind::call && arguments.size() == 1;
  if (!is_enum)
    for (Ref& argument : arguments)
      if (is_number(argument)) argument = plus_one(argument);
  if (node->state == nullptr) return;
  for (auto& [key, value] : node->state->pairs)
    if (is_number(value)) value = plus_one(value);
}

}  // namespace

void strike_object_values(TorchObject& object) {
  if (planted(f_numbers_plus_one) || planted(f_flags_flipped) || planted(f_strings_lengthened) ||
      planted(f_lists_and_tuples_swapped))
    DataFaults().strike(object.root);
  pickle::for_each_node(object.root, [&](const Ref& node) {
    if (planted(f_gradients_flipped)) flip_gradients(object, node);
    if (planted(f_object_number_changed) && (node->kind == Kind::call || node->kind == Kind::new_object))
      change_object(node);
    if (planted(f_device_moved) && node->kind == Kind::persistent) {
      Ref& device = node->items[0]->items.at(3);
      device = pickle::string(device->text == "cpu" ? "cuda:0" : "cpu");
    }
  });
}

}  // namespace qcts::mutants
