// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/safetensors/safetensors.h"

#include <algorithm>

#include "suites/fuzz/targets.h"

namespace qcts::fuzz {

// Reads strictly and leniently: lenient reading accepts whatever strict reading accepts, and both can rebuild
// the file.
bool use_safetensors(Input input) {
  bool accepted = false;
  const auto file = MappedFile::from_bytes({input.begin(), input.end()});
  for (const bool lenient : {false, true}) {
    try {
      const Safetensors read = read_safetensors(file, {.limits = {}, .lenient = lenient});
      for (const SafetensorsEntry& entry : read.entries) row_major_bytes(entry.tensor);
      if (!std::ranges::equal(rebuild_safetensors(read), input))
        throw Finding("safetensors: the rebuilt file differs");
      accepted = true;
    } catch (const Refused&) {
      if (accepted) throw Finding("safetensors: accepted strictly, refused leniently");
    }
  }
  return accepted;
}

}  // namespace qcts::fuzz
