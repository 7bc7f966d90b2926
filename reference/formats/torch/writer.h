// SPDX-License-Identifier: BSD-3-Clause
// Chooses the pickle that a writer puts into a container.
#pragma once

#include <span>
#include <vector>

#include "reference/formats/pickle/pickle.h"

namespace qcts {

// Returns the pickle of `root`, or returns `stored` if it encodes the same graph in another pickler's way.
std::vector<std::byte> pickle_or_stored(const pickle::Ref& root, std::span<const std::byte> stored,
                                        const Limits& limits, bool& kept);

}  // namespace qcts
