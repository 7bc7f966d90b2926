// SPDX-License-Identifier: BSD-3-Clause
// qcts_host: computes for a judge. Started by qcts, never by hand:
//   qcts_host WINDOWS_ADDRESS MEMORY_LIMIT_BYTES SCRATCH LIBRARY
#include <cstdio>
#include <string>

#include "suites/host/serve.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("qcts_host computes for qcts, which starts it\n", stderr);
    return 2;
  }
  qcts::HostOptions options;
  options.windows = std::stoull(argv[1], nullptr, 16);
  options.memory_limit_bytes = std::stoull(argv[2]);
  options.scratch = argv[3];
  options.library = argv[4];
  return qcts::serve(options);
}
