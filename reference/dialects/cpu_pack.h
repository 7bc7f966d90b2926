// SPDX-License-Identifier: BSD-3-Clause
// Which CPU packed the int4 weights of a file? torch's packs have the same shape and dtype on every
// processor, and no file records the order. Two properties of asymmetric quantization show it, because only
// the right order gives each group's scale and zero the codes that were made with them:
//   ends     a group's smallest weight has code 0 and its largest 15, so nearly every group reaches both.
//            cpu_avx2 and cpu_default differ only in the order of whole rows, and reach them equally often.
//   middle   weights scatter around 0, so the mean of a group's codes is near the code of 0, which is
//            8 - zero / scale and differs from group to group.
// Each property compares two packs by a sign test over the groups that tell them apart. The model: if neither
// is the right one, such a group favours either with probability 1/2. A pack is decided if it beats every
// other one with p < kMaxChance, in all weights of the file together; never for symmetric quantization (zeros
// of 0), and never if fewer than kMinShare of its groups reach both ends, as with clipped scales that are too
// wide, or if the weights of the file contradict each other.
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
  int64_t both_ends = 0;  // groups that reach code 0 and code 15 under it
};

struct CpuPack {
  std::string decided;              // one of kCpuPacks; empty: undecided
  std::string why_not;              // empty when decided
  std::string tensor;               // the first weight whose pack the file does not say; empty: none
  int64_t tensors = 0, groups = 0;  // of all such weights; a part of the rows of a long one
  double chance = 1;                // of the decision: the largest p of its comparisons
  std::vector<PackEvidence> evidence;
};

// Examines the weights whose layout the file does not say.
CpuPack find_cpu_pack(const Checkpoint& checkpoint);

// Returns P(at most `losses` of n = wins + losses fair coin tosses).
double sign_test(int64_t wins, int64_t losses);

}  // namespace qcts
