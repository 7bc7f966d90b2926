// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/gguf/gguf.h"

#include <algorithm>

#include "reference/dialects/blocks/blocks.h"
#include "suites/fuzz/targets.h"

namespace qcts::fuzz {

// Reads a file, its values and its blocks, and rebuilds it. Blocks of any bytes can be decoded and judged.
bool use_gguf(Input input) {
  try {
    const Gguf read = read_gguf(MappedFile::from_bytes({input.begin(), input.end()}));
    for (const GgufPair& pair : read.metadata) gguf_value_text(pair.value);
    for (const GgufEntry& entry : read.entries) {
      row_major_bytes(entry.tensor);
      if (entry.type->dtype || !can_decode_blocks(*entry.type)) continue;
      if (block_formula_bytes(*entry.type, entry.shape) != entry.tensor.storage->bytes.size())
        throw Finding("gguf: the size of a tensor differs from its type's formula");
      dense_of_blocks(*entry.type, entry.tensor, entry.shape);
      block_faults(*entry.type, entry.tensor);
    }
    if (!std::ranges::equal(rebuild_gguf(read), input)) throw Finding("gguf: the rebuilt file differs");
  } catch (const Refused&) {
    return false;
  }
  return true;
}

}  // namespace qcts::fuzz
