// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/crc32.h"
#include "reference/formats/io/utf8.h"
#include "reference/formats/refusal.h"
#include "reference/formats/testing.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using testing::to_bytes;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "qcts_files_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  static mode_t mode_of(const fs::path& path) {
    struct stat info {};
    ::stat(path.c_str(), &info);
    return info.st_mode & 07777;
  }
  size_t entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }
  fs::path folder_;
};

TEST_F(Files, AreReadAsTheyWereWritten) {
  const fs::path path = folder_ / "a";
  write_file_atomically(path, as_bytes("first"));
  EXPECT_EQ(as_text(MappedFile::open(path)->bytes()), "first");
  write_file_atomically(path, std::span<const std::byte>());
  EXPECT_TRUE(MappedFile::open(path)->bytes().empty());
  EXPECT_EQ(entries(), 1u) << "a temporary file was left behind";
}

// Replacing a file leaves mappings of the old one intact.
TEST_F(Files, ReplacingOneLeavesItsReadersAlone) {
  const fs::path path = folder_ / "a";
  write_file_atomically(path, as_bytes("old"));
  const auto old = MappedFile::open(path);
  write_file_atomically(path, as_bytes("new bytes"));
  EXPECT_EQ(as_text(old->bytes()), "old");
  EXPECT_EQ(as_text(MappedFile::open(path)->bytes()), "new bytes");
}

TEST_F(Files, NewOnesFollowTheUmaskOldOnesKeepTheirMode) {
  const mode_t before = ::umask(027);
  write_file_atomically(folder_ / "new", as_bytes("x"));
  ::umask(before);
  EXPECT_EQ(mode_of(folder_ / "new"), 0640u);
  fs::permissions(folder_ / "new", fs::perms(0604));
  write_file_atomically(folder_ / "new", as_bytes("y"));
  EXPECT_EQ(mode_of(folder_ / "new"), 0604u);
}

TEST_F(Files, ALinkKeepsPointingAtItsFile) {
  write_file_atomically(folder_ / "target", as_bytes("old"));
  fs::create_symlink("target", folder_ / "link");
  write_file_atomically(folder_ / "link", as_bytes("new"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(as_text(MappedFile::open(folder_ / "target")->bytes()), "new");
}

TEST_F(Files, AFailureLeavesTheOldBytesAndNoOthers) {
  EXPECT_THROW(write_file_atomically(folder_ / "missing" / "a", as_bytes("x")), IoError);
  fs::create_directory(folder_ / "taken");
  std::ofstream(folder_ / "taken" / "inside") << "x";
  EXPECT_THROW(write_file_atomically(folder_ / "taken", as_bytes("x")), IoError);
  EXPECT_EQ(entries(), 1u);
  EXPECT_TRUE(fs::exists(folder_ / "taken" / "inside"));
}

// Covers pieces below, at and above the buffer size.
TEST_F(Files, AreStreamedInPieces) {
  testing::Bytes expected;
  write_file_atomically(folder_ / "a", [&](ByteSink& sink) {
    for (size_t size : {1u, 0u, 100u, 1u << 20, 7u, (1u << 20) - 7, (3u << 20) + 5, 2u}) {
      testing::Bytes piece(size);
      for (size_t i = 0; i < size; ++i) piece[i] = static_cast<std::byte>((i * 7 + size) & 0xff);
      EXPECT_EQ(sink.written(), expected.size());
      sink.write(piece);
      append(expected, piece);
    }
  });
  EXPECT_TRUE(std::ranges::equal(MappedFile::open(folder_ / "a")->bytes(), expected));
}

TEST_F(Files, AWriterThatThrowsLeavesTheOldBytesAndNoOthers) {
  write_file_atomically(folder_ / "a", as_bytes("old"));
  const auto half = [](ByteSink& sink) {
    sink.write(testing::Bytes(5u << 20));
    refuse(RefusalClass::Overflow, "half way");
  };
  EXPECT_THROW(write_file_atomically(folder_ / "a", half), Refused);
  EXPECT_EQ(as_text(MappedFile::open(folder_ / "a")->bytes()), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST(CompareSink, SaysWhetherTheBytesAreTheWholeOfTheOthers) {
  const auto same = [](std::string_view expected, std::initializer_list<std::string_view> pieces) {
    CompareSink sink(as_bytes(expected));
    for (std::string_view piece : pieces) sink.write(as_bytes(piece));
    return sink.equal();
  };
  EXPECT_TRUE(same("", {}));
  EXPECT_TRUE(same("abcdef", {"abc", "", "def"}));
  EXPECT_FALSE(same("abcdef", {"abc", "de"}));
  EXPECT_FALSE(same("abcdef", {"abc", "defg"}));
  EXPECT_FALSE(same("abcdef", {"abx", "def"}));
  EXPECT_FALSE(same("abcdef", {"abc", "dex"}));
  EXPECT_FALSE(same("abc", {"abcd", ""}));
}

TEST_F(Files, WhatIsNoFileIsAnIoError) {
  EXPECT_THROW(MappedFile::open(folder_ / "missing"), IoError);
  EXPECT_THROW(MappedFile::open(folder_), IoError);
  EXPECT_THROW(MappedFile::open("/dev/null"), IoError);
}

// The published check value of CRC-32/ISO-HDLC.
TEST(Crc32, KnownAnswers) {
  EXPECT_EQ(crc32_of(as_bytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32_of(as_bytes("little")), 0x19e33d85u);
  EXPECT_EQ(crc32_of({}), 0u);
}

TEST(Utf8, SurrogatesOnlyWhenAsked) {
  EXPECT_TRUE(is_utf8("a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
  EXPECT_TRUE(is_utf8("\xed\xa0\x80", true));
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe4\xb8", "\xff"}) {
    EXPECT_FALSE(is_utf8(bad, true)) << to_bytes(bad).size();
  }
  EXPECT_TRUE(is_latin1("\xc3\xbf"));
  EXPECT_FALSE(is_latin1("\xc4\x80"));
}

TEST(Refusals, NamesGoBothWaysAndDetailsStayOnOneLine) {
  for (int i = 0; i <= static_cast<int>(RefusalClass::TrailingData); ++i) {
    const auto cls = static_cast<RefusalClass>(i);
    EXPECT_EQ(refusal_class_from_name(refusal_class_name(cls)), cls);
  }
  EXPECT_EQ(refusal_class_name(RefusalClass::SubclassSchema), "SubclassSchema");
  try {
    refuse(RefusalClass::EntryName, "two\nlines", 7);
  } catch (const Refused& refused) {
    EXPECT_STREQ(refused.what(), "EntryName: two?lines (offset 7)");
    EXPECT_FALSE(refused.refusal().security);
  }
}

}  // namespace
}  // namespace qcts
