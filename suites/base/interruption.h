// SPDX-License-Identifier: BSD-3-Clause
// Blocks SIGINT, SIGTERM and SIGHUP during its lifetime, so that a loop can poll for them.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace qcts {

class Interruption {
 public:
  Interruption() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGHUP);
    ::sigprocmask(SIG_BLOCK, &signals_, &before_);
    fd_ = ::signalfd(-1, &signals_, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~Interruption() {
    ::close(fd_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool happened() {
    signalfd_siginfo info;
    if (!happened_) happened_ = ::read(fd_, &info, sizeof info) == sizeof info;
    return happened_;
  }

 private:
  sigset_t signals_{}, before_{};
  int fd_ = -1;
  bool happened_ = false;
};

}  // namespace qcts
