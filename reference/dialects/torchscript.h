// SPDX-License-Identifier: BSD-3-Clause
// Lists a TorchScript program's modules and tensors. The tensors are Checkpoint::tensors.
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
  // Other attributes, in slot order: numbers, strings, lists and dicts unchanged; tuples and the rest as in
  // reference/dialects/classes/attributes.h; tensors as {"_type": "Tensor", "_data": name}; non-finite
  // numbers as {"_type": "float", "_data": "inf"}; enum members as {"_type": class, "_data": value}.
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
};

// Lists the modules depth-first in file order. Throws Refused (LimitExceeded) where shared parts would make
// the list too long.
std::vector<ScriptModule> script_modules(const TorchScript& script, const Limits& limits);

// Lists every tensor: the module's by path, depth-first in file order ("first.linear.weight"; items of lists,
// tuples and dicts by index or key), then the constants as the code calls them, "CONSTANTS.c0".
// NamedTensor::type is what the code declares: "Parameter", "Buffer", "Attribute" or "Constant".
std::vector<NamedTensor> script_tensors(const TorchScript& script, const Limits& limits);

}  // namespace qcts
