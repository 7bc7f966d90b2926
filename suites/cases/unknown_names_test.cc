// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/unknown_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qcts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Offer offer_for(Op op, const char* scheme) {
  Offer offer;
  offer.provider = "acme";
  offer.op = op;
  offer.scheme = scheme;
  offer.variant = "turbo";
  return offer;
}

TEST(UnknownNames, KnownOnesAreNotNamed) {
  const std::vector<Offer> offers = {offer_for(Op::linear, "int8_row"),
                                     offer_for(Op::linear, "int8_row:*"),
                                     offer_for(Op::linear, "int8_row:weight_only,dyn_row_sym"),
                                     offer_for(Op::linear, "dense"),
                                     offer_for(Op::dequantize, "nf4"),
                                     offer_for(Op::file, "")};
  const UnknownNames found = unknown_names(offers);
  EXPECT_THAT(found.lines, IsEmpty());
  EXPECT_FALSE(found.are_all);
}

TEST(UnknownNames, AreNamedWithTheNearest) {
  const std::vector<Offer> offers = {offer_for(Op::linear, "int8_rows"),
                                     offer_for(Op::linear, "int8_row:dyn_rows"),
                                     offer_for(Op::dequantize, "int8_row")};
  const UnknownNames found = unknown_names(offers);
  EXPECT_THAT(
      found.lines,
      ElementsAre("linear of turbo: no scheme 'int8_rows' (did you mean 'int8_row'?)",
                  HasSubstr("linear of turbo: int8_row has no policy 'dyn_rows' (did you mean 'dyn_row")));
  EXPECT_FALSE(found.are_all);
}

TEST(UnknownNames, ASchemeInPlaceOfItsFamilyIsTold) {
  EXPECT_THAT(unknown_names(std::vector<Offer>{offer_for(Op::linear, "int4_tinygemm_g32")}).lines,
              ElementsAre(HasSubstr("a kernel names its family, 'int4_tinygemm'")));
}

TEST(UnknownNames, NothingElseIsOffered) {
  const auto are_all = [](const std::vector<Offer>& offers) { return unknown_names(offers).are_all; };
  EXPECT_TRUE(are_all({offer_for(Op::linear, "int8_rows"), offer_for(Op::linear, "int8_row:dyn_rows")}));
  EXPECT_FALSE(are_all({offer_for(Op::linear, "int8_row:dyn_rows,weight_only")}));
  EXPECT_FALSE(are_all({offer_for(Op::linear, "int8_rows"), offer_for(Op::file, "")}));
  EXPECT_FALSE(are_all({}));
}

}  // namespace
}  // namespace qcts
