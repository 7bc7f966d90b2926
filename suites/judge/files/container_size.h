// SPDX-License-Identifier: BSD-3-Clause
// Computes the sizes of the parts of a container that are neither tensors nor overhead.
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Returns the bytes of metadata. In safetensors, this is the part of __metadata__ that describes no tensor.
// In pickles, metadata is the values that are not tensors, each at the maximum that a pickler spends.
uint64_t metadata_bytes(const Checkpoint& checkpoint);
// Returns the bytes of padding. In safetensors, this is the blanks at the end of the header.
// In a zip, padding is the bytes that align the data of the records.
uint64_t padding_bytes(const Checkpoint& checkpoint);

// Returns the length of the value of "__metadata__" in a header's JSON, or 0 if there is none.
uint64_t metadata_span_bytes(std::string_view header);

}  // namespace qcts
