// SPDX-License-Identifier: BSD-3-Clause
// The executor runs one launch at a time in a process, so several processes share the cases; and what is
// compared with it has a process of its own, so that a kernel that faults or hangs ends its check and no
// other. They exchange cases through one mapping.
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

  // Cases of a check that fit, at least 1; throws std::runtime_error if none does.
  static int64_t capacity(const Check& check);

  struct Round {
    uint8_t *common, *in, *executor_out, *device_out;
  };
  Round round(const Check& check, int64_t cases) const;
  struct Shared;  // what the children write beside it
  Shared& shared() const { return *reinterpret_cast<Shared*>(first_); }

 private:
  uint8_t* first_;
};

struct Inputs {
  uint64_t seed;
  uint32_t check;        // its number, which is the stream of random numbers
  int64_t first, cases;  // those of this round
};

// Fills the inputs of a round and runs it in the executor, in `processes` processes. Returns what went wrong.
std::string execute_in_processes(const Arena& arena, const Check& check, const Inputs& inputs,
                                 simt::Architecture architecture, uint32_t processes);

// A backend in a process of its own, started when it is needed.
class Server {
 public:
  Server(const Arena& arena, const Backend& backend) : arena_(arena), backend_(backend) {}
  ~Server() { stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string open(Machine* machine);
  // Runs check `number` on the inputs in the arena. Returns what went wrong; the next call starts a new
  // process then.
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
