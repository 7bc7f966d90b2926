// SPDX-License-Identifier: BSD-3-Clause
// Functions that only the files of this folder share.
#pragma once

#include <string>
#include <string_view>

#include "reference/formats/torchscript/torchscript.h"

namespace qcts {

// Adds the classes that one source defines. `module` is "__torch__.torch.nn.modules.linear".
// Throws Refused (SubclassSchema) for a class that is defined twice and for a malformed class head.
void read_script_classes(std::string_view source, const std::string& module, ScriptClasses& classes,
                         ReadBudget& budget);

// Returns the globals that a TorchScript pickle may name in addition to torch.save's.
// The globals are the code's classes and torch's custom classes.
// The functions of torch.jit._pickle and storage types are included too.
std::vector<std::string> script_globals(const ScriptClasses& classes);

// Checks every object and call of a graph against the classes. Throws Refused for these faults:
//   PickleGlobal            a value that TorchScript cannot hold
//   PickleCall, PickleType  arguments that its functions do not take
//   SubclassSchema          objects that contradict their class
void check_script_values(const pickle::Ref& root, const ScriptClasses& classes,
                         const std::vector<std::string>& allow, const std::string& pickle);

}  // namespace qcts
