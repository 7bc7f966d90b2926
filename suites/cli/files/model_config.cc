// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/model_config.h"

#include <algorithm>
#include <vector>

#include "reference/formats/io/python_json.h"

namespace qcts::cli {

using Config = nlohmann::ordered_json;

std::string json_file(const Config& value) {
  return unmarked_python_numbers(value.dump(2, ' ', true)) + "\n";
}

std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Config with_quantization(const Config& config, const nlohmann::json& quantization) {
  constexpr std::string_view kKey = "quantization_config";
  std::vector<std::string> keys;
  for (const auto& [key, value] : config.items())
    if (key != kKey) keys.push_back(key);
  const auto place = std::ranges::is_sorted(keys) ? std::ranges::lower_bound(keys, kKey) : keys.end();
  keys.insert(place, std::string(kKey));
  Config out = Config::object();
  for (const std::string& key : keys) out[key] = key == kKey ? Config(quantization) : config.at(key);
  return out;
}

}  // namespace qcts::cli
