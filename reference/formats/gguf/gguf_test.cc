// SPDX-License-Identifier: BSD-3-Clause
// Tests the GGUF reader and writer on files made here. The malformed corpus
// (fixtures/make/malformed/malformed_gguf.py) has a file for each refusal.
#include "reference/formats/gguf/gguf.h"

#include <gtest/gtest.h>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/testing.h"

namespace qcts {
namespace {

using namespace std::string_literals;
using testing::Bytes;
using testing::outcome;

// Two tensors: "w" of three rows of a block of Q4_0, and "b" of two floats.
Gguf written_by_hand() {
  Gguf file;
  file.metadata.push_back({"general.architecture", {.type = GgufValueType::string, .text = "llama"}});
  file.metadata.push_back({"n", {.type = GgufValueType::int16, .bits = 0xFFFE}});
  file.entries.push_back({"w", find_gguf_type(2), {3, 32}, make_tensor(DType::uint8, {3, 18}, Bytes(54))});
  file.entries.push_back({"b", find_gguf_type(0), {2}, testing::float_tensor({2}, {1, -2})});
  file.end_padding_bytes = 24;
  return file;
}

Gguf read_again(const Bytes& bytes) { return read_gguf(MappedFile::from_bytes(bytes)); }

TEST(GgufFile, IsReadAsItWasWritten) {
  const Bytes bytes = rebuild_gguf(written_by_hand());
  const Gguf read = read_again(bytes);
  ASSERT_EQ(read.entries.size(), 2u);
  EXPECT_EQ(read.entries[0].name, "w");
  EXPECT_EQ(read.entries[0].type->name, "Q4_0");
  EXPECT_EQ(read.entries[0].shape, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(read.entries[0].tensor.shape, (std::vector<int64_t>{3, 18}));
  EXPECT_EQ(row_major_bytes(read.entries[1].tensor), testing::raw<float>({1, -2}));
  EXPECT_EQ(gguf_integer(*find_gguf_value(read, "n")), -2);
  EXPECT_EQ(find_gguf_value(read, "m"), nullptr);
  EXPECT_EQ(read.padding_bytes, bytes.size() - 24 - read.metadata_bytes - read.description_bytes - 54 - 8);
  EXPECT_EQ(rebuild_gguf(read), bytes);
}

TEST(GgufFile, ElementsAreNotCopied) {
  const Gguf read = read_again(rebuild_gguf(written_by_hand()));
  const std::span<const std::byte> all = read.file->bytes();
  for (const GgufEntry& entry : read.entries) {
    const std::byte* data = entry.tensor.storage->bytes.data();
    EXPECT_TRUE(data >= all.data() && data < all.data() + all.size()) << entry.name;
  }
  EXPECT_TRUE(read.metadata[0].value.text.data() > reinterpret_cast<const char*>(all.data()));
}

TEST(GgufFile, AChangedCodeChangesItsByteAlone) {
  const Bytes before = rebuild_gguf(written_by_hand());
  Gguf file = read_again(before);
  Bytes blocks = row_major_bytes(file.entries[0].tensor);
  constexpr size_t kRow = 1, kByte = kRow * 18 + 2 + 5;
  blocks[kByte] ^= std::byte{0x70};
  file.entries[0].tensor = make_tensor(DType::uint8, {3, 18}, blocks);
  const Bytes after = rebuild_gguf(file);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_EQ(after[i] != before[i], i == file.data_offset + kByte) << i;
}

TEST(GgufFile, AChangedValueMovesWhatFollowsAndNoTensorIsLost) {
  Gguf file = read_again(rebuild_gguf(written_by_hand()));
  file.metadata[0].value.text = "an architecture with a longer name than before";
  const Gguf read = read_again(rebuild_gguf(file));
  EXPECT_EQ(read.metadata[0].value.text, file.metadata[0].value.text);
  EXPECT_EQ(read.data_offset % read.alignment, 0u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(row_major_bytes(read.entries[i].tensor), row_major_bytes(file.entries[i].tensor));
}

TEST(GgufFile, KeepsPaddingThatIsNotZeros) {
  Bytes bytes = rebuild_gguf(written_by_hand());
  const uint64_t data = read_again(bytes).data_offset;
  bytes[data - 1] = bytes[data + 60] = bytes.back() = std::byte{7};
  const Gguf read = read_again(bytes);
  EXPECT_EQ(read.stray.size(), 3u);
  EXPECT_EQ(rebuild_gguf(read), bytes);
}

TEST(GgufFile, KeepsTheVersionAndThePaddingAtItsEnd) {
  for (const uint32_t version : {2u, 3u})
    for (const uint64_t padding : {0, 1, 23, 24}) {
      Gguf file = written_by_hand();
      file.version = version;
      file.end_padding_bytes = padding;
      const Bytes bytes = rebuild_gguf(file);
      const Gguf read = read_again(bytes);
      EXPECT_EQ(read.version, version);
      EXPECT_EQ(read.end_padding_bytes, padding);
      EXPECT_EQ(rebuild_gguf(read), bytes);
    }
  Gguf file = written_by_hand();
  file.end_padding_bytes = 25;
  EXPECT_EQ(outcome([&] { read_again(rebuild_gguf(file)); }), "TrailingData");
}

TEST(GgufFile, EveryPrefixIsRefused) {
  const Bytes bytes = rebuild_gguf(written_by_hand());
  for (size_t size = 4; size < bytes.size() - 24; ++size)
    EXPECT_EQ(outcome([&] {
                read_again({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)});
              }),
              "Truncated")
        << size;
}

TEST(GgufFile, LimitsAreOptions) {
  const auto with = [](auto member, uint64_t limit) {
    GgufOptions options;
    options.limits.*member = limit;
    return outcome([&] { read_gguf(MappedFile::from_bytes(rebuild_gguf(written_by_hand())), options); });
  };
  EXPECT_EQ(with(&Limits::tensors, 2), "accepted");
  EXPECT_EQ(with(&Limits::tensors, 1), "LimitExceeded");
  EXPECT_EQ(with(&Limits::gguf_pairs, 1), "LimitExceeded");
  EXPECT_EQ(with(&Limits::gguf_name_bytes, 19), "LimitExceeded");
  EXPECT_EQ(with(&Limits::gguf_name_bytes, 20), "accepted");
}

std::string text_of_value(GgufValueType type, uint64_t bits) {
  return gguf_value_text({.type = type, .bits = bits});
}

TEST(GgufValues, AreTexts) {
  EXPECT_EQ(text_of_value(GgufValueType::uint8, 255), "255");
  EXPECT_EQ(text_of_value(GgufValueType::int8, 0x80), "-128");
  EXPECT_EQ(text_of_value(GgufValueType::int64, ~uint64_t{0}), "-1");
  EXPECT_EQ(text_of_value(GgufValueType::uint64, ~uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(text_of_value(GgufValueType::boolean, 1), "true");
  EXPECT_EQ(text_of_value(GgufValueType::float32, 0x3DCCCCCD), "0.100000001");
  EXPECT_EQ(text_of_value(GgufValueType::float64, 0xBFF8000000000000), "-1.5");
  Bytes items;
  for (const std::string& word : {"a"s, ""s}) {
    append_le<uint64_t>(items, word.size());
    append(items, word);
  }
  const GgufValue words = {
      .type = GgufValueType::array, .item_type = GgufValueType::string, .count = 2, .items = items};
  EXPECT_EQ(gguf_value_text(words), "[\"a\", \"\"]");
  EXPECT_EQ(gguf_value_text(words, 1), "array of 2 strings");
}

TEST(GgufTypes, HaveTheSizesOfTheirBlocks) {
  EXPECT_EQ(find_gguf_type(12)->block_bytes, 144u);
  EXPECT_EQ(find_gguf_type(30)->dtype, DType::bfloat16);
  for (const uint32_t id : {4u, 5u, 9u, 43u}) EXPECT_EQ(find_gguf_type(id), nullptr) << id;
  EXPECT_NE(unknown_gguf_type(5).find("Q4_3"), std::string::npos);
  EXPECT_NE(unknown_gguf_type(139).find("139"), std::string::npos);
}

}  // namespace
}  // namespace qcts
