// SPDX-License-Identifier: BSD-3-Clause
// Compares the numbered layers of a model with the number of layers that its configuration says.
#pragma once

#include "reference/dialects/checkpoint.h"

namespace qcts {

// A stack is what a prefix numbers: "model.layers" for model.layers.0.mlp.up_proj.weight.
// Finding (a warning if lenient): a layer without any tensor, in a stack that goes on to the
// last number that config.json (num_hidden_layers and the like) or GGUF's block_count says.
// Warnings: fewer layers than said without a gap; a layer between others that lacks a tensor that all others
// have.
// Likewise for the experts of a module and num_experts.
// Says nothing about adapters, parts of a model, and configurations that describe each layer.
void report_lost_layers(Checkpoint& checkpoint, const OpenOptions& options);

}  // namespace qcts
