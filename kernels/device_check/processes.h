// SPDX-License-Identifier: BSD-3-Clause
// The executor runs one launch at a time in a process, so several processes share the cases. The backend that
// is compared with it has a separate process: a kernel that faults or hangs then ends its own check and no
// other. The processes exchange cases through one mapping.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device_check/backend.h"

namespace qcts::device_check {

// Memory that this process and its children share: the inputs of a round, and the outputs of both sides.
class Arena {
 public:
  Arena();  // throws std::runtime_error
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns how many cases of a check fit into memory, at least 1. Throws std::runtime_error if none fits.
  static int64_t capacity(const Check& check);

  struct Round {
    uint8_t *common, *in, *executor_out, *device_out;
  };
  Round round(const Check& check, int64_t cases) const;
  struct Shared;  // the data that the children write in addition to the round
  Shared& shared() const { return *reinterpret_cast<Shared*>(first_); }

 private:
  uint8_t* first_;
};

struct Inputs {
  uint64_t seed;
  uint32_t check;        // number of the check, which is also its stream of random numbers
  int64_t first, cases;  // the cases of this round
};

// Fills the inputs of a round and runs it in the executor with `processes` processes. Returns what went
// wrong.
std::string execute_in_processes(const Arena& arena, const Check& check, const Inputs& inputs,
                                 simt::Architecture architecture, uint32_t processes);

// Runs a backend in a separate process, which is started when it is needed.
class Server {
 public:
  Server(const Arena& arena, const Backend& backend) : arena_(arena), backend_(backend) {}
  ~Server() { stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string open(Machine* machine);
  // Runs check `number` on the inputs in the arena. Returns what went wrong. In that case, the next call
  // starts a new process.
  std::string run(uint32_t number, int64_t cases);

 private:
  struct Request;
  struct Answer;
  bool start();
  void stop();
  [[noreturn]] void serve(int requests, int answers) const;
  std::string receive(Answer* answer, int seconds);

  const Arena& arena_;
  const Backend& backend_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace qcts::device_check
