// SPDX-License-Identifier: BSD-3-Clause
// qcts_host: computes for a judge. Started by qcts, never by hand:
//   qcts_host WINDOWS_ADDRESS WINDOW_BYTES MEMORY_LIMIT_BYTES caged|free SCRATCH LIBRARY [COVERED...]
#include <cstdio>
#include <string>

#include "suites/host/serve.h"

int main(int argc, char** argv) {
  if (argc < 7) {
    std::fputs("qcts_host computes for qcts, which starts it\n", stderr);
    return 2;
  }
  qcts::HostOptions options;
  options.windows = std::stoull(argv[1], nullptr, 16);
  options.window_bytes = std::stoull(argv[2]);
  options.memory_limit_bytes = std::stoull(argv[3]);
  options.caged = std::string(argv[4]) != "free";
  options.scratch = argv[5];
  options.library = argv[6];
  options.covered.assign(argv + 7, argv + argc);
  return qcts::serve(options);
}
