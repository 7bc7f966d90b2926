#include "reference/formats/pickle_calls.h"
#include "reference/formats/pickle_globals.h"
#include "reference/formats/pickle_graph.h"
#include "reference/formats/torch_internal.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

bool count_fits(const std::string& function, size_t count) {
  const auto info = pickle::known_global("torch._utils", function);
  return info && count >= info->least && count <= info->most;
}

void check_call(const TorchObject& object, const std::string& function, const pickle::Refs& args,
                const Limits& limits, uint64_t offset) {
  const auto bad = [&](const std::string& what) {
    refuse(RefusalClass::PickleType, "data.pkl: " + function + ": " + what, offset);
  };
  if (function == "_rebuild_tensor" || function == "_rebuild_tensor_v2" || function == "_rebuild_tensor_v3") {
    rebuild_plain(object, function, args, limits.dims);
  } else if (function == "_rebuild_parameter" || function == "_rebuild_parameter_with_state") {
    if (args[0]->kind != Kind::call && args[0]->kind != Kind::new_object) bad("its data is no tensor");
    if (args[1]->kind != Kind::boolean) bad("requires_grad is no bool");
    if (!is_empty_hooks(args[2])) bad("its hooks are no empty OrderedDict");
  } else if (function == "_rebuild_from_type_v2") {
    const std::string inner = rebuild_function(args[0]);
    const auto role = pickle::role_of(args[0]);
    if (args[0]->kind == Kind::global && role && role->role == pickle::Role::library_type) {
      if (args[2]->kind != Kind::tuple) bad("its arguments do not fit");
      if (pickle::is_global(args[0], "torch.nested._internal.nested_tensor", "_rebuild_njt"))
        check_special_tensor(object, "_rebuild_njt", args[2]->items, limits, offset);
      return;  // a class with a function of its own, kept as it stands
    }
    if (inner.empty() || inner == "_rebuild_from_type_v2") bad("its function rebuilds no tensor");
    if (args[1]->kind != Kind::global) bad("its type is no class");
    if (args[2]->kind != Kind::tuple || !count_fits(inner, args[2]->items.size()))
      bad("its arguments do not fit");
    if (args[3]->kind != Kind::dict && args[3]->kind != Kind::tuple)
      bad("its state is neither dict nor tuple");
    check_call(object, inner, args[2]->items, limits, offset);
  } else {
    check_special_tensor(object, function, args, limits, offset);
  }
}

}  // namespace

std::string rebuild_function(const Ref& callable) {
  if (callable->kind != Kind::global) return "";
  const auto info = pickle::known_global(callable->text);
  if (!info || info->role != pickle::Role::rebuild) return "";
  return callable->text.substr(callable->text.find(' ') + 1);
}

void check_tensors(const TorchObject& object, const Limits& limits) {
  uint64_t tensors = 0;
  pickle::for_each_node(object.root, [&](const Ref& node) {
    if (node->kind != Kind::call) return;
    const std::string function = rebuild_function(node->items[0]);
    if (function.empty()) return;
    if (++tensors > limits.tensors) {
      refuse(RefusalClass::LimitExceeded,
             "data.pkl: more than " + std::to_string(limits.tensors) + " tensors", node->offset);
    }
    check_call(object, function, node->items[1]->items, limits, node->offset);
  });
}

}  // namespace qcts
