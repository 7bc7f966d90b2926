// SPDX-License-Identifier: BSD-3-Clause
// The words of the line-JSON protocol: structs of the C ABI as JSON and back. Dtypes have torch's names.
#pragma once

#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// One tensor of a problem: what the caller has at `data`, and where it lies in the shared memory.
struct RemoteTensor {
  void* data = nullptr;
  size_t bytes = 0;  // first to last element, gaps between rows included
  size_t offset = 0;
};

// x, bias, y, planes, out_planes, as far as the problem has them; always in this order.
std::vector<RemoteTensor> tensors_of(const qcts_problem& problem);
// With offsets where `tensors` is what tensors_of gave; without where it is empty.
nlohmann::ordered_json problem_json(const qcts_problem& problem, const std::vector<RemoteTensor>& tensors);

// All throw std::runtime_error naming the word that is unknown.
uint32_t claims_from(const nlohmann::ordered_json& names);
qcts_numerics numerics_from(const nlohmann::ordered_json& json);
// {"status": "ok" | "unsupported" | "invalid" | "failed", "reason": "..."}; ProviderFault otherwise.
qcts_status answered(const nlohmann::ordered_json& answer, char* why, size_t why_size);

}  // namespace qcts
