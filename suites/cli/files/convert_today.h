// SPDX-License-Identifier: BSD-3-Clause
// `qcts convert --as torchao_v2`: quantized tensors in the classes of torchao 0.18.0, with the same planes.
#pragma once

#include <deque>
#include <string>

#include "reference/dialects/encoders/encode.h"

namespace qcts::cli {

// The quantized tensors of a file in classes of today, by the place of each among Checkpoint::tensors.
struct TodaysTensors {
  std::deque<SchemeTensor> made;
  std::vector<const SchemeTensor*> by_index;  // nullptr: not quantized, stays as it is
};

// Puts the planes of each quantized tensor into the class that torchao 0.18.0 has for them. Nothing is
// quantized again: codes and scales keep their values. Throws Failure for a tensor that no such class holds,
// or that OUT
// (`safetensors`) cannot hold; the message names its scheme and policy.
TodaysTensors todays_tensors(const Checkpoint& checkpoint, bool safetensors);

// Returns a pickle of the file's objects with these tensors in their places.
// Requires that the checkpoint is one pickle.
EditedZip with_todays_tensors(const Checkpoint& checkpoint, const TodaysTensors& today, const Limits& limits);
// Returns the safetensors file of all tensors.
EncodedSafetensors encoded_today(const Checkpoint& checkpoint, const TodaysTensors& today);

}  // namespace qcts::cli
