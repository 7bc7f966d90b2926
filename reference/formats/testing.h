// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the format tests. Only *_test.cc files include this header.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/formats/refusal.h"
#include "reference/formats/tensor.h"

namespace qcts::testing {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline std::filesystem::path testdata(const std::string& name) {
  return source_path("reference/formats/testdata") / name;
}

inline Bytes bytes_of_file(const std::string& name) {
  std::ifstream file(testdata(name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return to_bytes(text);
}

// Returns the class of the refusal that `run` throws, as text, or "accepted" if it returns.
template <typename Run>
std::string outcome(Run&& run) {
  try {
    run();
  } catch (const Refused& refused) {
    return std::string(refusal_class_name(refused.refusal().cls));
  }
  return "accepted";
}

template <typename T>
Bytes raw(const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

inline Tensor float_tensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  return make_tensor(DType::float32, std::move(shape), raw(values));
}

}  // namespace qcts::testing
