// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace qcts {
namespace {

std::optional<uint64_t> status_field_bytes(const std::string& field, const std::string& process = "self") {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field + ":")) continue;
    std::istringstream words(line.substr(field.size() + 1));
    uint64_t kib = 0;
    if (words >> kib) return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> resident_bytes() { return status_field_bytes("VmRSS"); }

std::string mib_text(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

bool reset_peak_resident() {
  std::ofstream clear("/proc/self/clear_refs");  // "5" resets the high-water mark (proc(5))
  return static_cast<bool>(clear << "5" << std::flush);
}

std::optional<uint64_t> data_bytes() { return status_field_bytes("VmData"); }

std::optional<uint64_t> data_bytes_of(pid_t process) {
  return status_field_bytes("VmData", std::to_string(process));
}

std::optional<uint64_t> peak_resident_bytes() { return status_field_bytes("VmHWM"); }

}  // namespace qcts
