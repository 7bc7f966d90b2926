// SPDX-License-Identifier: BSD-3-Clause
// The parts that all targets of `convert --to` share: refusals, the comparison with IN, and the report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "suites/cli/files/convert.h"

namespace qcts::cli {

// Returns a tensor that holds these elements and nothing else.
NamedTensor plain_tensor(const std::string& name, const Tensor& elements);

// Throws UsageError if a folder OUT exists.
void require_new_folder(const std::string& out);
// Throws Failure for findings, and for weights that qcts recognizes but cannot read.
void require_no_findings(const Checkpoint& checkpoint);
// Throws Failure for the first part of a tensor that acts on x, such as act_pre_scale.
void require_no_input_parts(const Checkpoint& checkpoint, const std::string& target);
// Returns what the configuration says about x: "input_activations of group_0". Returns "" if nothing.
std::string said_about_input(const Checkpoint& checkpoint, const OpenOptions& options);
// Notes what no safetensors file can store: attributes that no class has.
void note_further_attributes(const Checkpoint& checkpoint);

// The weights that were compared with IN.
struct ComparedWeights {
  size_t weights = 0;
  uint64_t elements = 0, rounded_otherwise = 0;
};
// Reads the file that would become OUT, and compares every tensor with IN's: plain ones byte for byte,
// quantized ones by their exact real values and by what they dequantize to. Throws Failure for the first
// difference, and where only the rounding differs unless --other-rounding was given; it counts the elements.
ComparedWeights compare_written(const Checkpoint& checkpoint, const std::filesystem::path& written,
                                const ConvertArguments& words);

// Writes OUT under a temporary name with `write`, compares it with IN by `compare`, and renames it. Throws
// WriteFailure.
ComparedWeights write_compared(const ConvertArguments& words, bool folder,
                               const std::function<void(const std::filesystem::path&)>& write,
                               const std::function<ComparedWeights(const std::filesystem::path&)>& compare);

// Prints the line or the JSON document of a finished conversion.
void report_conversion(const ConvertArguments& words, const Checkpoint& checkpoint, const std::string& format,
                       const std::string& dialect, const ComparedWeights& compared, const std::string& what);

}  // namespace qcts::cli
