// SPDX-License-Identifier: BSD-3-Clause
// Writes the tensors of a checkpoint into another container or dialect.
// Parts and attributes stay as they were read, and nothing is quantized again.
// Every function throws std::invalid_argument if the target cannot hold a tensor.
// The message has the tensor's name and the reason.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "reference/dialects/encoders/encode.h"

namespace qcts {

// Returns the dialect in which a safetensors file holds these tensors.
// The dialect is "torchao_2338" if one tensor is a LinearActivationQuantizedTensor.
// The dialect is "torchao_safetensors" if one tensor has another class, and otherwise "tinyq" or "plain".
std::string_view safetensors_dialect(std::span<const NamedTensor> tensors);

// Returns the entries and metadata of a file in `dialect`.
// torchao_safetensors is written as torchao 0.18.0 does, with only those tensors that its reader gives back.
// torchao_2338 is written as the script in that issue does.
// If `lone`, there is one tensor without a name.
EncodedSafetensors encode_safetensors(std::span<const NamedTensor> tensors, std::string_view dialect,
                                      bool lone);

// Returns a state dict as torch.save pickles it. `lone`: returns its only tensor instead of a dict.
EditedZip encode_state_dict(std::span<const NamedTensor> tensors, bool lone);

}  // namespace qcts
