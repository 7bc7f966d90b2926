// SPDX-License-Identifier: BSD-3-Clause
// Writes the tensors of a checkpoint into another container or dialect: parts and attributes as they were
// read, nothing quantized again. Every function throws std::invalid_argument, with the tensor's name and the
// reason, for what the target cannot hold.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "reference/dialects/encoders/encode.h"

namespace qcts {

// Returns the dialect in which a safetensors file holds these tensors: "torchao_2338" if one is a
// LinearActivationQuantizedTensor, "torchao_safetensors" if one has another class, "tinyq", or "plain".
std::string_view safetensors_dialect(std::span<const NamedTensor> tensors);

// Returns the entries and metadata of a file in `dialect`. torchao_safetensors: as torchao 0.18.0 writes
// them, and only what its reader gives back. torchao_2338: as the script writes them; `lone`: one
// tensor without a name.
EncodedSafetensors encode_safetensors(std::span<const NamedTensor> tensors, std::string_view dialect,
                                      bool lone);

// Returns a state dict as torch.save pickles it; `lone`: its only tensor instead of a dict.
EditedZip encode_state_dict(std::span<const NamedTensor> tensors, bool lone);

}  // namespace qcts
