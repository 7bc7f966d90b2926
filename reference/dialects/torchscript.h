// SPDX-License-Identifier: BSD-3-Clause
// A TorchScript program as a tree of modules, for people; its tensors are Checkpoint::tensors.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/checkpoint.h"
#include "reference/formats/torchscript/torchscript.h"

namespace qcts {

// One module at one place. A module that stands at several places is listed at each.
struct ScriptModule {
  std::string path;  // "" for the root, "first.linear"
  const ScriptClass* cls = nullptr;
  // What is neither tensor nor module, in slot order: numbers, strings, lists and dicts as they are, tuples
  // and the rest as reference/dialects/classes/attributes.h spells them; a tensor inside by the name that it
  // has among the tensors
  // ({"_type": "Tensor", "_data": name}), numbers that are not finite as {"_type": "float", "_data": "inf"},
  // enum members as {"_type": class, "_data": value}.
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
};

// Depth first in file order. Refuses LimitExceeded where shared parts would spell a listing of any size.
std::vector<ScriptModule> script_modules(const TorchScript& script, const Limits& limits);

// Every tensor: of the module under its path, depth first in file order ("first.linear.weight", items of
// lists, tuples and dicts by index or key), then the constants as the code calls them, "CONSTANTS.c0".
// NamedTensor::type is what the code declares: "Parameter", "Buffer", "Attribute" or "Constant".
std::vector<NamedTensor> script_tensors(const TorchScript& script, const Limits& limits);

}  // namespace qcts
