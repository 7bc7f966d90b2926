// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/probes.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace qcts {
namespace {

bool opens(const std::filesystem::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

// With a NULL address, a call that is allowed fails with EFAULT instead of EPERM.
bool reads_memory_of(pid_t process) {
  char byte;
  const iovec here{&byte, 1}, there{nullptr, 1};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

bool traces(pid_t process) {
  if (::ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) return false;
  ::ptrace(PTRACE_DETACH, process, nullptr, nullptr);
  return true;
}

bool writes_outside_scratch() {
  const std::string path = "/tmp/qcts_probe_" + std::to_string(::getpid());
  const bool possible = opens(path, O_WRONLY | O_CREAT);
  ::unlink(path.c_str());
  return possible;
}

// Returns true if one of the folders holds anything.
bool shows(const std::vector<std::filesystem::path>& folders) {
  return std::ranges::any_of(folders, [](const std::filesystem::path& folder) {
    std::error_code error;
    return !std::filesystem::is_empty(folder, error) && !error;
  });
}

bool makes_segment() {
  const int segment = ::shmget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  if (segment >= 0) ::shmctl(segment, IPC_RMID, nullptr);
  return segment >= 0;
}

struct Probe {
  const char* what;  // a provider could do
  bool was_possible, is_floor = true;
};

}  // namespace

std::string isolation_of(const Cage& cage, const Namespaces& namespaces, void* inputs,
                         const std::vector<std::filesystem::path>& covered) {
  // In namespaces, the numbers up to this process's own are those of its init and of itself.
  const bool is_absent = namespaces.are_own && namespaces.judge <= ::getpid();
  const pid_t judge = is_absent ? std::numeric_limits<pid_t>::max() : namespaces.judge;
  const std::string of_judge = "/proc/" + std::to_string(judge);
  const Probe probes[] = {
      {"use capabilities", !cage.has_no_capabilities},
      {"make any system call", !cage.is_filtered},
      {"write the judge's memory", opens(of_judge + "/mem", O_RDWR)},
      {"read the judge's memory", reads_memory_of(judge)},
      {"trace the judge", traces(judge)},
      {"open the judge's descriptors", opens(of_judge + "/fd/1", O_RDONLY)},
      {"write its inputs", inputs != nullptr && ::mprotect(inputs, 1, PROT_READ | PROT_WRITE) == 0},
      {"signal the judge", ::kill(judge, 0) == 0, false},
      {"write files", writes_outside_scratch(), false},
      {"read the goldens", shows(covered), false},
      {"see other processes", opens(of_judge, O_RDONLY | O_DIRECTORY), false},
      {"share System V segments", !namespaces.are_own && makes_segment(), false},
  };
  std::string possible;
  bool is_isolated = true;
  for (const Probe& probe : probes) {
    if (!probe.was_possible) continue;
    possible += (possible.empty() ? "" : ", ") + std::string(probe.what);
    is_isolated = is_isolated && !probe.is_floor;
  }
  if (!is_isolated) return std::string(kNotIsolated) + ": it can " + possible;
  return possible.empty() ? "isolated" : "isolated, but it can " + possible;
}

}  // namespace qcts
