// SPDX-License-Identifier: BSD-3-Clause
// A provider that is a program instead of a shared library: line-JSON on its standard input and output, data
// in shared memory. kernels/abi/README.md has the protocol. Seen from the registry it is a provider like any
// other.
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
#include "suites/providers/remote_protocol.h"

namespace qcts {

// Anonymous memory that another process opens by path.
class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  void reserve(size_t bytes);  // what it held is lost; never shrinks. Throws std::runtime_error
  std::span<std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
  std::span<std::byte> bytes_;
};

class RemoteProvider {
 public:
  // Starts the program and reads its greeting. Throws std::runtime_error. memory_limit_bytes: of all private
  // memory of the program; 0: none.
  RemoteProvider(const std::filesystem::path& program, uint64_t memory_limit_bytes);
  RemoteProvider(const RemoteProvider&) = delete;
  RemoteProvider& operator=(const RemoteProvider&) = delete;

  // As long as this object lives. Its kernels are called through provider_call alone.
  const qcts_provider& table() const { return table_; }
  bool offers_load_save() const { return offers_load_save_; }

  struct Kernel : qcts_kernel {
    RemoteProvider* owner = nullptr;
    size_t index = 0;
    std::string scheme_text, variant_text, description_text;
  };

  // nullptr: of a shared library, or builtin.
  static const Kernel* kernel_of(const qcts_kernel& kernel);

  // These throw ProviderFault for an answer outside the protocol. Where the program died, they end this
  // process, whose parent blames the case.
  qcts_status supports(const Kernel& kernel, const qcts_problem& problem, char* why, size_t why_size);
  qcts_status run(const Kernel& kernel, const qcts_problem& problem);
  // Timing: the program copies what the problem reads `copies` times, makes ready whatever it makes ready at
  // load, and times calls by itself. begin_timing throws ProviderFault where it cannot.
  void begin_timing(const Kernel& kernel, const qcts_problem& problem, size_t copies);
  double time_us(size_t first, size_t calls, bool rotate);  // as Contender::time_us
  // The last call's answer goes to the outputs of the problem that was begun with, which still exist; returns
  // further measures, {"name_us": 1.5}.
  nlohmann::ordered_json end_timing();
  qcts_status load_save(const char* input, const char* output, char* why, size_t why_size);

 private:
  nlohmann::ordered_json ask(const nlohmann::ordered_json& request);
  nlohmann::ordered_json greeting();
  std::vector<RemoteTensor> copy_in(const qcts_problem& problem);
  nlohmann::ordered_json with_memory(const char* request, const Kernel& kernel, const qcts_problem& problem,
                                     const std::vector<RemoteTensor>& tensors) const;
  void copy_out(const std::vector<RemoteTensor>& tensors);
  void read_greeting(const nlohmann::ordered_json& greeting);
  void read_kernel(const nlohmann::ordered_json& entry);

  ChildProcess child_;
  SharedMemory memory_;
  std::mutex running_;
  std::string name_, version_, url_, choices_;
  std::deque<Kernel> kernels_;
  std::vector<const qcts_kernel*> kernel_pointers_;
  qcts_provider table_{};
  bool offers_load_save_ = false;
  std::vector<RemoteTensor> timed_;  // of the problem that is being timed
};

// Hidden subcommand: dies with its parent and has its memory limited, then becomes `program`. Returns only
// with an exit code for failure.
int become_provider(const std::string& program, uint64_t memory_limit_bytes);

}  // namespace qcts
