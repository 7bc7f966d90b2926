// SPDX-License-Identifier: BSD-3-Clause
// Recognizes weights that are quantized in formats of other libraries.
// config.json, or the names and dtypes of the tensors, reveal them.
// qcts neither judges nor dequantizes them.
// Weights that a join reads (../joins/join.h) are no longer among them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct ForeignFormat {
  std::string_view name;  // "gptq"
  std::string_view what;  // a description for people
  // Values of quant_method or quant_algo, in lower case, separated by blanks.
  std::string_view methods;
  // The names of a weight's parts. '|' separates alternatives.
  // Each alternative is a list of endings that follow the same stem.
  // The first ending belongs to the codes. ":f8,i8" lists the possible dtypes of a part.
  // '!' before an ending: the format requires the part, so a missing part is a contradiction.
  // '?' before an ending: the part is optional.
  // An ending without a mark: the pattern matches only if the part is there.
  std::string_view parts;
};
std::span<const ForeignFormat> foreign_formats();
// Returns the format that has this method, or nullptr.
const ForeignFormat* foreign_by_method(std::string_view method);
// Adds a finding for each weight that has scales or other parts in the file, but no codes.
// `method` is QuantConfig::method. Call it after the weights are joined or marked.
void report_lone_parts(Checkpoint& checkpoint, const std::string& method, ReadBudget& budget);

}  // namespace qcts
