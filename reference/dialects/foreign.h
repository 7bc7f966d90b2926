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
  // How the parts of one weight are named: alternatives separated by '|', each a list of endings behind one
  // stem. The first is that of the codes. ":f8,i8" lists the dtypes it may have. '!' before an ending: the
  // format needs it, and its absence is a contradiction; '?': may be there; neither: the pattern fits only
  // where it is.
  std::string_view parts;
};
std::span<const ForeignFormat> foreign_formats();
// nullptr: no row has the method.
const ForeignFormat* foreign_by_method(std::string_view method);

// The method that config.json names; empty: none, or torchao's. Of a directory its neighbours
// hf_quant_config.json (ModelOpt), quantize_config.json (GPTQ) and quant_config.json (AWQ) too.
std::string foreign_method(const nlohmann::ordered_json& config, const std::filesystem::path& directory);

}  // namespace qcts
