// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/host_registry.h"

#include <stdexcept>

#include "suites/base/paths.h"

namespace qcts {

HostedProvider& HostRegistry::add(const std::string& library) {
  const bool is_builtin = library == "builtin";
  try {
    HostedProvider& host = hosts_.emplace_back(
        is_builtin ? builtin_library() : std::filesystem::path(library), cage_, memory_limit_bytes_);
    registry_.add(host.table(), is_builtin ? "" : library, host.file_calls());
    return host;
  } catch (const HostFailure& failure) {
    throw std::runtime_error(failure.reason);
  }
}

}  // namespace qcts
