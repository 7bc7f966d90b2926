// SPDX-License-Identifier: BSD-3-Clause
// A node taken apart for comparing: mappings, sets and bytes whatever call spells them, and what is wrapped
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
// Bytes, as themselves or as _codecs.encode makes them of a text in latin1.
std::optional<std::string> bytes_value(const pickle::Ref& node);

// torch.Tensor, Parameter and attributes around a call that makes elements.
struct Layers {
  bool parameter = false;
  pickle::Ref requires_grad, hooks;  // of the Parameter
  pickle::Ref type;                  // null for torch.Tensor
  pickle::Refs states;               // what hangs on it, from the outermost
  pickle::Ref inner;
  std::string functions;  // that wrap it, as spelt
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

// The name of argument `index` of a function of torch; empty for any other.
std::string argument_name(const pickle::Ref& callable, size_t index);

enum class SameGlobal : uint8_t { no, by_another_path, yes };
// By another path: builtins of Python 2, numpy.core and numpy._core, modules of torchao between which a class
// or function moved, a class of TorchScript under another number.
SameGlobal same_global(const pickle::Ref& a, const pickle::Ref& b);

}  // namespace qcts
