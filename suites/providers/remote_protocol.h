// SPDX-License-Identifier: BSD-3-Clause
// Converts structs of the C ABI to and from the line-JSON protocol. Dtypes have torch's names.
#pragma once

#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// One tensor of a problem: the caller's `data`, and its place in the shared memory.
struct RemoteTensor {
  void* data = nullptr;
  size_t bytes = 0;  // bytes from the first to the last element, including gaps between rows
  size_t offset = 0;
};

// Returns x, bias, y, planes and out_planes in this order, but only those that the problem has.
std::vector<RemoteTensor> tensors_of(const qcts_problem& problem);
// Includes offsets if `tensors` is the result of tensors_of(), and omits them if it is empty.
nlohmann::ordered_json problem_json(const qcts_problem& problem, const std::vector<RemoteTensor>& tensors);

// These functions throw std::runtime_error, which names the unknown word.
uint32_t claims_from(const nlohmann::ordered_json& names);
qcts_numerics numerics_from(const nlohmann::ordered_json& json);
qcts_fused_sums fused_sums_from(const nlohmann::ordered_json& json);
// Return what the functions above read, without the fields that are NONE, false or 0.
nlohmann::ordered_json numerics_json(const qcts_numerics& numerics);
nlohmann::ordered_json fused_sums_json(const qcts_fused_sums& fused);
// Reads {"status": "ok" | "unsupported" | "invalid" | "failed", "reason": "..."}.
// Throws ProviderFault for anything else.
qcts_status answered(const nlohmann::ordered_json& answer, char* why, size_t why_size);

}  // namespace qcts
