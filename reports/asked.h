// SPDX-License-Identifier: BSD-3-Clause
// The properties of a question by which a provider may limit what it serves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace qcts {

// The types are names such as "bfloat16"; one that the operation does not have is empty.
struct Asked {
  std::string family = {};  // of the input: "noise"; "golden" for a tensor of a file, and for a file
  std::string w_dtype = {}, x_dtype = {}, y_dtype = {}, bias_dtype = {};
  std::string policy = {}, layout = {};  // empty for files
  std::string container = {};            // of a file: the end of its name, such as "pt"; empty for kernels
  std::optional<int64_t> m = {};         // absent without rows of x
  int64_t n = 0, k = 0;                  // 0 for files
  int64_t group = 0;                     // elements along k that share a scale; 0: the row, or a file

  bool operator==(const Asked&) const = default;
};

// Fields that are empty or 0 are left out.
nlohmann::ordered_json to_json(const Asked& asked);
// Throws std::runtime_error, which names the field.
Asked asked_from_json(const nlohmann::ordered_json& json);

}  // namespace qcts
