// SPDX-License-Identifier: BSD-3-Clause
// Lists the modules and tensors of a TorchScript program. The tensors become Checkpoint::tensors.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/checkpoint.h"
#include "reference/formats/torchscript/torchscript.h"

namespace qcts {

// One module at one place; a shared module is listed at each of its places.
struct ScriptModule {
  std::string path;  // "" for the root, "first.linear"
  const ScriptClass* cls = nullptr;
  // The attributes other than tensors and modules, in slot order.
  // Numbers, strings, lists and dicts are unchanged.
  // A tensor inside them is {"_type": "Tensor", "_data": name}.
  // A non-finite number is {"_type": "float", "_data": "inf"}.
  // An enum member is {"_type": class, "_data": value}.
  // Tuples and all other values are encoded as in reference/dialects/classes/attributes.h.
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
};

// Lists the modules depth-first in file order.
// Throws Refused (LimitExceeded) if shared parts would make the list too long.
std::vector<ScriptModule> script_modules(const TorchScript& script, const Limits& limits);

// Lists every tensor. The module's tensors come first, depth-first in file order.
// Tensors are named by path: "first.linear.weight". Items of lists, tuples and dicts have an index or key.
// The constants follow under the names that the code uses, "CONSTANTS.c0".
// NamedTensor::type is the declaration in the code: "Parameter", "Buffer", "Attribute" or "Constant".
std::vector<NamedTensor> script_tensors(const TorchScript& script, const Limits& limits);

}  // namespace qcts
