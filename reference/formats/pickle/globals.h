// SPDX-License-Identifier: BSD-3-Clause
// The allow-list of the pickle reader as data: which globals may be named, and what may be done with each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace qcts::pickle {

enum class Role : uint8_t {
  constant,      // a dtype, a qscheme, or a function that a class carries by name: never called
  storage_type,  // only inside a persistent id
  tensor_type,   // only named, as an argument of a rebuild function
  rebuild,       // a function of torch that takes between `least` and `most` arguments
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
  library_type,  // a class of torchao: may be called, instantiated and given a state; kept as a node, never
                 // run
};

struct GlobalInfo {
  Role role = Role::constant;
  uint8_t least = 0;  // arguments of a rebuild function
  uint8_t most = 0;
};

// Names of one module, separated by blanks.
struct ModuleNames {
  std::string_view module, names;
};
std::span<const ModuleNames> torchao_classes();
std::span<const ModuleNames> torchao_functions();

// `module` as the file spells it; Python 2's "__builtin__" is "builtins". nullopt: not on the list.
std::optional<GlobalInfo> known_global(std::string_view module, std::string_view name);
// The same for Node::text, "module name".
std::optional<GlobalInfo> known_global(std::string_view text);

// Modules whose names are refused even when the caller allows them (torch/_weights_only_unpickler.py,
// _blocklisted_modules).
bool is_blocked_module(std::string_view module);

}  // namespace qcts::pickle
