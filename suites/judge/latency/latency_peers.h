// SPDX-License-Identifier: BSD-3-Clause
// The kernels that are timed beside the candidate of a latency case, and how many copies of a weight each
// gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "suites/cases/case.h"
#include "suites/judge/context/judge_context.h"
#include "suites/judge/latency/latency_case.h"

namespace qcts {

struct LatencyPeers {
  std::unique_ptr<VerifiedKernel> dense;  // linear: the dense layer in the scheme's source dtype; may be null
  std::unique_ptr<VerifiedKernel>
      torch;  // LibTorch's kernel for the case; null: none, or it is the candidate
  // LibTorch's product with a precomputed scale of x, for a candidate that computes one per row. It does less
  // work, so this is a goal for the candidate and not a like-for-like comparison. May be null.
  std::unique_ptr<VerifiedKernel> given_scale;
  std::string dense_name;    // "builtin_avx2"
  std::string why_no_dense;  // of a linear without the dense layer
};

// Returns the peers that gave right answers. A peer's host that dies costs only the peer.
LatencyPeers latency_peers(const Case& c, const JudgeContext& context, uint64_t seed);

// A warm linear reads one weight again and again. The other operations take turns over a few copies that
// fit the caches, because no two calls of a batch may be the same.
size_t copies_of(const Case& c, TimedKernel& timed);

}  // namespace qcts
