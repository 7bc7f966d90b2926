// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace qcts {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
};

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

pid_t spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment, const std::filesystem::path& log, int input,
            int answer, ChildRole role, const std::vector<InheritedFd>& inherited) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  // dup2 onto itself would keep close-on-exec set, but the parent's copies are never on kAnswerFd: it moved
  // them up.
  posix_spawn_file_actions_adddup2(&actions, answer, role == ChildRole::provider ? STDOUT_FILENO : kAnswerFd);
  for (const InheritedFd& fd : inherited) posix_spawn_file_actions_adddup2(&actions, fd.own, fd.child);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults, none;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int group = role == ChildRole::worker ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));

  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers(words), envp = pointers(environment);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error(program.string() + ": " + std::strerror(error));
  return pid;
}

}  // namespace

int moved_up(int fd) {
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstMovedFd);
  ::close(fd);
  if (moved < 0) throw std::runtime_error(std::string("fcntl: ") + std::strerror(errno));
  return moved;
}

ChildProcess::ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment, const std::filesystem::path& log,
                           ChildRole role, const std::vector<InheritedFd>& inherited)
    : log_(log), role_(role) {
  // Report how a dead child ended, instead of dying from the SIGPIPE of a write to it.
  ::signal(SIGPIPE, SIG_IGN);
  Pipe requests, answers;
  int input = moved_up(requests.read_end), answer = moved_up(answers.write_end);
  request_fd_ = moved_up(requests.write_end);
  answer_fd_ = moved_up(answers.read_end);
  try {
    pid_ = spawn(program, arguments, environment, log, input, answer, role, inherited);
  } catch (...) {
    for (int* fd : {&input, &answer, &request_fd_, &answer_fd_}) close_fd(*fd);
    throw;
  }
  close_fd(input);
  close_fd(answer);
  ::fcntl(answer_fd_, F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  close_input();
  if (pid_ > 0 && ending_.empty()) {
    kill();
    wait();
  }
  close_fd(answer_fd_);
}

bool ChildProcess::send_line(std::string_view line) {
  std::string text = std::string(line) + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(request_fd_, text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

void ChildProcess::close_input() { close_fd(request_fd_); }

bool ChildProcess::read_available() {
  std::array<char, 65536> chunk;
  for (;;) {
    const ssize_t count = ::read(answer_fd_, chunk.data(), chunk.size());
    if (count > 0) {
      buffer_.append(chunk.data(), static_cast<size_t>(count));
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

std::optional<std::string> ChildProcess::next_line() {
  const size_t end = buffer_.find('\n');
  if (end == buffer_.npos) return std::nullopt;
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

void ChildProcess::kill() {
  if (pid_ > 0 && ending_.empty()) ::kill(role_ == ChildRole::worker ? -pid_ : pid_, SIGKILL);
}

std::string ChildProcess::wait() {
  if (!ending_.empty()) return ending_;
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  peak_resident_bytes_ = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    ending_ =
        "SIG" + std::string(name != nullptr ? name : std::to_string(signal)) + " (" + strsignal(signal) + ")";
  } else {
    exit_code_ = WEXITSTATUS(status);
    ending_ = "exit code " + std::to_string(exit_code_);
  }
  return ending_;
}

std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
  std::vector<std::string> merged = settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& setting : settings) replaced = replaced || setting.starts_with(name);
    if (!replaced) merged.emplace_back(text);
  }
  return merged;
}

namespace {

// Returns the parent's number in /proc/PID/stat, after a name that may hold anything; 0 without such a file.
pid_t parent_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string line, state;
  std::getline(file, line);
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> children_by_search(pid_t process) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    const bool is_number = name.find_first_not_of("0123456789") == name.npos;
    if (is_number && parent_of(entry.path()) == process) found.push_back(std::atoi(name.c_str()));
  }
  return found;
}

}  // namespace

std::vector<pid_t> children_of(pid_t process) {
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  std::error_code error;
  if (!std::filesystem::exists(tasks / std::to_string(process) / "children", error))
    return children_by_search(process);
  std::vector<pid_t> found;
  for (const auto& thread : std::filesystem::directory_iterator(tasks, error)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

pid_t last_descendant(pid_t process) {
  for (;;) {
    const std::vector<pid_t> children = children_of(process);
    if (children.size() != 1) return process;
    process = children.front();
  }
}

namespace {

// Returns the CPU seconds of the children for which a process has waited, or 0 if it is gone.
double waited_cpu_seconds(const std::string& process) {
  std::ifstream in("/proc/" + process + "/stat");
  std::string line;
  std::getline(in, line);
  std::istringstream words(line.substr(std::min(line.rfind(')') + 1, line.size())));
  // The fields after the name: state is the first, cutime and cstime are the 14th and 15th.
  std::string skipped;
  for (int i = 0; i < 13; ++i) words >> skipped;
  double user = 0, system = 0;
  words >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double own_cpu_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

CpuClocks::CpuClocks(pid_t process) { add(process); }

void CpuClocks::add(pid_t process) {
  processes_.push_back(process);
  if (clockid_t clock = 0; ::clock_getcpuclockid(process, &clock) == 0) clocks_.push_back(clock);
  for (const pid_t child : children_of(process)) add(child);
}

double CpuClocks::running_seconds() const {
  double seconds = 0;
  for (const clockid_t clock : clocks_)
    if (timespec spent{}; ::clock_gettime(clock, &spent) == 0)
      seconds += static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
  return seconds;
}

double CpuClocks::waited_seconds() const {
  double seconds = 0;
  for (const pid_t process : processes_) seconds += waited_cpu_seconds(std::to_string(process));
  return seconds;
}

double cpu_seconds_of(pid_t process) {
  const CpuClocks clocks(process);
  return clocks.running_seconds() + clocks.waited_seconds();
}

std::vector<std::string> last_lines(const std::filesystem::path& file, size_t count) {
  std::ifstream in(file);
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == line.npos) continue;
    last.push_back(line.substr(first, std::min<size_t>(300, line.find_last_not_of(" \t\r") + 1 - first)));
    if (last.size() > count) last.pop_front();
  }
  return {last.begin(), last.end()};
}

std::string with_last_words(std::string text, const std::filesystem::path& log) {
  constexpr size_t kLines = 10;
  std::vector<std::string> lines = last_lines(log, kLines + 1);
  if (!lines.empty() && lines.back().starts_with(kProviderEnded)) {
    text += "; " + lines.back();
    lines.pop_back();
  } else if (lines.size() > kLines) {
    lines.erase(lines.begin());
  }
  // A Python program's last words are its exception; the lines before it do not matter.
  for (size_t i = lines.size(); i-- > 0;)
    if (lines[i].starts_with("Traceback (most recent call last)")) {
      lines.erase(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "; it last wrote: " : " | ") + lines[i];
  return text;
}

}  // namespace qcts
