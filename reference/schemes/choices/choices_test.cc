// SPDX-License-Identifier: BSD-3-Clause
// Tests that choices name real schemes, each at most once per entry, and that every scheme has declared
// itself.
#include "reference/schemes/choices/choices.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "reference/schemes/scheme.h"

namespace qcts {
namespace {

TEST(ChoiceLedger, IdsAreUnique) {
  std::set<std::string_view> ids;
  for (const ChoiceEntry& entry : choice_ledger()) {
    EXPECT_TRUE(ids.insert(entry.id).second) << entry.id;
    for (const ChoiceOption& option : entry.options) {
      EXPECT_TRUE(ids.insert(option.id).second) << option.id;
      EXPECT_FALSE(option.evidence.empty()) << option.id;
    }
  }
}

TEST(ChoiceLedger, NamesSchemesThatAreThere) {
  std::set<std::string_view> known;
  for (const Scheme* scheme : schemes()) known.insert(scheme->name()), known.insert(scheme->family());
  for (const ChoiceEntry& entry : choice_ledger())
    for (const ChoiceOption& option : entry.options) {
      const std::string list = std::string(option.schemes) + " ";
      for (size_t first = 0; first + 1 < list.size(); first = list.find(' ', first) + 1) {
        const std::string name = list.substr(first, list.find(' ', first) - first);
        EXPECT_TRUE(known.contains(name)) << option.id << " names " << name;
      }
    }
}

TEST(ChoiceLedger, ASchemeGivesOneAnswerToAQuestion) {
  std::map<std::string_view, std::string_view> questions;  // question of each option
  for (const ChoiceEntry& entry : choice_ledger())
    for (const ChoiceOption& option : entry.options) questions[option.id] = entry.id;
  for (const Scheme* scheme : schemes()) {
    std::set<std::string_view> answered;
    for (const ChoiceOption* option : choices_of(scheme->name(), scheme->family()))
      EXPECT_TRUE(answered.insert(questions.at(option->id)).second)
          << scheme->name() << " answers twice: " << option->id;
  }
}

TEST(ChoiceLedger, EverySchemeOfTorchaoAndTinyQHasDeclaredItself) {
  for (const char* name :
       {"int8_row", "int8_tensor_reduced", "int8_g32", "int8_row_v1", "int8_g32_v1", "intx_b4_g32_asym",
        "int4_plain_g128", "int4_plain_sym_g128", "int4_e4m3_g128", "int4_int32_g32", "gguf_proto",
        "int4_tinygemm_g128", "fp8_row", "tinyq_w8a32", "tinyq_w8a16"}) {
    const Scheme* scheme = find_scheme(name);
    ASSERT_NE(scheme, nullptr) << name;
    EXPECT_GE(choices_of(scheme->name(), scheme->family()).size(), 3u) << name;
  }
}

}  // namespace
}  // namespace qcts
