// SPDX-License-Identifier: BSD-3-Clause
// The pickle reader's allow-list: the globals that a file may name, and the uses of each that it may make.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qcts::pickle {

enum class Role : uint8_t {
  constant,      // a dtype, a qscheme, or a function that a class refers to by name; never called
  storage_type,  // allowed only inside a persistent id
  tensor_type,   // allowed only as an argument of a rebuild function
  rebuild,       // a torch function with min_arguments to max_arguments arguments
  ordered_dict,
  counter,
  parameter,
  size,
  device,
  layout,
  encode,
  bytes,  // empty bytes; other bytes are an encode
  tag,    // a function of torch's C++ pickler that returns its first argument, a list or dict
  bytearray,
  set,
  complex,
  library_type,  // a torchao class: may be called, instantiated and given a state; kept as a node, never run
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

// Looks up a global by the module name in the file. Python 2's "__builtin__" is "builtins".
// Returns nullopt for a global that is not on the list.
std::optional<GlobalInfo> known_global(std::string_view module, std::string_view name);
// Looks up a global by Node::text: "module name".
std::optional<GlobalInfo> known_global(std::string_view text);

// Returns true for a part of the pickle of a numpy array.
// Such a part is known only inside the form in which torch before 2.2 saved tensors of XLA devices.
// See numpy_arrays.h.
bool is_numpy_part(std::string_view module, std::string_view name);

// Explains the purpose of a global that is not on the list, if its name does not make it plain.
// Returns an empty string otherwise.
std::string_view global_note(std::string_view module, std::string_view name);

// Throws Refused (PickleGlobal) for the globals in `names`, "module.name".
// Refusal::allow leaves out names of blocked modules.
[[noreturn]] void refuse_globals(const std::vector<std::string>& names, std::string_view note,
                                 uint64_t offset);

// Returns true if this module is refused even when the caller allows it.
// The source is torch/_weights_only_unpickler.py, _blocklisted_modules.
bool is_blocked_module(std::string_view module);

}  // namespace qcts::pickle
