// SPDX-License-Identifier: BSD-3-Clause
// A child process that runs this program again.
// Uses posix_spawn and never a bare fork, which thread pools and CUDA do not survive.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace qcts {

// The descriptor on which a child answers. Requests arrive on its standard input.
// The output and errors of the child go to the log.
inline constexpr int kAnswerFd = 3;

enum class ChildRole : uint8_t {
  worker,   // answers on kAnswerFd; leads its own process group, so that killing it also kills its children
  host,     // answers on kAnswerFd; stays in the process group of the worker that starts it
  provider  // answers on its standard output; stays in the process group of the worker that starts it
};

// A descriptor of this process that a child gets under another number.
struct InheritedFd {
  int own = -1, child = -1;
};

class ChildProcess {
 public:
  // The child gets `inherited` too, whose own descriptors must come from moved_up().
  // Throws std::runtime_error. From then on this process ignores SIGPIPE, but its children do not.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment, const std::filesystem::path& log,
               ChildRole role = ChildRole::worker, const std::vector<InheritedFd>& inherited = {});
  ~ChildProcess();  // kills the child and waits for it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int answer_fd() const { return answer_fd_; }
  const std::filesystem::path& log() const { return log_; }

  bool send_line(std::string_view line);  // returns false if the child no longer reads
  void close_input();
  // Reads the available data. Returns false if the child has closed its end.
  bool read_available();
  std::optional<std::string> next_line();

  void kill();
  // Waits for the child and returns how it ended: "exit code 3", "SIGABRT (Aborted)".
  std::string wait();
  // Valid after wait(); -1 if a signal ended the child.
  int exit_code() const { return exit_code_; }
  // Peak resident memory in bytes. Valid after wait().
  uint64_t peak_resident_bytes() const { return peak_resident_bytes_; }

 private:
  pid_t pid_ = -1;
  int request_fd_ = -1, answer_fd_ = -1;
  std::filesystem::path log_;
  std::string buffer_, ending_;
  int exit_code_ = -1;
  uint64_t peak_resident_bytes_ = 0;
  ChildRole role_ = ChildRole::worker;
};

// The descriptors that a child gets by number are below this.
inline constexpr int kFirstMovedFd = 64;

// Closes `fd` and returns a copy that is above the descriptors that a child gets by number.
// Throws std::runtime_error.
int moved_up(int fd);

// Returns the environment of this process, overridden by `settings` ("NAME=value").
std::vector<std::string> environment_with(const std::vector<std::string>& settings);

// Returns the children of all threads of a process for which it has not waited.
std::vector<pid_t> children_of(pid_t process);
// Returns the innermost process of a line of only children, which begins with `process`.
pid_t last_descendant(pid_t process);

// Returns the seconds of CPU time that all threads of this process have used.
double own_cpu_seconds();
// The CPU clocks of a process and of the descendants that it has when this object is made.
class CpuClocks {
 public:
  explicit CpuClocks(pid_t process);
  // Returns the seconds of CPU time that they have used. Costs a microsecond each.
  double running_seconds() const;
  // Returns the CPU seconds of their children that have ended, in steps of some milliseconds. Costs about 20
  // us each.
  double waited_seconds() const;

 private:
  void add(pid_t process);
  std::vector<pid_t> processes_;
  std::vector<clockid_t> clocks_;
};

// Returns the seconds of CPU time that a process and all of its descendants have used.
double cpu_seconds_of(pid_t process);

// A line of a log that says how the provider's own process ended.
inline constexpr std::string_view kProviderEnded = "the provider's process ended: ";

// Returns the last `count` lines that have a visible character, each trimmed and truncated to 300 bytes.
std::vector<std::string> last_lines(const std::filesystem::path& file, size_t count);
// Appends how the provider's process ended, if the log says so, and then "; it last wrote: LINE | LINE": the
// last ten lines, or only a Python traceback.
std::string with_last_words(std::string text, const std::filesystem::path& log);

}  // namespace qcts
