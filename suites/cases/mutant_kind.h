// SPDX-License-Identifier: BSD-3-Clause
// The kinds of planted faults. A plan names a kind if its cases find all faults of that kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace qcts {

// The thing that a mutant breaks.
enum class MutantKind : uint8_t { kernel, cuda, format, comparator, runner, merge, bench };
std::string_view mutant_kind_name(MutantKind kind);
std::optional<MutantKind> find_mutant_kind(std::string_view name);

}  // namespace qcts
