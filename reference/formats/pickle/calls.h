// SPDX-License-Identifier: BSD-3-Clause
// What the pickle reader lets a file do with the objects it names: type and argument rules of REDUCE, NEWOBJ,
// BUILD, APPEND(S) and SETITEM(S). Each check throws Refused; nothing is executed.
#pragma once

#include <string>
#include <string_view>

#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Role of the global that `node` names, or that `node` was called or instantiated from. Globals that the
// caller allowed are library types. nullopt for any other node.
std::optional<GlobalInfo> role_of(const Ref& node);

// `role` is role_of(callable), which the reader asks for once a global.
void check_reduce(const Ref& callable, const std::optional<GlobalInfo>& role, const Ref& arguments,
                  uint64_t offset);
void check_new_object(const Ref& cls, const Ref& arguments, uint64_t offset);
void check_build(const Ref& target, const Ref& state, uint64_t offset);
void check_append(const Ref& target, uint64_t offset);
void check_set_item(const Ref& target, uint64_t offset);
// Text that equal keys share and different keys do not (1, 1.0 and True are one key in Python). Refuses what
// is no leaf.
std::string key_text(const Ref& key, uint64_t offset);

}  // namespace qcts::pickle
