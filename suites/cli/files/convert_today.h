// SPDX-License-Identifier: BSD-3-Clause
// `qcts convert --as torchao_v2`: quantized tensors in the classes of torchao 0.18.0, with the same planes.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/encoders/encode.h"

namespace qcts::cli {

inline constexpr const char* kTodaysClasses = "torchao_v2";  // the word of --as

// Returns true if a tensor has a class that torchao 0.18.0 does not have.
bool holds_first_generation(const Checkpoint& checkpoint);

// The quantized tensors of a checkpoint in classes of today, by the place of each among Checkpoint::tensors.
struct TodaysTensors {
  std::deque<SchemeTensor> made;
  std::vector<const SchemeTensor*> by_index;  // nullptr: stays as it is
};

// Puts the planes of each tensor of an older class into the class that torchao 0.18.0 has for them.
// Nothing is quantized again: codes and scales keep their values. Tensors of today's classes stay as they
// are. Throws Failure if no such class holds a tensor, or if OUT (`safetensors`) cannot hold the class. The
// message names all these tensors.
TodaysTensors todays_tensors(const Checkpoint& checkpoint, bool safetensors);

// Returns the graph of one of the checkpoint's pickles with these tensors in their places.
// Throws Failure if a class of an older torchao remains, such as in an attribute of another object.
EditedZip with_todays_tensors(const Checkpoint& checkpoint, const TorchObject& object,
                              const TodaysTensors& today, const Limits& limits);
// Returns all tensors as a reader of OUT finds them, with the further attributes that they had.
std::vector<NamedTensor> read_today(const Checkpoint& checkpoint, const TodaysTensors& today,
                                    const OpenOptions& options);

// Returns the Linear layers that are not quantized, by their names in memory, and lm_head if it is tied.
std::vector<std::string> float_layers(const Checkpoint& checkpoint);

// Returns config.json with a quantization_config of the classes in OUT; its other entries stay.
// Tensors of several recipes get torchao's FqnToConfig. Returns null if there is no config.json, or if no
// tensor changes its class. Throws Failure for a class that transformers has no configuration for.
nlohmann::ordered_json todays_config(const Checkpoint& checkpoint, const TodaysTensors& today);

}  // namespace qcts::cli
