// SPDX-License-Identifier: BSD-3-Clause
// Keys, base64 and envelopes, against RFC 8032 and DSSE's own example.
#include "suites/statement/signing_key.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suites/base/paths.h"
#include "suites/statement/base64.h"
#include "suites/statement/envelope.h"

namespace qcts {
namespace {

using ::testing::HasSubstr;

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

class KeyFile : public testing::Test {
 protected:
  std::filesystem::path file_of(const std::string& bytes, mode_t mode = 0600) {
    const std::filesystem::path file = scratch_.path() / "key";
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary) << bytes;
    ::chmod(file.c_str(), mode);
    return file;
  }
  std::string refusal_of(const std::filesystem::path& file) {
    try {
      const SigningKey key(file);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  ScratchFolder scratch_;
};

// RFC 8032, section 7.1, test 2.
TEST_F(KeyFile, SignsAsTheRfcDoes) {
  const SigningKey key(
      file_of(bytes_of_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")));
  EXPECT_EQ(key.signature("\x72"),
            bytes_of_hex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                         "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"));
  EXPECT_TRUE(key.public_key().has_signed("\x72", key.signature("\x72")));
  EXPECT_FALSE(key.public_key().has_signed("\x73", key.signature("\x72")));
  EXPECT_FALSE(key.public_key().has_signed("\x72", key.signature("\x72") + "x"));
  const std::string pem = key.public_key().pem();
  EXPECT_EQ(pem,
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"
            "-----END PUBLIC KEY-----\n");
  EXPECT_EQ(PublicKey::from_pem(pem), key.public_key());
  EXPECT_EQ(key.public_key().id().size(), 64u);
}

TEST_F(KeyFile, IsForItsOwnerAlone) {
  const std::string seed(32, 'k');
  EXPECT_EQ(refusal_of(file_of(seed)), "");
  EXPECT_EQ(refusal_of(file_of(seed, 0400)), "");
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0644})
    EXPECT_THAT(refusal_of(file_of(seed, mode)), HasSubstr("chmod 600")) << mode;
  for (const size_t size : {0, 31, 33, 64})
    EXPECT_THAT(refusal_of(file_of(std::string(size, 'k'))), HasSubstr("not have exactly 32 bytes")) << size;
  EXPECT_THAT(refusal_of(scratch_.path()), HasSubstr("is not a regular file"));
  EXPECT_THAT(refusal_of(scratch_.path() / "none"), HasSubstr("No such file"));
}

TEST(PublicKeyText, IsOnePem) {
  for (const char* text :
       {"", "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=",
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0\n"
        "-----END PUBLIC KEY-----\n"})
    EXPECT_THROW(PublicKey::from_pem(text), std::runtime_error) << text;
}

TEST(Base64, IsReadInOneFormAlone) {
  for (const std::string bytes : {"", "a", "ab", "abc", "\xff\xfe"})
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  EXPECT_EQ(to_base64("hello world"), "aGVsbG8gd29ybGQ=");
  for (const char* text : {"aGVsbG8gd29ybGQ", "aGVsbG8gd29ybGR=", "aGVs bG8=", "aGVsbG8gd29ybGQ=\n", "*"})
    EXPECT_THROW(from_base64(text), std::runtime_error) << text;
}

// The example of DSSE's protocol.md.
TEST(Envelope, SignsTheTypeAndLengthsToo) {
  const Envelope envelope{"http://example.com/HelloWorld", "hello world", {}};
  EXPECT_EQ(envelope.signed_text(), "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST(Envelope, NamesWhatIsWrong) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      envelope_from_text(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  const std::string good = R"({"payloadType": "t", "payload": "aGk=", "signatures": [{"sig": "aGk="}]})";
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of("{"), "not JSON");
  EXPECT_EQ(error_of("[]"), "envelope: not an object");
  EXPECT_EQ(error_of(R"({"payloadType": "t", "payload": "aGk="})"),
            "envelope: field 'signatures' is missing");
  EXPECT_EQ(error_of(R"({"payloadType": "t", "payload": "aGk", "signatures": []})"), "payload: not base64");
  EXPECT_EQ(error_of(R"({"payloadType": 1, "payload": "aGk=", "signatures": []})"),
            "payloadType: not a text");
  EXPECT_EQ(error_of(R"({"payloadType": "t", "payload": "aGk=", "payload": "aGk=", "signatures": []})"),
            "field 'payload' is there twice");
  EXPECT_EQ(error_of(R"({"payloadType": "t", "payload": "aGk=", "signatures": [{"keyid": "a"}]})"),
            "signatures: field 'sig' is missing");
  EXPECT_EQ(error_of(R"({"payloadType": "t", "payload": "aGk=", "signatures": [], "more": 1})"),
            "envelope: unknown field 'more'");
}

}  // namespace
}  // namespace qcts
