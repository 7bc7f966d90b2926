// SPDX-License-Identifier: BSD-3-Clause
// Parts of `qcts quantize`: the request, the form of the output, and the output itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reference/dialects/encoders/encode.h"
#include "reference/dialects/encoders/quantize_decision.h"
#include "suites/cli/files/file_command.h"
#include "suites/cli/files/static_scales.h"

namespace qcts::cli {

struct QuantizeArguments {
  FileOptions options;
  std::string in, out, scheme, layout, like, activation, dialect, max_shard_size;
  StaticScales scales;
  QuantizeRules rules;
  bool strict = false, dry_run = false, overwrite = false;
  bool as_like = false;  // true if the scheme is that of --like
};

struct QuantizePlan {
  const Scheme* scheme = nullptr;
  Layout layout;
  Policy activation;
  Planes policy_planes;               // a static policy's planes, the same for every weight
  const TorchaoClass* cls = nullptr;  // nullptr: TinyQ's layers
  std::string dialect;                // the word that chose `cls`, or empty
  bool folder = false;                // OUT is a folder for transformers
  bool safetensors = false;           // otherwise pickled

  std::string type() const {
    if (cls) return std::string(cls->name);
    return scheme->name() == "tinyq_w8a32" ? "W8A32LinearLayer" : "W8A16LinearLayer";
  }
};

// Replaces the names of torchao's first recipes.
// If no scheme is given, takes the scheme and the policy from --like.
// Throws Failure if the tensors of --like have more than one scheme or policy.
// Throws UsageError if there is no scheme.
QuantizeArguments spelled_out(QuantizeArguments words);
// Throws UsageError, which names the part that cannot be written.
QuantizePlan quantize_plan(const QuantizeArguments& words);

// Returns a note for each class, policy, attribute and recipe of --like that OUT does not keep.
// OUT is written, and IN is open.
std::vector<std::string> not_as_like(const QuantizeArguments& words, const Checkpoint& in);

using Quantized = std::unordered_map<const NamedTensor*, SchemeTensor>;
// Returns all tensors of the checkpoint, with those in `replaced` quantized.
// Throws Failure for a tensor that no new container can hold.
std::vector<OutputTensor> output_tensors(const Checkpoint& checkpoint, const Quantized& replaced);
// Throws Failure if the checkpoint has contents that a new container would lose.
void require_only_tensors(const Checkpoint& checkpoint);

// Adds the tensors that transformers leaves float in the model of IN to QuantizeRules::kept.
// Tensors that the command line names are not added.
void keep_as_transformers(const Checkpoint& checkpoint, QuantizeRules& rules);
// Throws UsageError unless OUT may be written as a folder.
void require_folder(const QuantizeArguments& words, const QuantizePlan& plan, const Checkpoint& checkpoint);
// Writes the files of a model into a folder that becomes OUT when it is complete. Returns notes.
// The files are weight files, their index, config.json with quantization_config, and copies of all others.
std::vector<std::string> write_folder(const QuantizeArguments& words, const QuantizePlan& plan,
                                      const Checkpoint& checkpoint,
                                      const std::vector<QuantizeDecision>& decisions,
                                      const Quantized& replaced);

}  // namespace qcts::cli
