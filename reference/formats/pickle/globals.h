// SPDX-License-Identifier: BSD-3-Clause
// The pickle reader's allow-list: the globals a file may name, and what it may do with each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

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

// Is this module refused even when the caller allows it (torch/_weights_only_unpickler.py,
// _blocklisted_modules)?
bool is_blocked_module(std::string_view module);

}  // namespace qcts::pickle
