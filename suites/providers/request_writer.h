// SPDX-License-Identifier: BSD-3-Clause
// Writes the arguments of a call into a host's input window, with all that they point to.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "suites/host/message.h"
#include "suites/providers/memory/host_memory.h"

namespace qcts {

class RequestWriter {
 public:
  // Writes after the request in `message`, the bytes of one lane.
  RequestWriter(std::span<std::byte> message, const HostMemory& memory);

  // These functions return where the copy is. Buffers are not copied: they must be in the host's
  // memory, or be NULL, and are opened for the call. Outputs, the workspace and `prepared` of prepare() are
  // writable. They throw std::length_error if the copy does not fit.
  const qcts_problem* problem(const qcts_problem& given);
  const qcts_problem* const* problems(std::span<const qcts_problem> given);
  const char* text(const char* given);
  const qcts_program_call* program(const qcts_program_call& given);
  // Opens the block that holds `address`, or nothing for NULL. Throws std::logic_error if there is none.
  void open(const void* address, HostAccess access);

  // Returns the pages that were opened, which then stay closed.
  std::vector<OpenPages> take_open() { return std::exchange(open_, {}); }
  // Puts the pages that were opened into the request.
  void finish(HostRequest& request) const;

 private:
  void* take(size_t bytes);
  const qcts_plane* planes(const qcts_plane* given, uint32_t count, HostAccess access);

  std::span<std::byte> free_;
  const HostMemory& memory_;
  std::vector<OpenPages> open_;
};

}  // namespace qcts
