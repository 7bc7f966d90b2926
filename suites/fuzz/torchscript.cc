// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/torchscript/torchscript.h"

#include "suites/fuzz/targets.h"

namespace qcts::fuzz {

bool use_torchscript(Input input) {
  TorchZipOptions options;
  options.crc = CrcPolicy::ignore;
  try {
    read_torchscript(MappedFile::from_bytes({input.begin(), input.end()}), options);
  } catch (const Refused&) {
    return false;
  }
  return true;
}

}  // namespace qcts::fuzz
