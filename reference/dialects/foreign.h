// SPDX-License-Identifier: BSD-3-Clause
// Weights quantized in formats of other libraries. They are named, by config.json and by the names and dtypes
// of their tensors, and are neither judged nor dequantized: a reader of a format takes its row over.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct ForeignFormat {
  std::string_view name;  // "gptq"
  std::string_view what;  // for people
  // Words of quant_method or quant_algo, lower case, separated by blanks.
  std::string_view methods;
  // The names of a weight's parts: alternatives separated by '|', each a list of endings that follow the same
  // stem. The first ending is that of the codes. ":f8,i8" lists its possible dtypes. '!' before an ending:
  // the format requires the part, so a missing one is a contradiction; '?': the part is optional; neither:
  // the pattern matches only if the part is there.
  std::string_view parts;
};
std::span<const ForeignFormat> foreign_formats();
// nullptr: no row has the method.
const ForeignFormat* foreign_by_method(std::string_view method);

// The method that config.json names; empty: none, or torchao's. Of a directory its neighbours
// hf_quant_config.json (ModelOpt), quantize_config.json (GPTQ) and quant_config.json (AWQ) too.
std::string foreign_method(const nlohmann::ordered_json& config, const std::filesystem::path& directory);

}  // namespace qcts
