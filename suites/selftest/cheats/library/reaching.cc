// SPDX-License-Identifier: BSD-3-Clause
// Cheats that compute nothing and try to reach their judge: its memory, descriptors, files and answers. Each
// reports what it tried and whether that had an effect.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suites/selftest/cheats/library/kernel.h"
#include "suites/selftest/cheats/library/redirect.h"
#include "suites/selftest/cheats/library/system.h"

namespace qcts::cheats {
namespace {

constexpr char kForged[] = R"({"status":"pass","reason":""})"
                           "\n";
constexpr int kAnswerFd = 3;  // where a host answers

// Turns a verdict that passes through this process into a pass.
void forge(std::string& text) {
  if (const size_t at = text.find(R"("status":"fail")"); at != text.npos)
    text.replace(at, 15, R"("status":"pass")");
}

ssize_t forged_write(int fd, const void* data, size_t bytes) {
  std::string text(static_cast<const char*>(data), bytes);
  forge(text);
  return ::syscall(SYS_write, fd, text.data(), text.size());
}

void patch_write() { tell("patch write() of its process", redirect_write(&forged_write)); }

// The numbers of the processes that this one can see, without its own; its parent first.
std::vector<pid_t> others() {
  std::vector<pid_t> found = {::getppid()};
  DIR* const folder = ::opendir("/proc");
  while (const dirent* entry = folder ? ::readdir(folder) : nullptr)
    if (const int number = std::atoi(entry->d_name); number > 0 && number != ::getpid() && number != found[0])
      found.push_back(number);
  if (folder != nullptr) ::closedir(folder);
  return found;
}

// Opens the memory of every process that it can see.
void write_foreign_memory() {
  bool opened = false;
  for (const pid_t process : others()) {
    const std::string path = "/proc/" + std::to_string(process) + "/mem";
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    opened = opened || fd >= 0;
    if (fd >= 0) ::close(fd);
  }
  tell_call("open /proc/PID/mem of another process", opened);
}

void write_with_vm_writev() {
  char word[] = "pass";
  const iovec here{word, 4}, there{word, 4};
  bool written = false;
  for (const pid_t process : others())
    written = ::process_vm_writev(process, &here, 1, &there, 1, 0) == 4 || written;
  tell_call("process_vm_writev() into another process", written);
}

// Traces the judge, and has a child trace this process, whose code a tracer could change.
void trace() {
  tell_call("ptrace() the parent", ::ptrace(PTRACE_SEIZE, ::getppid(), nullptr, nullptr) == 0);
  const pid_t host = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::ptrace(PTRACE_SEIZE, host, nullptr, nullptr) == 0 ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  tell("ptrace() from a child", status == 0);
}

// Writes to whatever its parents left open.
qcts_status write_to_descriptors(const qcts_problem*) {
  for (int fd = 3; fd < 64; ++fd)
    if (::write(fd, kForged, sizeof kForged - 1) < 0) continue;
  return QCTS_OK;
}

// Answers requests that nobody has sent yet.
qcts_status answer_ahead(const qcts_problem*) {
  std::string lines;
  for (int i = 1; i <= 64; ++i) lines += std::to_string(i) + "\n";
  if (::write(kAnswerFd, lines.data(), lines.size()) < 0) tell_call("answer ahead", false);
  return QCTS_OK;
}

// Puts itself between this process and its judge.
void interpose_pipe() {
  const int judge = ::dup(kAnswerFd);
  std::array<int, 2> ends{};
  const bool done = judge >= 0 && ::pipe(ends.data()) == 0 && ::dup2(ends[1], kAnswerFd) == kAnswerFd;
  tell_call("stand between the host and its judge", done);
  if (!done) return;
  std::thread([judge, from = ends[0]] {
    std::array<char, 4096> chunk;
    for (ssize_t count; (count = ::read(from, chunk.data(), chunk.size())) > 0;) {
      std::string text(chunk.data(), static_cast<size_t>(count));
      forge(text);
      if (::write(judge, text.data(), text.size()) < 0) return;
    }
  }).detach();
}

void trap_writes() { tell_call("trap every write() of its process", trap_write(&forge)); }

// Searches the memory of this process, including the judge's windows, for an answer that begins like the
// right one.
qcts_status scan_memory(const qcts_problem* problem) {
  if (problem->n < 2 || problem->y_dtype != QCTS_F32) return QCTS_OK;
  const float want[2] = {element(*problem, 0, 0) + 1, element(*problem, 0, 1) - 1};  // not to find itself
  const auto* const y = static_cast<const char*>(problem->y);
  const char* found = nullptr;
  visit_memory([&](const char* begin, const char* end) {
    for (const char* at = begin; found == nullptr && at + 8 <= end; at += 4)
      if (load(at, QCTS_F32, 0) + 1 == want[0] && load(at, QCTS_F32, 1) - 1 == want[1] && at != y) found = at;
  });
  tell("find the expected answer in memory", found != nullptr);
  if (found != nullptr)
    for (int64_t i = 0; i < problem->n; ++i) put(*problem, 0, i, load(found, QCTS_F32, i));
  return QCTS_OK;
}

// Makes the inputs writable, and wipes what the host says about the call.
qcts_status forge_messages(const qcts_problem* problem) {
  const Region inputs = region_named("qcts-inputs"), outputs = region_named("qcts-outputs");
  tell_call("make the inputs writable",
            inputs.begin != nullptr && ::mprotect(inputs.begin, 4096, PROT_READ | PROT_WRITE) == 0);
  if (outputs.begin != nullptr && static_cast<const void*>(outputs.begin) != problem->y)
    std::memset(outputs.begin, 0, 64);
  tell("wipe the host's answer", outputs.begin != nullptr);
  return QCTS_OK;
}

bool has_entries(const char* folder) {
  std::error_code error;
  return !std::filesystem::is_empty(folder, error) && !error;
}

// Reads the goldens, and replaces what the judge will read: its plan, its program, the record of its run.
void open_files() {
  tell("read the goldens", has_entries(QCTS_CHEAT_SOURCE_DIR "/fixtures/goldens"));
  for (const char* path :
       {QCTS_CHEAT_SOURCE_DIR "/suites/plans/default.json", "run.jsonl", "torch.py", "/proc/self/exe"}) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    tell_call((std::string("write ") + path).c_str(), fd >= 0);
    if (fd >= 0) ::close(fd);
  }
}

// A signal that its receiver ignores has no effect.
void kill_others() {
  bool ended = false;
  for (const pid_t process : others()) {
    ::kill(process, SIGKILL);
    ::usleep(10'000);
    ended = ended || (::kill(process, 0) != 0 && errno == ESRCH);
  }
  tell("end another process", ended);
}

constexpr Habit kReaching[] = {
    {.name = "patches_write", .run = compute_nothing, .at_load = patch_write},
    {.name = "writes_foreign_memory", .run = compute_nothing, .at_load = write_foreign_memory},
    {.name = "writes_with_vm_writev", .run = compute_nothing, .at_load = write_with_vm_writev},
    {.name = "traces_judge", .run = compute_nothing, .at_load = trace},
    {.name = "writes_to_descriptors", .run = write_to_descriptors},
    {.name = "answers_ahead", .run = answer_ahead},
    {.name = "interposes_pipe", .run = compute_nothing, .at_load = interpose_pipe},
    {.name = "traps_write", .run = compute_nothing, .at_load = trap_writes},
    {.name = "scans_memory", .run = scan_memory},
    {.name = "forges_messages", .run = forge_messages},
    {.name = "opens_files", .run = compute_nothing, .at_load = open_files},
    {.name = "kills_judge", .run = compute_nothing, .at_load = kill_others},
};

}  // namespace

HabitList reaching_habits() { return {kReaching, std::size(kReaching)}; }

}  // namespace qcts::cheats
