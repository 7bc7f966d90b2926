// SPDX-License-Identifier: BSD-3-Clause
// A provider that is a program instead of a shared library.
// The program speaks line-JSON on its standard input and output, and passes data in shared memory.
// The protocol is documented in kernels/abi/README.md.
// For the registry, it is a provider like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/abi/qcts_kernel.h"
#include "suites/base/process.h"
#include "suites/host/cage.h"
#include "suites/providers/remote_protocol.h"

namespace qcts {

// Anonymous memory that a child can open by path: it inherits the descriptor.
class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  void reserve(size_t bytes);  // discards the contents and never shrinks; throws std::runtime_error
  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

class RemoteProvider {
 public:
  // Starts the program and does the handshake.
  // `memory_limit_bytes` limits the program's private memory; 0: no limit. Throws std::runtime_error.
  RemoteProvider(const std::filesystem::path& program, const CageRequest& cage, uint64_t memory_limit_bytes);
  RemoteProvider(const RemoteProvider&) = delete;
  RemoteProvider& operator=(const RemoteProvider&) = delete;

  // Valid for the lifetime of this object. Its kernels must be called only through provider_call.
  const qcts_provider& table() const { return table_; }
  // As isolation_of() says.
  const std::string& isolation() const { return isolation_; }
  bool offers_load_save() const { return offers_load_save_; }

  struct Kernel : qcts_kernel {
    RemoteProvider* owner = nullptr;
    size_t index = 0;
    std::string scheme_text, variant_text, description_text, layouts_text;
  };

  // Returns nullptr for builtin kernels and for kernels of shared libraries.
  static const Kernel* kernel_of(const qcts_kernel& kernel);

  // These functions throw ProviderFault for an answer that violates the protocol.
  // If the program died, these functions end this process, and its parent blames the case.
  qcts_status supports(const Kernel& kernel, const qcts_problem& problem, char* why, size_t why_size);
  qcts_status run(const Kernel& kernel, const qcts_problem& problem);
  // Starts a measurement. The program makes `copies` copies of the problem's inputs.
  // The program prepares as it would at load time, and times calls itself.
  // Throws ProviderFault if the program cannot do this.
  void begin_timing(const Kernel& kernel, const qcts_problem& problem, size_t copies);
  double time_us(size_t first, size_t calls, bool rotate);  // see TimedTarget::time_us
  // Writes the last call's answer to the outputs of the problem that begin_timing() received.
  // That problem must still exist. Returns further measures, such as {"name_us": 1.5}.
  nlohmann::ordered_json end_timing();
  qcts_status load_save(const char* input, const char* output, char* why, size_t why_size);

 private:
  nlohmann::ordered_json exchange(const nlohmann::ordered_json& request);
  nlohmann::ordered_json next_json(const std::string& request);
  nlohmann::ordered_json handshake();
  std::vector<RemoteTensor> copy_in(const qcts_problem& problem);
  nlohmann::ordered_json with_memory(const char* request, const Kernel& kernel, const qcts_problem& problem,
                                     const std::vector<RemoteTensor>& tensors) const;
  void copy_out(const std::vector<RemoteTensor>& tensors);
  void read_handshake(const nlohmann::ordered_json& handshake);
  void read_kernel(const nlohmann::ordered_json& entry);

  SharedMemory memory_;
  ChildProcess child_;
  std::mutex running_;
  std::string name_, version_, url_, choices_, profile_, isolation_;
  std::deque<Kernel> kernels_;
  std::vector<const qcts_kernel*> kernel_pointers_;
  qcts_provider table_{};
  bool offers_load_save_ = false;
  std::vector<RemoteTensor> timed_;  // tensors of the problem that is being timed
};

// Implements a hidden subcommand.
// Makes this process die with its parent, limits its memory, enters the cage, writes a line that says what
// isolates it, and executes `program`. Returns only on failure, with an exit code.
int become_provider(const std::string& program, const CageRequest& cage, uint64_t memory_limit_bytes);

}  // namespace qcts
