// SPDX-License-Identifier: BSD-3-Clause
// A registry of kernels whose libraries are loaded by hosts, one per library.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "kernels/registry.h"
#include "suites/providers/hosted_provider.h"

namespace qcts {

class HostRegistry {
 public:
  HostRegistry(CageRequest cage, uint64_t memory_limit_bytes)
      : cage_(std::move(cage)), memory_limit_bytes_(memory_limit_bytes) {}
  HostRegistry(const HostRegistry&) = delete;
  HostRegistry& operator=(const HostRegistry&) = delete;

  // Starts a host for a shared library, or for the builtin kernels if `library` is "builtin". Throws
  // std::runtime_error with the reason if it cannot be loaded, and then adds nothing.
  HostedProvider& add(const std::string& library);
  const Registry& registry() const { return registry_; }

 private:
  const CageRequest cage_;
  const uint64_t memory_limit_bytes_;
  std::deque<HostedProvider> hosts_;
  Registry registry_;
};

}  // namespace qcts
