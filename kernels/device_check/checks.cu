// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/device_check/frame.h"

namespace qcts::device_check::QCTS_SIDE {

// Returns the checks of all files. Their order keeps the inputs of each check, which depend on its number.
std::vector<Check> checks() {
  std::vector<Check> all;
  for (const auto& part : {checks_of_numbers(), checks_of_memory(), checks_of_warps(), checks_of_tiles(),
                           checks_of_barriers(), checks_of_wgmma(), checks_of_zeros()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace qcts::device_check::QCTS_SIDE
