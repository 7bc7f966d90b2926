// SPDX-License-Identifier: BSD-3-Clause
// qcts_host: computes for a judge. Started by qcts, never by hand:
//   qcts_host WINDOWS_ADDRESS MEMORY_LIMIT_BYTES caged|free SCRATCH LIBRARY [COVERED...]
#include <cstdio>
#include <string>

#include "suites/host/serve.h"

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fputs("qcts_host computes for qcts, which starts it\n", stderr);
    return 2;
  }
  qcts::HostOptions options;
  options.windows = std::stoull(argv[1], nullptr, 16);
  options.memory_limit_bytes = std::stoull(argv[2]);
  options.caged = std::string(argv[3]) != "free";
  options.scratch = argv[4];
  options.library = argv[5];
  options.covered.assign(argv + 6, argv + argc);
  return qcts::serve(options);
}
