// SPDX-License-Identifier: BSD-3-Clause
// Takes nodes apart for comparing: mappings, sets and bytes, whichever call spells them, and the wrappers
// around the elements of a tensor.
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
  pickle::Ref state;  // of an OrderedDict: {"_metadata": ...}
};
std::optional<MappingParts> mapping_of(const pickle::Ref& node);
// The members of a set.
std::optional<std::vector<pickle::Ref>> members_of(const pickle::Ref& node);
// Bytes, stored as bytes or as a call of _codecs.encode on a latin1 text.
std::optional<std::string> bytes_value(const pickle::Ref& node);

// How a tensor is wrapped: the torch.Tensor, Parameter and attributes around the call that makes its
// elements.
struct Layers {
  bool parameter = false;
  pickle::Ref requires_grad, hooks;  // of the Parameter
  pickle::Ref type;                  // null for torch.Tensor
  pickle::Refs states;               // its attributes, outermost first
  pickle::Ref inner;
  std::string functions;  // wrappers, as the file spells them
  std::string kind() const;
};
bool is_wrapped_tensor(const pickle::Ref& node);
Layers layers_of(const pickle::Ref& node);

// _rebuild_tensor, _v2 or _v3.
struct PlainCall {
  std::string function;
  bool requires_grad = false, conj = false, neg = false;
  pickle::Ref hooks;
  pickle::Ref eager;  // the call without conj and neg, for tensor_of
};
std::optional<PlainCall> plain_call(const pickle::Ref& node);

// Returns the name of argument `index` of a torch function; empty for other functions.
std::string argument_name(const pickle::Ref& callable, size_t index);

// Returns "module.CLASS.NAME" of a method that a pickle spells getattr(CLASS, NAME), "module.name" of a
// global, as canonical_function() names it; nullopt for other nodes.
std::optional<std::string> function_path(const pickle::Ref& node);

enum class SameGlobal : uint8_t { no, by_another_path, yes };
// True if two paths name the same function: builtins of Python 2, numpy.core and numpy._core, modules of
// torchao between which a class or function moved, a TorchScript class with a different number.
SameGlobal same_global(const pickle::Ref& a, const pickle::Ref& b);

}  // namespace qcts
