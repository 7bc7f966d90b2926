// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/sha256.h"

#include <gtest/gtest.h>

#include "reference/formats/io/byte_io.h"

namespace qcts {
namespace {

// FIPS 180-4 example values: a digest in another case, or of text with its terminator, would break every
// manifest.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(as_bytes("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace qcts
