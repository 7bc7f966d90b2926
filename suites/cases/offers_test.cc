// SPDX-License-Identifier: BSD-3-Clause
// Tests the matching of offers to cases: kernels by op, family and policy, files by provider.
#include "suites/cases/offers.h"

#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/base/paths.h"
#include "suites/cases/case_key.h"
#include "suites/cases/expand.h"
#include "suites/cases/unknown_names.h"

namespace qcts {
namespace {

Offer offer(const std::string& provider, Op op, const std::string& scheme, const std::string& variant) {
  return {.provider = provider, .op = op, .scheme = scheme, .variant = variant};
}

Offer offer_of_acme(Op op, const char* scheme) { return offer("acme", op, scheme, "turbo"); }

Case linear_case(const std::string& activation) {
  Case c;
  c.id = {Kind::numerics, Op::linear, "int8_row", "noise_m1_n8_k64_bf16"};
  c.scheme = find_scheme("int8_row");
  c.question = SyntheticQuestion{
      {Generator::noise, {DType::bfloat16, 8, 64}, 1, 7, c.scheme->policy_named(activation)}};
  return c;
}

// Under a plan that takes all variants.
std::vector<const Offer*> all_offers_for(const Case& c, const OfferTable& table,
                                         bool with_reference = false) {
  return offers_for(c, {}, table, {}, with_reference);
}

std::vector<std::string> ids_for(const Case& c, const OfferTable& table) {
  std::vector<std::string> ids;
  for (const Offer* each : all_offers_for(c, table)) ids.push_back(full_id(c, *each));
  return ids;
}

TEST(Offers, AreFoundByOpFamilyAndPolicy) {
  OfferTable table;
  table.add({offer("acme", Op::linear, "int8_row", "fast"),
             offer("acme", Op::linear, "int8_row:dyn_row_sym", "dyn"),
             offer("acme", Op::linear, "fp8_row", "fast"),
             offer("acme", Op::dequantize, "int8_row", "fast")});
  const std::string id = "numerics.linear/int8_row/noise_m1_n8_k64_bf16";
  EXPECT_THAT(ids_for(linear_case("weight_only"), table), testing::ElementsAre(id + "/acme_fast"));
  EXPECT_THAT(ids_for(linear_case("dyn_row_sym"), table), testing::ElementsAre(id + "/acme_dyn"));
  EXPECT_THAT(table.suffixes(), testing::ElementsAre("acme_dyn", "acme_fast"));
}

// A linear that declares no layout never gets packed planes.
TEST(Offers, OfPackedPlanesAreOfLinearsThatReadThem) {
  Offer reads = offer("acme", Op::linear, "int4_tinygemm", "tiles");
  reads.layouts = "tile_packed_4d,other";
  OfferTable table;
  table.add({offer("acme", Op::linear, "int4_tinygemm", "plain"), reads});
  Case c = linear_case("weight_only");
  c.scheme = find_scheme("int4_tinygemm_g32");
  c.id.scheme = c.scheme->name();
  const std::string id = c.id.text();
  EXPECT_THAT(ids_for(c, table), testing::ElementsAre(id + "/acme_plain", id + "/acme_tiles"));
  for (const auto& [layout, offered] : std::map<std::string, bool>{
           {"tile_packed_4d", true}, {"tile_packed_4d_v1", false}, {"cpu_avx2", false}}) {
    std::get<SyntheticQuestion>(c.question).layout = c.scheme->layout_named(layout);
    EXPECT_EQ(ids_for(c, table), offered ? std::vector{id + "/acme_tiles"} : std::vector<std::string>())
        << layout;
    EXPECT_EQ(may_be_offered(c, {}, table, true), offered) << layout;
  }
  c.id.op = Op::pack;
  table.add({offer("acme", Op::pack, "int4_tinygemm", "plain")});
  EXPECT_THAT(ids_for(c, table), testing::SizeIs(1)) << "pack has its layouts without a declaration";
}

TEST(Offers, OfTheReferenceAreNotAskedAboutItsOwnAnswers) {
  OfferTable table;
  table.add({offer("reference", Op::linear, "int8_row", "scalar")});
  EXPECT_THAT(ids_for(linear_case("weight_only"), table), testing::IsEmpty());
  EXPECT_EQ(all_offers_for(linear_case("weight_only"), table, true).size(), 1u);
}

// Expansion keeps a case before any kernel is asked, so it may not drop one that some answers leave an offer.
TEST(Offers, WhateverKernelsAnswerACaseWithAnOfferMayBeOffered) {
  Registry registry;
  registry.add(builtin_provider());
  const std::vector<Offer> all = offers_of(registry, "builtin");
  OfferTable complete;
  complete.add(all);
  std::map<std::string, OfferTable> tables;
  for (const Offer& each : all) tables[each.variant].add({each});
  size_t offered = 0, declined = 0;
  for (const char* name : {"quick", "latency"}) {
    const Plan plan = load_plan(plan_path(name));
    for (const Case& c : expand(plan, {}, complete))
      for (const auto& [variant, table] : tables)
        for (const bool answer : {false, true}) {
          const auto serves = [answer](const Offer&) { return answer; };
          const bool found = !offers_for(c, plan, table, serves, false).empty();
          EXPECT_TRUE(!found || may_be_offered(c, plan, table, false)) << c.id.text() << " " << variant;
          (found ? offered : declined) += 1;
        }
  }
  EXPECT_GT(offered, 1000u);
  EXPECT_GT(declined, 1000u);
}

TEST(Offers, SurviveTheirJson) {
  Offer before = offer("acme", Op::pack, "mx", "fast");
  before.is_emulated = true;
  before.is_runnable = false;
  before.is_builtin = true;
  before.layouts = "tile_packed_4d";
  const Offer after = offer_from_json(to_json(before));
  EXPECT_EQ(after.provider, before.provider);
  EXPECT_EQ(after.op, before.op);
  EXPECT_EQ(after.scheme, before.scheme);
  EXPECT_EQ(after.variant, before.variant);
  EXPECT_TRUE(after.is_emulated);
  EXPECT_FALSE(after.is_runnable);
  EXPECT_TRUE(after.is_builtin);
  EXPECT_EQ(after.layouts, before.layouts);
}

// A program is judged once per provider; if no provider runs it, the suite reports that.
TEST(Offers, AProgramIsTheSuitesOwnOnlyWhereNobodyRunsIt) {
  Golden golden;
  golden.flags = {"torchscript"};
  Case program;
  program.id = {Kind::round_trip, Op::file, "plain", "net"};
  program.question = FileQuestion{&golden};
  Offer runner = offer("aten", Op::file, "", kProgramVariant);
  runner.runs_programs = true;
  OfferTable table;
  EXPECT_TRUE(is_judged_by_suite(program, all_offers_for(program, table)));
  table.add({runner});
  EXPECT_FALSE(is_judged_by_suite(program, all_offers_for(program, table)));
  EXPECT_THAT(ids_for(program, table), testing::ElementsAre("round_trip.file/plain/net/aten_program"));
  golden.flags.clear();
  EXPECT_TRUE(is_judged_by_suite(program, all_offers_for(program, table)));
  EXPECT_THAT(ids_for(program, table), testing::IsEmpty());
}

TEST(CaseKeys, BringTheCaseBack) {
  Registry registry;
  registry.add(builtin_provider());
  const Plan plan = load_plan(plan_path("quick"));
  size_t seen = 0;
  for (const Case& c : expand(plan, {{}, {}, &registry})) {
    const Case back = case_of_key(case_key(c, c.variant()), {}, registry);
    ASSERT_EQ(back.full_id(), c.full_id());
    EXPECT_EQ(back.implementation, c.implementation);
    EXPECT_EQ(back.scheme, c.scheme);
    EXPECT_EQ(back.question.index(), c.question.index());
    EXPECT_EQ(case_key(back, c.variant()), case_key(c, c.variant()));
    EXPECT_EQ(back.layout(), c.layout());
    EXPECT_EQ(back.activation(), c.activation());
    ASSERT_TRUE(back.synthetic());
    EXPECT_EQ(back.synthetic()->seed, c.synthetic()->seed);
    EXPECT_EQ(back.synthetic()->generator, c.synthetic()->generator);
    EXPECT_EQ(back.synthetic()->m, c.synthetic()->m);
    ++seen;
  }
  EXPECT_GT(seen, 1000u);
}

// One case for each kind of question, with every member set to something other than its default.
TEST(CaseKeys, BringEveryQuestionBack) {
  Fixtures fixtures;
  fixtures.goldens.resize(2);
  fixtures.goldens[1].id = "torchao/int4/toy";
  fixtures.malformed.push_back(
      {"z01_truncated", {}, {}, "cut", RefusalClass::Truncated, false, {"strict"}, {}});
  const Scheme* scheme = find_scheme("int4_tinygemm_g32");
  const Layout packed = scheme->layout_named("tile_packed_4d");
  const Synthetic input{Generator::noise, {DType::float16, 8, 64}, 3, 7};
  const Scheme* int8 = find_scheme("int8_row");
  const Policy policy = int8->policy_named("dyn_row_sym");
  const std::vector<std::tuple<Kind, Op, const Scheme*, Question>> asked = {
      {Kind::round_trip, Op::file, nullptr, FileQuestion{&fixtures.goldens[1]}},
      {Kind::reject, Op::file, nullptr, RejectQuestion{&fixtures.malformed[0]}},
      {Kind::numerics, Op::pack, scheme, TensorQuestion{&fixtures.goldens[1], "a.weight", packed}},
      {Kind::numerics, Op::linear, int8, TensorQuestion{&fixtures.goldens[1], "b", kPlain, policy}},
      {Kind::determinism, Op::unpack, scheme, SyntheticQuestion{input, packed}},
      {Kind::latency, Op::pack, scheme, TimedQuestion{input, packed, true}},
      {Kind::latency, Op::linear, int8, BlockQuestion{input, 16}},
  };
  std::set<size_t> kinds;
  for (const auto& [kind, op, of, question] : asked) {
    Case c;
    c.id = {kind, op, of == nullptr ? "any" : std::string(of->name()), "x"};
    c.scheme = of;
    c.question = question;
    kinds.insert(question.index());
    const nlohmann::ordered_json key = case_key(c, "");
    EXPECT_EQ(needs_fixtures(key), golden_of(question) != nullptr || kind == Kind::reject) << key;
    const Case back = case_of_key(key, fixtures, Registry());
    EXPECT_EQ(back.question.index(), question.index()) << key;
    EXPECT_EQ(case_key(back, ""), key);
    EXPECT_EQ(back.golden(), golden_of(question));
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Question>);
}

TEST(CaseKeys, RefuseWhatIsNotThere) {
  Registry registry;
  registry.add(builtin_provider());
  const Case c = linear_case("weight_only");
  EXPECT_THROW(case_of_key(case_key(c, "no_such_variant"), {}, registry), std::runtime_error);
  nlohmann::ordered_json key = case_key(c, "");
  key["question"] = {{"asks", "file"}, {"golden", "no/such/golden"}};
  EXPECT_THROW(case_of_key(key, {}, registry), std::runtime_error);
  for (const char* word : {"/layout", "/asks", "/input/activation", "/input/generator"}) {
    key = case_key(c, "");
    key["question"][nlohmann::ordered_json::json_pointer(word)] = "typo";
    EXPECT_THROW(case_of_key(key, {}, registry), std::runtime_error) << word;
  }
  key = case_key(c, "");
  key.erase("question");
  EXPECT_THROW(case_of_key(key, {}, registry), std::runtime_error);
  key = {{"case", "no case"}};
  EXPECT_THROW(case_of_key(key, {}, registry), std::runtime_error);
}

TEST(UnknownNames, KnownOnesAreNotNamed) {
  const std::vector<Offer> offers = {offer_of_acme(Op::linear, "int8_row"),
                                     offer_of_acme(Op::linear, "int8_row:*"),
                                     offer_of_acme(Op::linear, "int8_row:weight_only,dyn_row_sym"),
                                     offer_of_acme(Op::linear, "dense"),
                                     offer_of_acme(Op::dequantize, "nf4"),
                                     offer_of_acme(Op::file, "")};
  const UnknownNames found = unknown_names(offers);
  EXPECT_THAT(found.lines, testing::IsEmpty());
  EXPECT_THAT(found.never_asked, testing::IsEmpty());
}

TEST(UnknownNames, AreNamedWithTheNearest) {
  const std::vector<Offer> offers = {offer_of_acme(Op::linear, "int8_rows"),
                                     offer_of_acme(Op::linear, "int8_row:dyn_rows"),
                                     offer_of_acme(Op::dequantize, "int8_row")};
  const UnknownNames found = unknown_names(offers);
  EXPECT_THAT(
      found.lines,
      testing::ElementsAre(
          "linear of turbo: no scheme 'int8_rows' (did you mean 'int8_row'?)",
          testing::HasSubstr("linear of turbo: int8_row has no policy 'dyn_rows' (did you mean 'dyn_row")));
  EXPECT_THAT(
      found.never_asked,
      testing::ElementsAre(found.lines[0], "linear of turbo: no case asks this of int8_row:dyn_rows"));
}

TEST(UnknownNames, ASchemeInPlaceOfItsFamilyIsTold) {
  EXPECT_THAT(unknown_names(std::vector<Offer>{offer_of_acme(Op::linear, "int4_tinygemm_g32")}).lines,
              testing::ElementsAre(testing::HasSubstr("a kernel names its family, 'int4_tinygemm'")));
}

TEST(UnknownNames, KernelsThatNoCaseAsksAreNamed) {
  const auto never_asked = [](Op op, const char* scheme) {
    return unknown_names(std::vector<Offer>{offer_of_acme(op, scheme)}).never_asked.size();
  };
  EXPECT_EQ(never_asked(Op::linear, "int8_rows"), 1u);
  EXPECT_EQ(never_asked(Op::linear, "int8_row:dyn_rows"), 1u);
  EXPECT_EQ(never_asked(Op::linear, "int8_row:dyn_rows,weight_only"), 0u);
  EXPECT_EQ(never_asked(Op::pack, "int8_row"), 1u) << "it has no packed layout";
  EXPECT_EQ(never_asked(Op::pack, "mx"), 0u);
  EXPECT_EQ(never_asked(Op::quantize_activation, "nf4:*"), 1u) << "no policy quantizes x";
  EXPECT_EQ(never_asked(Op::quantize_activation, "mx:*"), 0u);
  EXPECT_EQ(never_asked(Op::file, ""), 0u);
}

}  // namespace
}  // namespace qcts
