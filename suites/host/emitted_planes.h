// SPDX-License-Identifier: BSD-3-Clause
// Keeps the planes that run_program() of a provider emits, one after another (HostRequest::emitted).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

struct EmittedPlanes {
  std::byte* place;
  uint64_t room, used = 0;
  bool is_full = false;  // a plane did not fit, and none after it is kept
};

// The function of qcts_program_call::emit. `context` is an EmittedPlanes.
void take_emitted_plane(void* context, const qcts_plane* plane) noexcept;

}  // namespace qcts
