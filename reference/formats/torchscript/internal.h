// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of this folder only.
#pragma once

#include <string>
#include <string_view>

#include "reference/formats/torchscript/torchscript.h"

namespace qcts {

// Adds the classes that one source defines. `module`: "__torch__.torch.nn.modules.linear". Refuses
// SubclassSchema for a class defined twice and for malformed class heads.
void read_script_classes(std::string_view source, const std::string& module, ScriptClasses& classes,
                         ReadBudget& budget);

// Returns the globals that a TorchScript pickle may name beside torch.save's: the code's classes, torch's
// custom classes, the functions of torch.jit._pickle, and storage types.
std::vector<std::string> script_globals(const ScriptClasses& classes);

// Checks every object and call of a graph against the classes. Throws Refused (PickleGlobal) for what
// TorchScript cannot hold, PickleCall and PickleType for arguments that its functions do not take,
// SubclassSchema for objects that contradict their class.
void check_script_values(const pickle::Ref& root, const ScriptClasses& classes,
                         const std::vector<std::string>& allow, const std::string& pickle);

}  // namespace qcts
