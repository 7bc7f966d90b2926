// SPDX-License-Identifier: BSD-3-Clause
// What a container holds beside tensors and is no overhead of theirs.
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Of safetensors the __metadata__ that describes no tensor; of pickles the values that are no tensors, at
// what a pickler spends on each at most.
uint64_t metadata_bytes(const Checkpoint& checkpoint);
// Blanks behind a safetensors header, and what stands before the data of a zip's records to align them.
uint64_t padding_bytes(const Checkpoint& checkpoint);

// Bytes of the value of "__metadata__" in the JSON of a header; 0 without one.
uint64_t metadata_span_bytes(std::string_view header);

}  // namespace qcts
