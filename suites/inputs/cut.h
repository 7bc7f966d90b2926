// SPDX-License-Identifier: BSD-3-Clause
// Parts of inputs: the first or the last rows and columns of arrays and planes.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

enum class End : uint8_t { first, last };

// The part of a row-major array that a smaller shape takes from its start or its end, along every axis alike.
std::vector<std::byte> cut_array(std::span<const std::byte> from, std::span<const int64_t> old_shape,
                                 std::span<const int64_t> new_shape, size_t element_bytes, End end);

// Planes of layout "plain", those of the policy `activation` among them, cut to a smaller weight; nullopt
// where a plane of the smaller one has no counterpart of as many dimensions. Nothing is said of what they
// mean.
std::optional<Planes> cut_planes(const Scheme& scheme, const Planes& planes, const WeightShape& new_shape,
                                 Policy activation, End end);

}  // namespace qcts
