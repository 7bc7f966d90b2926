#include <unordered_set>

#include "reference/formats/pickle_globals.h"
#include "reference/formats/pickle_graph.h"
#include "reference/formats/torch_zip_internal.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

// "_rebuild_tensor_v2" for the global that names it; empty for anything that is no rebuild function of torch.
std::string rebuild_name(const Ref& callable) {
  if (callable->kind != Kind::global) return "";
  const size_t space = callable->text.find(' ');
  if (space == std::string::npos) return "";
  const std::string_view module = std::string_view(callable->text).substr(0, space);
  const std::string_view name = std::string_view(callable->text).substr(space + 1);
  const auto info = pickle::known_global(module, name);
  return info && info->role == pickle::Role::rebuild ? std::string(name) : "";
}

bool count_fits(const std::string& function, size_t count) {
  const auto info = pickle::known_global("torch._utils", function);
  return info && count >= info->least && count <= info->most;
}

void check_call(const TorchZip& zip, const std::string& function, const std::vector<Ref>& args,
                const Limits& limits, uint64_t offset) {
  const auto bad = [&](const std::string& what) {
    refuse(RefusalClass::PickleType, "data.pkl: " + function + ": " + what, offset);
  };
  if (function == "_rebuild_tensor" || function == "_rebuild_tensor_v2" || function == "_rebuild_tensor_v3") {
    rebuild_plain(zip, function, args, limits.dims);
  } else if (function == "_rebuild_parameter" || function == "_rebuild_parameter_with_state") {
    if (args[0]->kind != Kind::call && args[0]->kind != Kind::new_object) bad("its data is no tensor");
    if (args[1]->kind != Kind::boolean) bad("requires_grad is no bool");
    if (!is_empty_hooks(args[2])) bad("its hooks are no empty OrderedDict");
  } else if (function == "_rebuild_from_type_v2") {
    const std::string inner = rebuild_name(args[0]);
    if (inner.empty() || inner == "_rebuild_from_type_v2") bad("its function rebuilds no tensor");
    if (args[1]->kind != Kind::global) bad("its type is no class");
    if (args[2]->kind != Kind::tuple || !count_fits(inner, args[2]->items.size()))
      bad("its arguments do not fit");
    if (args[3]->kind != Kind::dict && args[3]->kind != Kind::tuple)
      bad("its state is neither dict nor tuple");
    check_call(zip, inner, args[2]->items, limits, offset);
  } else {
    check_special_tensor(zip, function, args, limits, offset);
  }
}

}  // namespace

void check_tensors(const TorchZip& zip, const Limits& limits) {
  uint64_t tensors = 0;
  pickle::for_each_node(zip.root, [&](const Ref& node) {
    if (node->kind != Kind::call) return;
    const std::string function = rebuild_name(node->items[0]);
    if (function.empty()) return;
    if (++tensors > limits.tensors) {
      refuse(RefusalClass::LimitExceeded,
             "data.pkl: more than " + std::to_string(limits.tensors) + " tensors", node->offset);
    }
    check_call(zip, function, node->items[1]->items, limits, node->offset);
  });
}

}  // namespace qcts
