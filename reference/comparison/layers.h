// SPDX-License-Identifier: BSD-3-Clause
// Takes nodes apart for the comparison: mappings, sets and bytes in every spelling.
// Also finds the wrappers around the elements of a tensor.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/formats/pickle/pickle.h"

namespace qcts {

struct MappingParts {
  std::string type;  // "dict", "OrderedDict", "Counter"
  std::vector<std::pair<pickle::Ref, pickle::Ref>> entries;
  pickle::Ref state;  // for an OrderedDict: {"_metadata": ...}
};
std::optional<MappingParts> mapping_of(const pickle::Ref& node);
// Returns the members of a set, or nullopt for any other node.
std::optional<std::vector<pickle::Ref>> members_of(const pickle::Ref& node);
// Returns the value of bytes, stored as bytes or as a call of _codecs.encode on a latin1 text.
std::optional<std::string> bytes_value(const pickle::Ref& node);

// The wrappers around the call that makes a tensor's elements: torch.Tensor, Parameter and attributes.
struct Layers {
  bool parameter = false;
  pickle::Ref requires_grad, hooks;  // arguments of the Parameter
  pickle::Ref type;                  // null for torch.Tensor
  pickle::Refs states;               // attributes of the tensor, outermost first
  pickle::Ref inner;
  std::string functions;  // the wrappers' functions, as the file spells them
  std::string kind() const;
};
bool is_wrapped_tensor(const pickle::Ref& node);
Layers layers_of(const pickle::Ref& node);

// A call of _rebuild_tensor, _rebuild_tensor_v2 or _rebuild_tensor_v3.
struct PlainCall {
  std::string function;
  bool requires_grad = false, conj = false, neg = false;
  pickle::Ref hooks;
  pickle::Ref eager;  // the call without conj and neg, as tensor_of() takes it
};
std::optional<PlainCall> plain_call(const pickle::Ref& node);

// A call that moves elements of the host to a device without storages:
// _rebuild_device_tensor_from_cpu_tensor or _from_numpy(data, dtype, device, requires_grad).
struct DeviceCall {
  std::string function, device;
  bool requires_grad = false;
  pickle::Ref data;  // a plain tensor or a numpy array
};
std::optional<DeviceCall> device_call(const pickle::Ref& node);

// Returns the name of argument `index` of a torch function, or an empty string for any other function.
std::string argument_name(const pickle::Ref& callable, size_t index);

// Returns the path of a function as canonical_function() names it.
// A method, which a pickle spells getattr(CLASS, NAME), has the path "module.CLASS.NAME".
// A global has the path "module.name". Returns nullopt for other nodes.
std::optional<std::string> function_path(const pickle::Ref& node);

enum class SameGlobal : uint8_t { no, by_another_path, yes };
// Returns yes if both paths are equal. Returns by_another_path if different paths name the same global.
// Examples are builtins of Python 2, and members of numpy.core and numpy._core.
// Further examples are TorchScript classes with another number, and names that torchao moved.
SameGlobal same_global(const pickle::Ref& a, const pickle::Ref& b);

}  // namespace qcts
