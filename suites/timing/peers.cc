// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/peers.h"

#include <cstdlib>
#include <stdexcept>

#include "suites/base/paths.h"

namespace qcts {
namespace {

bool has_dense(const Registry& registry) { return !registry.find(QCTS_OP_LINEAR, "dense").empty(); }

}  // namespace

// libgomp reads OMP_WAIT_POLICY when it is loaded: waiting threads that spin would take a core from the next
// target (an int4 decoder block right after the dense one ran 1.4 times as slow).
std::unique_ptr<HostRegistry> Peers::start(const std::string& library) const {
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  auto started = std::make_unique<HostRegistry>(cage_, memory_limit_bytes_);
  try {
    started->add(library);
  } catch (const std::runtime_error&) {
    return nullptr;  // its own worker reports why; here it is just missing
  }
  return started;
}

const Registry* Peers::dense(const Registry& own) {
  if (!searched_) {
    searched_ = true;
    const bool has_own = has_dense(own);
    const std::string library = has_own ? own.providers().front().library : "";
    if (has_own && !is_shared_library(library)) return &own;
    if (has_own) dense_ = start(library);
    for (const std::filesystem::path& plugin : discovered_plugins()) {
      if (has_own || (dense_ && has_dense(dense_->registry()))) break;
      dense_ = start(plugin.string());
    }
    if (dense_ && !has_dense(dense_->registry())) dense_.reset();
  }
  if (dense_) return &dense_->registry();
  return has_dense(own) ? &own : nullptr;
}

const Registry* Peers::torch(uint32_t op, std::string_view family) {
  if (torch_) return &torch_->registry();
  if (!dense_ || dense_->registry().providers().front().name != "aten") return nullptr;
  if (dense_->registry().find(op, family).empty()) return nullptr;
  torch_ = start(dense_->registry().providers().front().library);
  return torch_ ? &torch_->registry() : nullptr;
}

}  // namespace qcts
