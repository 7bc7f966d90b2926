// SPDX-License-Identifier: BSD-3-Clause
// Inputs of a size that someone asks for: a layer of a model. No plan has them.
// The weight has at most 512 different rows and x at most 16, so that the oracle has few sums to make and
// every output is judged all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "suites/inputs/synthetic.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

inline constexpr int64_t kMaxLayerWeights = int64_t{1} << 28;   // n * k
inline constexpr int64_t kMaxLayerOutputs = int64_t{1} << 24;   // m * n
inline constexpr int64_t kMaxLayerProducts = int64_t{1} << 35;  // m * n * k

// Returns the linear of this size, or nullopt if it exceeds one of the three or the scheme refuses it.
std::optional<Synthetic> layer_input(const Scheme& scheme, Policy activation, const WeightShape& weight,
                                     int64_t m);

// The inverse of input_name() for such a linear: "layer_m8_n4096_k4096_bf16",
// "layer_dyn_row_sym_m8_n4096_k4096_bf16". Returns nullopt for every other name, and where layer_input()
// does.
std::optional<Synthetic> find_layer_input(const Scheme& scheme, std::string_view name);

// Returns the weight's planes, x of the weight's dtype and, for every other size, a bias.
KernelInput layer_data(const Scheme& scheme, const Synthetic& layer, uint64_t seed);

}  // namespace qcts
