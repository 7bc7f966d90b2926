// SPDX-License-Identifier: BSD-3-Clause
// Cuts arrays and planes to their first or last rows and columns.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

enum class End : uint8_t { first, last };

// Returns the part of a row-major array that a smaller shape covers, at the start or the end of every axis.
std::vector<std::byte> cut_array(std::span<const std::byte> from, std::span<const int64_t> old_shape,
                                 std::span<const int64_t> new_shape, size_t element_bytes, End end);

// Cuts planes of layout "plain", including those of the policy `activation`, to a smaller weight.
// Returns nullopt if a plane of the smaller weight has no counterpart with the same number of dimensions.
// The result does not have to represent the cut weight.
std::optional<Planes> cut_planes(const Scheme& scheme, const Planes& planes, const WeightShape& new_shape,
                                 Policy activation, End end);

}  // namespace qcts
