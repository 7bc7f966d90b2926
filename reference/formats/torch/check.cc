// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/torch/check.h"
#include "reference/formats/pickle/calls.h"
#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

bool count_fits(std::string_view function, size_t count) {
  const auto info = pickle::known_global("torch._utils", function);
  return info && count >= info->min_arguments && count <= info->max_arguments;
}

void check_call(const TorchObject& object, std::string_view function, const pickle::Refs& args,
                const Limits& limits, uint64_t offset) {
  const auto bad = [&](const std::string& what) {
    refuse(RefusalClass::PickleType, "data.pkl: " + std::string(function) + ": " + what, offset);
  };
  if (function == "_rebuild_tensor" || function == "_rebuild_tensor_v2" || function == "_rebuild_tensor_v3") {
    rebuild_plain(object, function, args, limits.dims);
  } else if (function == "_rebuild_parameter" || function == "_rebuild_parameter_with_state") {
    if (args[0]->kind != Kind::call && args[0]->kind != Kind::new_object) bad("its data is not a tensor");
    if (args[1]->kind != Kind::boolean) bad("requires_grad is not a bool");
    if (!is_empty_hooks(args[2])) bad("its hooks are not an empty OrderedDict");
  } else if (function == "_rebuild_from_type_v2") {
    const std::string_view inner = rebuild_function(args[0]);
    const auto role = pickle::role_of(args[0]);
    if (args[0]->kind == Kind::global && role && role->role == pickle::Role::library_type) {
      if (args[2]->kind != Kind::tuple) bad("its arguments do not fit");
      if (pickle::is_global(args[0], "torch.nested._internal.nested_tensor", "_rebuild_njt"))
        check_special_tensor(object, "_rebuild_njt", args[2]->items, limits, offset);
      return;  // a class with its own function, kept unchanged
    }
    if (inner.empty() || inner == "_rebuild_from_type_v2") bad("its function does not rebuild a tensor");
    if (args[1]->kind != Kind::global) bad("its type is not a class");
    if (args[2]->kind != Kind::tuple || !count_fits(inner, args[2]->items.size()))
      bad("its arguments do not fit");
    // Since Python 3.11 an object without attributes has the state None.
    if (args[3]->kind != Kind::dict && args[3]->kind != Kind::tuple && args[3]->kind != Kind::none)
      bad("its state is neither dict, tuple nor None");
    check_call(object, inner, args[2]->items, limits, offset);
  } else {
    check_special_tensor(object, function, args, limits, offset);
  }
}

}  // namespace

std::string_view rebuild_function(const Ref& callable) {
  if (callable->kind != Kind::global) return "";
  const std::string_view text = callable->text;
  const auto info = pickle::known_global(text);
  if (!info || info->role != pickle::Role::rebuild) return "";
  return text.substr(text.find(' ') + 1);
}

void check_tensors(const TorchObject& object, const Limits& limits) {
  uint64_t tensors = 0;
  pickle::NodeMap<std::string_view> functions;  // a file names each once, and calls it for every tensor
  pickle::for_each_holder(object.root, [&](const Ref& node) {
    if (node->kind != Kind::call) return;
    const auto [function, fresh] = functions.insert(node->items[0].get());
    if (fresh) *function = rebuild_function(node->items[0]);
    if (function->empty()) return;
    if (++tensors > limits.tensors) {
      refuse(RefusalClass::LimitExceeded,
             "data.pkl: more than " + std::to_string(limits.tensors) + " tensors", node->offset);
    }
    check_call(object, *function, node->items[1]->items, limits, node->offset);
  });
}

}  // namespace qcts
