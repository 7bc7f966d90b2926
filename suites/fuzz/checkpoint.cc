// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/checkpoint.h"

#include "suites/fuzz/targets.h"

namespace qcts::fuzz {

// Opens the bytes as whatever format they claim, and reads the named tensors and the planes of their schemes.
bool use_checkpoint(Input input) {
  OpenOptions options;
  options.crc = CrcPolicy::ignore;
  try {
    const Checkpoint checkpoint =
        read_checkpoint(MappedFile::from_bytes({input.begin(), input.end()}), options);
    dense_bytes(checkpoint);
    payload_bytes(checkpoint);
    for (const NamedTensor& tensor : checkpoint.tensors) scheme_tensor(tensor, "cpu_avx2");
  } catch (const Refused&) {
    return false;
  }
  return true;
}

}  // namespace qcts::fuzz
