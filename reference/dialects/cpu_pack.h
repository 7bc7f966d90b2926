// SPDX-License-Identifier: BSD-3-Clause
// Finds out which CPU packed the int4 weights of a file.
// torch's packs have the same shape and dtype on every processor, and no file records the order of the codes.
// Two properties of asymmetric quantization show the order.
// A group's codes fit the scale and zero of the group only in the right order:
//   ends     The smallest weight of a group has code 0 and the largest has code 15.
//            Nearly every group therefore reaches both ends.
//            cpu_avx2 and cpu_default differ only in the order of whole rows.
//            Groups reach both ends equally often under either of them.
//   middle   Weights scatter around 0, so the mean of a group's codes is near the code of 0.
//            That code is 8 - zero / scale and differs from group to group.
// For each property, a sign test compares two packs over the groups that tell them apart.
// If neither pack is right, the test's model is that a group favours either of them with probability 1/2.
// A pack is decided if it beats every other pack with p < kMaxChance over all weights of the file together.
// No pack is decided if one of these is true:
//   - The quantization is symmetric (zeros of 0).
//   - Fewer than kMinShare of the pack's groups reach both ends, as with clipped scales that are too wide.
//   - The weights of the file contradict each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

inline constexpr std::string_view kCpuPacks[] = {"cpu_avx512", "cpu_avx2", "cpu_default"};
inline constexpr double kMaxChance = 1e-9;
inline constexpr double kMinShare = 0.9;

struct PackEvidence {
  std::string_view pack;  // one of kCpuPacks
  int64_t both_ends = 0;  // groups that reach code 0 and code 15 under this pack
};

struct CpuPack {
  std::string decided;  // one of kCpuPacks; empty: undecided
  std::string why_not;  // the reason; empty if the pack is decided
  std::string tensor;   // the first weight whose pack the file does not record; empty: none
  // Counts over all such weights. A long weight counts with some of its rows only.
  int64_t tensors = 0, groups = 0;
  double chance = 1;  // the largest p of the comparisons that decided
  std::vector<PackEvidence> evidence;
};

// Examines the weights whose layout the file does not record.
CpuPack find_cpu_pack(const Checkpoint& checkpoint);

// Returns the probability of at most `losses` heads in n = wins + losses tosses of a fair coin.
double sign_test(int64_t wins, int64_t losses);

}  // namespace qcts
