// SPDX-License-Identifier: BSD-3-Clause
// Tests the safetensors reader on handwritten headers. Rows (S1 ...) are those of the malformed corpus.
#include "reference/formats/safetensors/safetensors.h"

#include <gtest/gtest.h>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/testing.h"

namespace qcts {
namespace {

using namespace std::string_literals;
using testing::Bytes;
using testing::outcome;
using testing::to_bytes;

Bytes file_of(const std::string& header, size_t data_bytes) {
  Bytes bytes;
  append_le<uint64_t>(bytes, header.size());
  append(bytes, header);
  bytes.resize(bytes.size() + data_bytes);
  return bytes;
}

std::string header_outcome(const Bytes& bytes, bool lenient = false) {
  SafetensorsOptions options;
  options.lenient = lenient;
  return outcome([&] { read_safetensors(MappedFile::from_bytes(bytes), options); });
}

std::string info(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":)" + info(dtype, shape, offsets) + "}";
}
const std::string kGood = one("F32", "[2]", "[0,8]");

struct HeaderCase {
  std::string name, header;
  size_t data;
  std::string required;
  std::string lenient = "";  // empty: the same as strict
};
void PrintTo(const HeaderCase& c, std::ostream* out) { *out << c.name; }

class StHeaderText : public ::testing::TestWithParam<HeaderCase> {};

TEST_P(StHeaderText, HasTheRequiredOutcome) {
  const HeaderCase& c = GetParam();
  EXPECT_EQ(header_outcome(file_of(c.header, c.data)), c.required);
  EXPECT_EQ(header_outcome(file_of(c.header, c.data), true), c.lenient.empty() ? c.required : c.lenient);
}

TEST_P(StHeaderText, IsRebuiltByteForByteWhenAccepted) {
  const Bytes bytes = file_of(GetParam().header, GetParam().data);
  if (GetParam().required != "accepted") return;
  EXPECT_EQ(rebuild_safetensors(read_safetensors(MappedFile::from_bytes(bytes))), bytes);
}

std::vector<HeaderCase> json_cases() {
  const std::string meta = R"({"__metadata__":)";
  const std::string pair =
      R"({"a":)" + info("U8", "[1]", "[0,1]") + R"(,"%":)" + info("U8", "[1]", "[1,2]") + "}";
  const auto named = [&](const std::string& name) {
    return std::string(pair).replace(pair.find('%'), 1, name);
  };
  return {
      {"good", kGood, 8, "accepted"},
      {"good_padded", kGood + "     \n\t", 8, "accepted"},
      {"good_spaced", R"({ "a" : {"shape":[ 2 ],"data_offsets":[0, 8],"dtype":"F32"}})", 8, "accepted"},
      {"s05_bom", "\xef\xbb\xbf" + kGood, 8, "StJson"},
      {"s05_array", "[]", 0, "StJson"},
      {"s05_not_json", "{nope", 0, "StJson"},
      {"s05_trailing_json", kGood + "{}", 8, "StJson"},
      {"s05_comment", "/**/" + kGood, 8, "StJson"},
      {"s05_comment_inside", "{/**/}", 0, "StJson"},
      {"s05_not_utf8", "{\"a\xff\":" + info("F32", "[2]", "[0,8]") + "}", 8, "StJson"},
      {"s06_trailing_nul", kGood + "\0"s, 8, "StJson"},
      {"s07_leading_blank", " " + kGood, 8, "StJson", "accepted"},
      {"s08_tensor_twice", named("a"), 2, "StJson"},
      {"s08_escaped_twice", named("\\u0061"), 2, "StJson"},
      {"s09_metadata_key_twice", meta + R"({"k":"1","k":"2"}})", 0, "StJson"},
      {"s10_field_twice", R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
       "StJson"},
      {"s10_metadata_twice", meta + R"({},"__metadata__":{}})", 0, "StJson"},
      {"s11_metadata_number", meta + R"({"k":1}})", 0, "StJson"},
      {"s11_metadata_nested", meta + R"({"k":{}}})", 0, "StJson"},
      {"s11_metadata_list", meta + "[]}", 0, "StJson"},
      {"s12_metadata_null", meta + "null}", 0, "accepted"},
      {"s13_extra_field", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":[{"y":1.5}]}})", 1,
       "StJson", "accepted"},
      {"s14_info_as_array", R"({"a":["U8",[1],[0,1]]})", 1, "StJson"},
      {"s14_info_missing_field", R"({"a":{"dtype":"U8","shape":[1]}})", 1, "StJson"},
      {"s14_null_tensor", R"({"a":null})", 0, "StJson"},
      {"s15_negative_offset", one("U8", "[1]", "[-1,0]"), 1, "StJson"},
      {"s15_float_offset", one("U8", "[1]", "[0,1.0]"), 1, "StJson"},
      {"s15_exponent", one("U8", "[1]", "[0,1e0]"), 1, "StJson"},
      {"s15_string_offset", one("U8", "[1]", "[0,\"1\"]"), 1, "StJson"},
      {"s15_offset_2_64", one("U8", "[1]", "[0,18446744073709551616]"), 1, "Overflow"},
      {"s15_one_offset", one("U8", "[1]", "[0]"), 1, "StJson"},
      {"s15_three_offsets", one("U8", "[1]", "[0,1,2]"), 1, "StJson"},
      {"s16_leading_zero", one("F32", "[2]", "[0,08]"), 8, "StJson"},
      {"s26_empty_name", R"({"":)" + info("U8", "[1]", "[0,1]") + "}", 1, "accepted"},
      {"s26_name_with_nul", R"({"\u0000":)" + info("U8", "[1]", "[0,1]") + "}", 1, "accepted"},
      {"s26_name_like_a_path", R"({"../../x":)" + info("U8", "[1]", "[0,1]") + "}", 1, "accepted"},
      {"s26_lone_surrogate", R"({"\ud800":)" + info("U8", "[1]", "[0,1]") + "}", 1, "StJson"},
      {"s27_deep", R"({"a":)" + std::string(200, '[') + std::string(200, ']') + "}", 0, "LimitExceeded"},
      {"s27_very_deep", R"({"a":)" + std::string(100000, '['), 0, "LimitExceeded"},
  };
}

std::vector<HeaderCase> layout_cases() {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":)" + info("U8", "[4]", first) + R"(,"b":)" + info("U8", "[4]", second) + "}";
  };
  std::string many_dims = "[1";
  for (int i = 0; i < 99; ++i) many_dims += ",1";
  return {
      {"s17_swapped", one("U8", "[4]", "[4,0]"), 4, "StLayout"},
      {"s17_hole_at_start", one("U8", "[4]", "[4,8]"), 8, "StLayout"},
      {"s17_hole", two("[0,4]", "[8,12]"), 12, "StLayout"},
      {"s17_overlap", two("[0,4]", "[2,6]"), 6, "StLayout"},
      {"s17_same_range", two("[0,4]", "[0,4]"), 4, "StLayout"},
      {"s17_any_order", two("[4,8]", "[0,4]"), 8, "accepted"},
      {"s18_trailing_data", kGood, 10, "StLayout"},
      {"s18_truncated_data", kGood, 6, "Truncated"},
      {"s19_size_mismatch", one("F32", "[3]", "[0,8]"), 8, "StLayout"},
      {"s19_negative_shape", one("F32", "[-2]", "[0,8]"), 8, "StLayout"},
      {"s20_shape_wraps", one("U8", "[4294967296,4294967296]", "[0,0]"), 0, "Overflow"},
      {"s20_bits_wrap", one("F32", "[1152921504606846976]", "[0,0]"), 0, "Overflow"},
      {"s21_zero_and_wrap", one("U8", "[0,4294967296,4294967296]", "[0,0]"), 0, "Overflow"},
      {"s21_dimension_2_63", one("U8", "[9223372036854775808,0]", "[0,0]"), 0, "Overflow"},
      {"s22_scalar", one("F32", "[]", "[0,4]"), 4, "accepted"},
      {"s22_zero_size_end",
       R"({"a":)" + info("U8", "[4]", "[0,4]") + R"(,"z":)" + info("U8", "[0]", "[4,4]") + "}", 4,
       "accepted"},
      {"s22_zero_size_inside",
       R"({"a":)" + info("U8", "[4]", "[0,4]") + R"(,"z":)" + info("U8", "[0]", "[2,2]") + "}", 4,
       "StLayout"},
      {"s23_misaligned",
       R"({"a":)" + info("U8", "[1]", "[0,1]") + R"(,"b":)" + info("F32", "[1]", "[1,5]") + "}", 5,
       "accepted"},
      {"s24_unknown_dtype", one("F33", "[2]", "[0,8]"), 8, "Dtype"},
      {"s24_lower_case_dtype", one("f32", "[2]", "[0,8]"), 8, "Dtype"},
      {"s24_number_as_dtype", R"({"a":{"dtype":5,"shape":[2],"data_offsets":[0,8]}})", 8, "Dtype"},
      {"s25_odd_float4", one("F4", "[3]", "[0,2]"), 2, "StLayout"},
      {"s25_odd_float6", one("F6_E2M3", "[3]", "[0,3]"), 3, "StLayout"},
      {"s25_float4", one("F4", "[2,6]", "[0,6]"), 6, "accepted"},
      {"s25_float6", one("F6_E3M2", "[4]", "[0,3]"), 3, "accepted"},
      {"s28_100_dims", one("U8", many_dims + "]", "[0,1]"), 1, "LimitExceeded"},
      {"empty_object", "{}      ", 0, "accepted"},
      {"eight_of_2_61_less_1",
       [] {
         std::string header = "{";
         for (uint64_t i = 0; i < 8; ++i) {
           const uint64_t step = (uint64_t{1} << 61) - 1;
           header += (i ? ",\"" : "\"") + std::to_string(i) + "\":" +
                     info("U8", "[" + std::to_string(step) + "]",
                          "[" + std::to_string(i * step) + "," + std::to_string((i + 1) * step) + "]");
         }
         return header + "}";
       }(),
       0, "Truncated"},
  };
}

const auto kName = [](const ::testing::TestParamInfo<HeaderCase>& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Json, StHeaderText, ::testing::ValuesIn(json_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Layout, StHeaderText, ::testing::ValuesIn(layout_cases()), kName);

TEST(Safetensors, ChecksTheLengthFirst) {
  EXPECT_EQ(header_outcome({}), "StHeader");
  EXPECT_EQ(header_outcome(Bytes(7)), "StHeader");
  EXPECT_EQ(header_outcome(Bytes(8)), "StHeader");
  for (uint64_t length : {uint64_t{1} << 63, uint64_t{100'000'001}}) {
    Bytes bytes;
    append_le<uint64_t>(bytes, length);
    EXPECT_EQ(header_outcome(bytes), "LimitExceeded") << length;
  }
  Bytes beyond = file_of("{}", 0);
  beyond[0] = std::byte{3};
  EXPECT_EQ(header_outcome(beyond), "Truncated");
}

TEST(Safetensors, PackedFloat4CountsPairs) {
  const Safetensors file = read_safetensors(MappedFile::from_bytes(file_of(one("F4", "[2,6]", "[0,6]"), 6)));
  EXPECT_EQ(file.entries[0].tensor.shape, (std::vector<int64_t>{2, 3}));
}

TEST(Safetensors, WriterOrdersByTypeThenName) {
  const auto tensor = [](DType dtype, size_t bytes) { return make_tensor(dtype, {1}, Bytes(bytes)); };
  const Bytes bytes = write_safetensors({{"u8", tensor(DType::uint8, 1)},
                                         {"b", tensor(DType::float32, 4)},
                                         {"a", tensor(DType::float32, 4)},
                                         {"i64", tensor(DType::int64, 8)}},
                                        {{"z", "1"}, {"k", "2"}});
  const Safetensors file = read_safetensors(MappedFile::from_bytes(bytes));
  std::vector<std::string> names;
  for (const auto& entry : file.entries) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"i64", "a", "b", "u8"}));
  EXPECT_EQ(file.metadata.front().first, "k");
  EXPECT_EQ(file.header.size() % 8, 0u);
}

TEST(Safetensors, WriterRefusesWhatTheReaderWould) {
  const Tensor tensor = testing::float_tensor({1}, {1});
  EXPECT_EQ(outcome([&] { write_safetensors({{"a", tensor}, {"a", tensor}}, {}); }), "StJson");
  EXPECT_EQ(outcome([&] { write_safetensors({{"__metadata__", tensor}}, {}); }), "StJson");
  EXPECT_EQ(outcome([&] { write_safetensors({{"\xff", tensor}}, {}); }), "StJson");
  EXPECT_EQ(outcome([&] {
              write_safetensors({{"a", make_tensor(DType::complex128, {1}, Bytes(16))}}, {});
            }),
            "Dtype");
}

// Rebuilding an edited file keeps the order and moves the later entries.
TEST(Safetensors, RebuildFollowsAnEditedEntry) {
  Safetensors file = read_safetensors(MappedFile::open(testing::testdata("no_metadata.safetensors")));
  const std::string first = file.entries[0].name, second = file.entries[1].name;
  const Bytes kept = row_major_bytes(file.entries[1].tensor);
  file.entries[0].tensor = make_tensor(DType::int8, {5}, to_bytes("abcde"));
  const Safetensors edited = read_safetensors(MappedFile::from_bytes(rebuild_safetensors(file)));
  EXPECT_EQ(edited.entries[0].name, first);
  EXPECT_EQ(row_major_bytes(edited.entries[0].tensor), to_bytes("abcde"));
  EXPECT_EQ(edited.entries[1].name, second);
  EXPECT_EQ(row_major_bytes(edited.entries[1].tensor), kept);
}

}  // namespace
}  // namespace qcts
