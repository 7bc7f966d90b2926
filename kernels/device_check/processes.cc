// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/device_check/processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace qcts::device_check {

struct Arena::Shared {
  std::atomic<int64_t> next_case;
  std::atomic<bool> failed;
  char failure[1024];  // written by the process that sets `failed`
};

namespace {

constexpr size_t kAlignment = 256, kSharedBytes = 4096, kArenaBytes = size_t{512} << 20;
constexpr int kUnwritten = 0xA5;
constexpr int kOpenSeconds = 120;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
size_t in_bytes(const Check& check, int64_t cases) { return size_t{4} * check.in_words * cases; }
size_t out_bytes(const Check& check, int64_t cases) { return size_t{4} * check.out_words * cases; }
size_t round_bytes(const Check& check, int64_t cases) {
  return kSharedBytes + aligned(4 * check.common_words) + aligned(in_bytes(check, cases)) +
         2 * aligned(out_bytes(check, cases));
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return std::string("ended by signal ") + strsignal(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

// Returns false at the end of the file.
bool read_all(int file, void* to, size_t bytes) {
  for (auto* at = static_cast<uint8_t*>(to); bytes > 0;) {
    const ssize_t got = ::read(file, at, bytes);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) at += got, bytes -= static_cast<size_t>(got);
  }
  return true;
}

// Takes a few cases at a time until none is left. Each part runs under another schedule of the executor.
void take_cases(const Arena& arena, const Check& check, const Inputs& inputs, simt::Architecture architecture,
                int64_t part) {
  Arena::Shared& shared = arena.shared();
  const Arena::Round round = arena.round(check, inputs.cases);
  while (!shared.failed) {
    const int64_t first = shared.next_case.fetch_add(part);
    if (first >= inputs.cases) return;
    const Cases cases = {round.common, round.in + in_bytes(check, first),
                         round.executor_out + out_bytes(check, first), std::min(part, inputs.cases - first)};
    for (int64_t i = 0; i < cases.count; ++i) {
      const int64_t index = inputs.first + first + i;
      Random random(inputs.seed, inputs.check, static_cast<uint64_t>(index) + 1);
      check.fill(random, index, reinterpret_cast<uint32_t*>(round.in + in_bytes(check, first + i)));
    }
    const auto schedule = static_cast<uint32_t>((inputs.first + first) / part % simt::kSchedules);
    const std::string failure = execute(check, cases, architecture, schedule);
    if (!failure.empty() && !shared.failed.exchange(true))
      std::memcpy(shared.failure, failure.c_str(), std::min(failure.size(), sizeof shared.failure - 1));
  }
}

}  // namespace

Arena::Arena() {
  void* mapped =
      ::mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::runtime_error(std::string("cannot map 512 MiB of memory: ") + std::strerror(errno));
  first_ = static_cast<uint8_t*>(mapped);
}
Arena::~Arena() { ::munmap(first_, kArenaBytes); }

int64_t Arena::capacity(const Check& check) {
  if (round_bytes(check, 1) > kArenaBytes)
    throw std::runtime_error(check.name + ": a case is larger than 512 MiB");
  int64_t cases = 1;
  while (round_bytes(check, 2 * cases) <= kArenaBytes) cases *= 2;
  return cases;
}

Arena::Round Arena::round(const Check& check, int64_t cases) const {
  Round round;
  round.common = first_ + kSharedBytes;
  round.in = round.common + aligned(4 * check.common_words);
  round.executor_out = round.in + aligned(in_bytes(check, cases));
  round.device_out = round.executor_out + aligned(out_bytes(check, cases));
  return round;
}

std::string execute_in_processes(const Arena& arena, const Check& check, const Inputs& inputs,
                                 simt::Architecture architecture, uint32_t processes) {
  Arena::Shared& shared = arena.shared();
  shared.next_case = 0;
  shared.failed = false;
  std::memset(shared.failure, 0, sizeof shared.failure);
  const Arena::Round round = arena.round(check, inputs.cases);
  std::memset(round.executor_out, kUnwritten, out_bytes(check, inputs.cases));
  std::memset(round.device_out, kUnwritten, out_bytes(check, inputs.cases));
  if (check.fill_common != nullptr) {
    Random random(inputs.seed, inputs.check, 0);
    check.fill_common(random, reinterpret_cast<uint32_t*>(round.common));
  }
  constexpr int64_t kPartsOfProcess = 8;
  const int64_t part =
      check.whole ? inputs.cases : std::max<int64_t>(1, inputs.cases / (kPartsOfProcess * processes));
  std::vector<pid_t> children;
  std::string failure;
  for (uint32_t i = 0; i < processes && failure.empty(); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      take_cases(arena, check, inputs, architecture, part);
      ::_exit(0);
    }
    if (child < 0)
      failure = std::string("fork: ") + std::strerror(errno);
    else
      children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0 && failure.empty()) failure = "a process of the executor " + how_it_ended(status);
  }
  if (failure.empty() && shared.failed) failure = shared.failure;
  return failure.empty() ? "" : "executor: " + failure;
}

// Server.

struct Server::Request {
  uint32_t check;
  int64_t cases;
};
struct Server::Answer {
  Machine machine;  // in the first answer only
  char failure[1024];
};

void Server::serve(int requests, int answers) const {
  const auto answer = [answers](Answer& said, const std::string& failure) {
    std::memcpy(said.failure, failure.c_str(), std::min(failure.size(), sizeof said.failure - 1));
    return ::write(answers, &said, sizeof said) == static_cast<ssize_t>(sizeof said);
  };
  Answer opened = {};
  const std::string failure = backend_.open(&opened.machine);
  if (!answer(opened, failure) || !failure.empty()) ::_exit(0);
  const std::vector<Check> checks = backend_.checks();
  for (Request request; read_all(requests, &request, sizeof request);) {
    const Check& check = checks[request.check];
    const Arena::Round round = arena_.round(check, request.cases);
    Answer ran = {};
    if (!answer(ran, backend_.run(check, {round.common, round.in, round.device_out, request.cases}))) break;
  }
  ::_exit(0);
}

bool Server::start() {
  int requests[2], answers[2];
  if (::pipe(requests) != 0) return false;
  if (::pipe(answers) != 0) {
    ::close(requests[0]);
    ::close(requests[1]);
    return false;
  }
  ::signal(SIGPIPE, SIG_IGN);
  process_ = ::fork();
  if (process_ == 0) {
    ::close(requests[1]);
    ::close(answers[0]);
    serve(requests[0], answers[1]);
  }
  ::close(requests[0]);
  ::close(answers[1]);
  to_ = requests[1];
  from_ = answers[0];
  return process_ > 0;
}

void Server::stop() {
  for (int* file : {&to_, &from_}) {
    if (*file >= 0) ::close(*file);
    *file = -1;
  }
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::string Server::receive(Answer* answer, int seconds) {
  pollfd ready = {from_, POLLIN, 0};
  int got;
  while ((got = ::poll(&ready, 1, 1000 * seconds)) < 0 && errno == EINTR) {
  }
  if (got == 0) return "no answer within " + std::to_string(seconds) + " s";
  if (read_all(from_, answer, sizeof *answer)) return answer->failure;
  int status = 0;
  const bool ended = ::waitpid(process_, &status, 0) == process_;
  if (ended) process_ = -1;
  return "its process " + (ended ? how_it_ended(status) : "closed its pipe");
}

std::string Server::open(Machine* machine) {
  stop();
  if (!start()) return std::string("cannot start a process: ") + std::strerror(errno);
  Answer answer = {};
  const std::string failure = receive(&answer, kOpenSeconds);
  *machine = answer.machine;
  if (!failure.empty()) stop();
  return failure;
}

std::string Server::run(uint32_t number, int64_t cases) {
  std::string failure;
  if (Machine machine; process_ <= 0) failure = open(&machine);
  if (failure.empty()) {
    const Request request = {number, cases};
    Answer answer = {};
    if (::write(to_, &request, sizeof request) != static_cast<ssize_t>(sizeof request))
      failure = std::string("cannot ask its process: ") + std::strerror(errno);
    else
      failure = receive(&answer, backend_.run_seconds);
  }
  if (!failure.empty()) stop();
  return failure;
}

}  // namespace qcts::device_check
