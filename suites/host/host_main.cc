// SPDX-License-Identifier: BSD-3-Clause
// qcts_host: computes for a judge. Started by qcts, never by hand:
//   qcts_host WINDOWS_ADDRESS WINDOW_BYTES REPEATED_OFFSET REPEATED_BYTES REPEATED_COUNT MEMORY_LIMIT_BYTES
//   caged|free cpu|GPU|GPU+guards SCRATCH LIBRARY [COVERED...]
#include <cstdio>
#include <string>

#include "suites/host/serve.h"

int main(int argc, char** argv) {
  if (argc < 11) {
    std::fputs("qcts_host computes for qcts, which starts it\n", stderr);
    return 2;
  }
  qcts::HostOptions options;
  options.windows = std::stoull(argv[1], nullptr, 16);
  options.window_bytes = std::stoull(argv[2]);
  options.repeated = {std::stoull(argv[3]), std::stoull(argv[4]), std::stoull(argv[5])};
  options.memory_limit_bytes = std::stoull(argv[6]);
  options.caged = std::string(argv[7]) != "free";
  const std::string device = argv[8];
  if (device != "cpu") options.device = std::stoi(device);
  options.device_has_guards = device.ends_with("+guards");
  options.scratch = argv[9];
  options.library = argv[10];
  options.covered.assign(argv + 11, argv + argc);
  return qcts::serve(options);
}
