// SPDX-License-Identifier: BSD-3-Clause
// Chooses the pickle of a container that is written.
#pragma once

#include <span>
#include <vector>

#include "reference/formats/pickle/pickle.h"

namespace qcts {

// Returns the pickle of `root`, or `stored` where that encodes the same graph in another pickler's way.
std::vector<std::byte> pickle_or_stored(const pickle::Ref& root, std::span<const std::byte> stored,
                                        const Limits& limits, bool& kept);

}  // namespace qcts
