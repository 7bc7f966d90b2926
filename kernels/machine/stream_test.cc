// SPDX-License-Identifier: BSD-3-Clause
// Protects the memory roof: a loop that skipped lines, or read some twice, would give every kernel a wrong
// limit to be compared with.
#include "kernels/machine/stream.h"

#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace qcts {
namespace {

TEST(StreamLoops, ReadEveryWordOnce) {
  for (const StreamLoop& loop : stream_loops())
    for (const size_t lines : {0, 1, 3, 4, 5, 64, 67, 1000}) {
      std::vector<uint64_t> words(lines * kLineBytes / sizeof(uint64_t) + 1);
      for (size_t i = 0; i < words.size(); ++i) words[i] = (i + 1) * (i + 1) * 0x9E3779B97F4A7C15u;
      const uint64_t want = std::accumulate(words.begin(), words.end() - 1, uint64_t{0});
      EXPECT_EQ(loop.read(reinterpret_cast<const std::byte*>(words.data()), lines), want)
          << loop.name << ", " << lines << " lines";
    }
}

TEST(CopyLoops, WriteEveryLineAndNoOther) {
  for (const CopyLoop& loop : copy_loops())
    for (const size_t lines : {0, 1, 3, 64, 67}) {
      struct alignas(kLineBytes) Line {
        std::byte bytes[kLineBytes];
      };
      std::vector<Line> from(lines + 1), to(lines + 1), want(lines + 1);
      for (size_t i = 0; i < lines * kLineBytes; ++i)
        from[i / kLineBytes].bytes[i % kLineBytes] = static_cast<std::byte>(i * i % 251);
      std::memcpy(want.data(), from.data(), lines * kLineBytes);
      loop.copy(to.data()->bytes, from.data()->bytes, lines);
      EXPECT_EQ(std::memcmp(to.data(), want.data(), (lines + 1) * kLineBytes), 0)
          << loop.name << ", " << lines;
      std::memset(want.data(), 1, lines * kLineBytes);
      loop.fill(to.data()->bytes, lines);
      EXPECT_EQ(std::memcmp(to.data(), want.data(), (lines + 1) * kLineBytes), 0)
          << loop.name << ", " << lines;
    }
}

}  // namespace
}  // namespace qcts
