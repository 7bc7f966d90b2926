// SPDX-License-Identifier: BSD-3-Clause
#include "suites/fuzz/targets.h"

namespace qcts::fuzz {

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {
#define QCTS_FUZZ_TARGET(name, seeds, max_bytes) {#name, SeedKind::seeds, max_bytes, use_##name},
#include "suites/fuzz/targets.inc"
#undef QCTS_FUZZ_TARGET
  };
  return kTargets;
}

}  // namespace qcts::fuzz
