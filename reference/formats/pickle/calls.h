// SPDX-License-Identifier: BSD-3-Clause
// Type and argument rules for REDUCE, NEWOBJ, BUILD, APPEND(S) and SETITEM(S).
// The rules limit the use that a pickle may make of the objects it names.
// If a rule is violated, Refused is thrown. Nothing is executed.
#pragma once

#include <string>
#include <string_view>

#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Returns the role of the global that `node` names, or that `node` calls or instantiates.
// Globals that the caller allowed are library types. Returns nullopt for any other node.
std::optional<GlobalInfo> role_of(const Ref& node);

// `role` is role_of(callable). The reader looks it up once per global.
void check_reduce(const Ref& callable, const std::optional<GlobalInfo>& role, const Ref& arguments,
                  uint64_t offset);
void check_new_object(const Ref& cls, const Ref& arguments, uint64_t offset);
void check_build(const Ref& target, const Ref& state, uint64_t offset);
void check_append(const Ref& target, uint64_t offset);
void check_set_item(const Ref& target, uint64_t offset);
// Returns a text that is the same only for equal keys.
// In Python, 1, 1.0 and True are one key, and (1, 2) and torch.Size([1, 2]) are one key.
// A NaN, or an object of a class that the caller allowed, is equal only to itself.
// Throws Refused (PickleType) for a key that Python cannot hash.
// Throws Refused (PickleType) for a key that holds a tensor, which would have no name.
// Throws Refused (LimitExceeded) for a tuple of more than kKeyBytes.
inline constexpr uint64_t kKeyBytes = 64 << 10;
std::string key_text(const Ref& key, uint64_t offset);

}  // namespace qcts::pickle
