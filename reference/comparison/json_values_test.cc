// SPDX-License-Identifier: BSD-3-Clause
// Protects: JSON is compared by value and by kind of number; its spelling is named, and is no difference.
#include "reference/comparison/json_values.h"

#include <gtest/gtest.h>

namespace qcts {
namespace {

ContentFindings texts(const char* a, const char* b) {
  ContentFindings out;
  compare_json_texts("config.json", a, b, out);
  return out;
}

std::string first(const char* a, const char* b) {
  const ContentFindings out = texts(a, b);
  if (out.different.empty()) return "equal";
  const ContentDifference& difference = out.different.kept()[0];
  return difference.where() + ": " + difference.a + " | " + difference.b;
}

TEST(JsonValues, DifferByPath) {
  EXPECT_EQ(first(R"({"a":{"b":[1,2]}})", R"({"a":{"b":[1,3]}})"), "config.json.a.b[1]: 2 | 3");
  EXPECT_EQ(first(R"({"a":1})", R"({"a":1.0})"), "config.json.a: 1 | 1.0");
  EXPECT_EQ(first(R"({"a":1})", R"({"a":true})"), "config.json.a: 1 | true");
  EXPECT_EQ(first(R"({"a":null})", "{}"), "config.json.a: null | absent");
  EXPECT_EQ(first("[]", "[0]"), "config.json: length: 0 | 1");
  EXPECT_EQ(first(R"({"a":0.0})", R"({"a":-0.0})"), "config.json.a: 0.0 | -0.0");
  EXPECT_EQ(first("pt", "tf"), R"(config.json: "pt" | "tf")");
}

TEST(JsonValues, SpacesAndTheOrderOfKeysAreSpelling) {
  for (const auto& [a, b] :
       {std::pair(R"({"a": 1})", R"({"a":1})"), std::pair(R"({"a":1,"b":2})", R"({"b":2,"a":1})")}) {
    const ContentFindings out = texts(a, b);
    EXPECT_TRUE(out.different.empty());
    EXPECT_GE(out.spelling.count(), 1u);
  }
}

TEST(JsonValues, NestedTooDeepIsText) {
  const std::string deep(100000, '[');
  EXPECT_NE(first((deep + "1").c_str(), (deep + "2").c_str()), "equal");
}

}  // namespace
}  // namespace qcts
