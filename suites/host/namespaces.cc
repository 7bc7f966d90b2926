// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/namespaces.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suites/base/process.h"
#include "suites/host/device/device_memory.h"
#include "suites/host/windows.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET;
constexpr int kRefused = 77;  // exit code of an init that could not make its mounts

bool write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return written;
}

// Maps one user and one group to themselves, so that files keep their owners.
bool map_ids(uid_t user, gid_t group) {
  const auto line = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1\n"; };
  write_text("/proc/self/setgroups", "deny");
  return write_text("/proc/self/gid_map", line(group)) && write_text("/proc/self/uid_map", line(user));
}

bool make_mounts() {
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 &&
         ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0;
}

bool holds(const fs::path& folder, const fs::path& inner) {
  const std::string way =
      fs::weakly_canonical(inner).lexically_relative(fs::weakly_canonical(folder)).string();
  return !way.empty() && !way.starts_with("..");
}

// A folder that holds what the provider needs, or that cannot be covered, stays as it is, and a probe says
// so.
void cover(const std::vector<fs::path>& folders, const std::vector<fs::path>& needed) {
  for (const fs::path& folder : folders)
    if (std::ranges::none_of(needed, [&](const fs::path& path) { return holds(folder, path); }))
      ::mount("tmpfs", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "mode=0555");
}

// The judge must see the end of its pipes when the host ends.
void close_inherited() {
  for (const int fd :
       {STDIN_FILENO, STDOUT_FILENO, kAnswerFd, kInputsFd, kOutputsFd, kSecondRequestFd, kSecondAnswerFd})
    ::close(fd);
  for (int i = 0; i < kMostDeviceFds; ++i) ::close(kFirstDeviceFd + i);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Ends this process as `status` of waitpid() says that another one ended.
[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
}

// The namespaces' init: tells the launcher how the host ended. Whoever is left in them ends with it.
[[noreturn]] void reap(pid_t host, int status_fd) {
  close_inherited();
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended >= 0 && ended != host) continue;
    if (::write(status_fd, &status, sizeof status) < 0) ::_exit(5);
    ::_exit(0);
  }
}

// Waits for the init and ends as the host did. Returns if the init was refused its mounts.
void launch(pid_t init, const int (&status_pipe)[2]) {
  const int ended = wait_for(init);
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == kRefused) return;
  ::close(status_pipe[1]);
  int status = 0;
  if (::read(status_pipe[0], &status, sizeof status) != static_cast<ssize_t>(sizeof status)) status = ended;
  end_as(status);
}

}  // namespace

Namespaces enter_namespaces(const std::vector<fs::path>& covered, const std::vector<fs::path>& needed) {
  Namespaces entered{::getppid(), false};
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  int status_pipe[2];
  if (::pipe2(status_pipe, O_CLOEXEC) != 0) return entered;
  for (int& fd : status_pipe) fd = moved_up(fd);  // out of the way of close_inherited()
  const auto init = static_cast<pid_t>(::syscall(SYS_clone, kNamespaces | SIGCHLD, 0, 0, 0, 0));
  if (init > 0) {
    launch(init, status_pipe);
  } else if (init == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!map_ids(user, group) || !make_mounts()) ::_exit(kRefused);
    cover(covered, needed);
    const pid_t host = ::fork();
    if (host < 0) ::_exit(kRefused);
    if (host > 0) reap(host, status_pipe[1]);
    entered.are_own = true;
  }
  for (const int fd : status_pipe) ::close(fd);
  return entered;
}

}  // namespace qcts
