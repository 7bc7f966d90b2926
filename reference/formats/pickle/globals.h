// SPDX-License-Identifier: BSD-3-Clause
// The pickle reader's allow-list: the globals a file may name, and what it may do with each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qcts::pickle {

enum class Role : uint8_t {
  constant,      // a dtype, a qscheme, or a function that a class refers to by name: never called
  storage_type,  // only inside a persistent id
  tensor_type,   // only an argument of a rebuild function
  rebuild,       // a torch function with min_arguments to max_arguments arguments
  ordered_dict,
  counter,
  parameter,
  size,
  device,
  layout,
  encode,
  bytes,  // empty bytes: others are an encode
  tag,    // a function of torch's C++ pickler that returns its first argument, a list or dict
  bytearray,
  set,
  complex,
  library_type,  // a torchao class: may be called, instantiated and given a state; kept as a node, never
                 // run
};

struct GlobalInfo {
  Role role = Role::constant;
  uint8_t min_arguments = 0;  // arguments of a rebuild function
  uint8_t max_arguments = 0;
};

// Names of one module, separated by spaces.
struct ModuleNames {
  std::string_view module, names;
};
std::span<const ModuleNames> torchao_classes();
std::span<const ModuleNames> torchao_functions();

// Looks up a global by the module name in the file; Python 2's "__builtin__" is "builtins". nullopt: not on
// the list.
std::optional<GlobalInfo> known_global(std::string_view module, std::string_view name);
// As above, for Node::text: "module name".
std::optional<GlobalInfo> known_global(std::string_view text);

// Is this a part of the pickle of a numpy array? It is known only inside of the form in which torch
// before 2.2 saved tensors of XLA devices: numpy_arrays.h.
bool is_numpy_part(std::string_view module, std::string_view name);

// Says what a global that is not on the list is there for, if that is not plain from its name; empty
// otherwise.
std::string_view global_note(std::string_view module, std::string_view name);

// Throws Refused (PickleGlobal) for these, "module.name". Names of blocked modules are not among
// Refusal::allow.
[[noreturn]] void refuse_globals(const std::vector<std::string>& names, std::string_view note,
                                 uint64_t offset);

// Is this module refused even when the caller allows it (torch/_weights_only_unpickler.py,
// _blocklisted_modules)?
bool is_blocked_module(std::string_view module);

}  // namespace qcts::pickle
