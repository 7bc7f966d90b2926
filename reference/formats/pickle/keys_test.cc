// SPDX-License-Identifier: BSD-3-Clause
// Tests dict keys, including keys chosen to collide.
#include "reference/formats/pickle/keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace qcts::pickle {
namespace {

// Returns a thousand texts whose hashes agree in their lowest ten bits: one run in any table of up to 1024
// slots.
std::vector<Ref> meeting_keys() {
  std::vector<Ref> keys;
  for (uint64_t i = 0; keys.size() < 1000; ++i) {
    const std::string text = "k" + std::to_string(i);
    if ((std::hash<std::string_view>()(text) & 1023) == 5) keys.push_back(string(text));
  }
  return keys;
}

TEST(KeySet, TellsKeysThatMeetInTheTable) {
  KeySet keys;
  const std::vector<Ref> meeting = meeting_keys();
  for (const Ref& key : meeting) EXPECT_TRUE(keys.insert(key)) << key->text;
  for (const Ref& key : meeting) EXPECT_FALSE(keys.insert(string(key->text))) << key->text;
  EXPECT_TRUE(keys.insert(string("another")));
}

TEST(KeySet, HasOneKeyForEqualNumbersAndAnotherForTheirText) {
  KeySet keys;
  EXPECT_TRUE(keys.insert(integer(1)));
  EXPECT_FALSE(keys.insert(real(1)));
  EXPECT_FALSE(keys.insert(boolean(true)));
  EXPECT_TRUE(keys.insert(string("1")));
  EXPECT_TRUE(keys.insert(string("i1")));
  EXPECT_TRUE(keys.insert(none()));
  EXPECT_TRUE(keys.insert(real(1.5)));
  EXPECT_FALSE(keys.insert(real(1.5)));
}

TEST(KeySet, KeepsAllOfManyKeys) {
  KeySet keys;
  for (int64_t i = 0; i < 5000; ++i) {
    EXPECT_TRUE(keys.insert(integer(i))) << i;
    EXPECT_TRUE(keys.insert(string("layer." + std::to_string(i)))) << i;
  }
  for (int64_t i = 0; i < 5000; ++i) {
    EXPECT_FALSE(keys.insert(integer(i))) << i;
    EXPECT_FALSE(keys.insert(string("layer." + std::to_string(i)))) << i;
  }
}

}  // namespace
}  // namespace qcts::pickle
