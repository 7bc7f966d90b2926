// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/serve.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/abi/known_part.h"
#include "kernels/abi/open_provider.h"
#include "kernels/abi/problem.h"
#include "suites/base/memory.h"
#include "suites/base/process.h"
#include "suites/host/cage.h"
#include "suites/host/device/host_device.h"
#include "suites/host/emitted_planes.h"
#include "suites/host/fault_note.h"
#include "suites/host/guarded_call.h"
#include "suites/host/kernel_facts.h"
#include "suites/host/lane_pages.h"
#include "suites/host/message.h"
#include "suites/host/namespaces.h"
#include "suites/host/probes.h"
#include "suites/host/table.h"
#include "suites/host/words.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

void write_all(int fd, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(fd, text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) std::_Exit(5);
    sent += static_cast<size_t>(count);
  }
}

void say_line(const Json& json) {
  write_all(kAnswerFd, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

// Makes allocations beyond the limit fail at once, in the call that makes them.
void limit_memory(uint64_t limit_bytes) {
  const std::optional<uint64_t> base_bytes = data_bytes();
  rlimit limit{};
  if (!kMemoryCounts || limit_bytes == 0 || !base_bytes || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, *base_bytes + limit_bytes);
  ::setrlimit(RLIMIT_DATA, &limit);
}

void put_text(char (&place)[4096], const std::string& text) {
  const size_t count = std::min(text.size(), sizeof place - 1);
  std::memcpy(place, text.data(), count);
  place[count] = '\0';
}

class Host {
 public:
  explicit Host(const HostOptions& options)
      : inputs_(reinterpret_cast<std::byte*>(options.windows)), outputs_(inputs_ + kWindowStride) {
    open_messages();
    // Before the provider, which may have its own handler.
    note_forbidden_accesses(answer_of(outputs_, 0).fault_address);
    if (options.device)
      device_.emplace(*options.device, options.windows, options.windows + kWindowStride, kLanes,
                      options.device_has_guards);
    const uint32_t before = float_control();
    provider_ = open_provider(options.library);
    load_fault_ = float_control_change(before, float_control());
    set_float_control(before);
    table_ = table_json(*provider_.table);
    if (device_) table_["device_memory"] = {device_->memory().inputs(), device_->memory().outputs()};
    if (!load_fault_.empty()) table_["load_fault"] = load_fault_;
    known_ = known_part<qcts_provider>(provider_.table, offsetof(qcts_provider, load_save), "provider");
  }

  const Json& table() const { return table_; }

  void serve_lane(size_t lane, int request_fd, int answer_fd) {
    if (device_) device_->make_current();
    std::string buffer;
    std::array<char, 64> chunk;
    for (;;) {
      const ssize_t count = ::read(request_fd, chunk.data(), chunk.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      buffer.append(chunk.data(), static_cast<size_t>(count));
      for (size_t end; (end = buffer.find('\n')) != buffer.npos; buffer.erase(0, end + 1)) {
        answer(lane);
        write_all(answer_fd, buffer.substr(0, end + 1));
      }
    }
  }

 private:
  // Requests and answers are accessible throughout.
  void open_messages() {
    ::mprotect(inputs_, kBuffersOffset, PROT_READ);
    ::mprotect(outputs_, kBuffersOffset, PROT_READ | PROT_WRITE);
  }

  void answer(size_t lane) {
    const HostRequest& request = request_of(inputs_, lane);
    HostAnswer& answer = answer_of(outputs_, lane);
    // A batch without calls measures the way here and back, and must not cost the next one its pages.
    if (request.call != HostCall::run_batch || request.n_batch != 0) pages_.open(lane, request);
    const auto fault = [&](HostOutcome outcome, const char* what) {
      answer.outcome = outcome;
      put_text(answer.text, what);
    };
    try {
      answer.outcome = HostOutcome::answered;
      call(lane, request, answer);
    } catch (const DeviceFault& device) {
      fault(HostOutcome::device_fault, device.what());
    } catch (const HarmFault& harm) {
      fault(HostOutcome::harm_fault, harm.what());
    } catch (const std::exception& error) {
      fault(HostOutcome::provider_fault, error.what());
    }
  }

  const qcts_kernel& kernel_of(const HostRequest& request) const {
    return *provider_.table->kernels[request.kernel];
  }

  void call(size_t lane, const HostRequest& request, HostAnswer& answer) {
    if (request.call == HostCall::capture_batch) return capture_batch(lane, request, answer);
    if (request.call == HostCall::time_batch) return time_batch(lane, request, answer);
    std::optional<PlacedProblem> placed;
    if (device_ && request.problem != nullptr && request.problem->device != 0)
      placed = device_->place(*request.problem, lane);
    if (request.gated != 0) device_->shut_gate(lane);
    const auto call_kernel = [&] { call(request, placed ? &placed->problem : request.problem, answer); };
    if (request.call == HostCall::capture)
      answer.bytes = device_->capture(lane, call_kernel);
    else if (request.call == HostCall::replay)
      replay(lane, answer);
    else
      call_kernel();
    if (placed) placed->forget();
    if (request.gated != 0) post(answer.is_ready, 1);
    if (placed && request.call == HostCall::prepare) device_->wait(lane, "prepare");
    if (placed && request.call == HostCall::run) device_->wait(lane, "run");
    if (request.call == HostCall::replay) device_->wait(lane, "run");
  }

  // Ends with the first call that does not return QCTS_OK.
  void capture_batch(size_t lane, const HostRequest& request, HostAnswer& answer) {
    const qcts_kernel& kernel = kernel_of(request);
    answer.status = QCTS_OK;
    const auto run = [&](size_t i) {
      if (answer.status != QCTS_OK) return;
      PlacedProblem placed = device_->place(*request.batch[i], lane);
      answer.status = guarded_status(kernel.variant, "run", [&] { return kernel.run(&placed.problem); });
      placed.forget();
    };
    answer.bytes = device_->capture_timed(lane, request.graphs, request.n_batch, request.calls_a_graph, run);
    say_failure(kernel, answer);
  }

  void time_batch(size_t lane, const HostRequest& request, HostAnswer& answer) {
    answer.status = QCTS_OK;
    device_->wake_timed(request.graphs);
    await_go(request, answer);
    answer.events_us = device_->launch_timed(lane, request.graphs);
  }

  void replay(size_t lane, HostAnswer& answer) {
    answer.status = QCTS_OK;
    device_->replay(lane);
  }

  void call(const HostRequest& request, const qcts_problem* problem, HostAnswer& answer) {
    switch (request.call) {
      case HostCall::facts: {
        const qcts_kernel& kernel = kernel_of(request);
        const KernelFacts facts = ask_facts(
            kernel, *problem, [&](const qcts_problem& asked) { return kernel_supports(kernel, asked); });
        say(answer, facts.support);
        answer.before_data = facts.before_data.status;
        put_text(answer.failure, facts.before_data.reason);
        answer.bytes = facts.workspace_bytes;
        answer.prepared_bytes = facts.prepared_bytes;
        return;
      }
      case HostCall::supports:
        return say(answer, kernel_supports(kernel_of(request), *problem));
      case HostCall::workspace_bytes: {
        const qcts_kernel& kernel = kernel_of(request);
        answer.bytes =
            guarded_bytes(kernel.variant, "workspace_bytes", [&] { return kernel.workspace_bytes(problem); });
        return;
      }
      case HostCall::prepared_bytes: {
        const qcts_kernel& kernel = kernel_of(request);
        answer.bytes =
            guarded_bytes(kernel.variant, "prepared_bytes", [&] { return kernel.prepared_bytes(problem); });
        return;
      }
      case HostCall::prepare: {
        const qcts_kernel& kernel = kernel_of(request);
        void* const to = problem->device != 0 ? device_->place_of(request.prepared) : request.prepared;
        answer.status =
            guarded_status(kernel.variant, "prepare", [&] { return kernel.prepare(problem, to); });
        return say_failure(kernel, answer);
      }
      case HostCall::capture:
      case HostCall::run: {
        const qcts_kernel& kernel = kernel_of(request);
        std::optional<FlushedSubnormals> of_caller;
        if (request.flushes != 0) of_caller.emplace();
        answer.status = guarded_status(kernel.variant, "run", [&] { return kernel.run(problem); });
        return say_failure(kernel, answer);
      }
      case HostCall::replay:
      case HostCall::capture_batch:
      case HostCall::time_batch:
        break;  // by call() above
      case HostCall::run_batch:
        return run_batch(request, answer);
      case HostCall::load_save:
        return say(answer, guarded_support(known_.name, "load_save", [&](char* why, size_t size) {
                     return known_.load_save(request.input, request.output, why, size);
                   }));
      case HostCall::run_program:
        return run_program(request, answer);
    }
    throw ProviderFault("the host got a request that it does not know");
  }

  // Waits for a part of the call's time after it.
  static qcts_status run_slowed(const qcts_kernel& kernel, const qcts_problem& problem, double part) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const qcts_status status = kernel.run(&problem);
    const auto until = start + (Clock::now() - start) * (1 + part);
    while (Clock::now() < until) {
    }
    return status;
  }

  // The judge needs less to write x. A core that sleeps wakes in a time that differs by tens of microseconds.
  static constexpr std::chrono::microseconds kSpin{500};

  static void await_go(const HostRequest& request, HostAnswer& answer) {
    post(answer.is_ready, 1);
    while (!await(request.go, 1, std::chrono::seconds(1), kSpin)) {
    }
  }

  // Ends with the first call that does not return QCTS_OK.
  void run_batch(const HostRequest& request, HostAnswer& answer) {
    const qcts_kernel& kernel = kernel_of(request);
    const auto run = [&](uint64_t first, uint64_t end) {
      return guarded_status(kernel.variant, "run", [&] {
        qcts_status status = QCTS_OK;
        for (uint64_t i = first; i < end && status == QCTS_OK; ++i)
          status = request.slowed > 0 ? run_slowed(kernel, *request.batch[i], request.slowed)
                                      : kernel.run(request.batch[i]);
        return status;
      });
    };
    answer.status = run(0, request.n_awake);
    if (answer.status != QCTS_OK) return;
    await_go(request, answer);
    answer.status = run(request.n_awake, request.n_batch);
  }

  static void say(HostAnswer& answer, const Support& support) {
    answer.status = support.status;
    put_text(answer.text, support.reason);
  }

  // A kernel gives the reason of its failure only to the thread that called it, so it is asked at once.
  static void say_failure(const qcts_kernel& kernel, HostAnswer& answer) {
    answer.failure[0] = '\0';
    answer.failure_outcome = HostOutcome::answered;
    if (answer.status != QCTS_FAILED) return;
    try {
      put_text(answer.failure, guarded_failure(kernel));
    } catch (const std::exception& error) {
      const bool harm = dynamic_cast<const HarmFault*>(&error) != nullptr;
      answer.failure_outcome = harm ? HostOutcome::harm_fault : HostOutcome::provider_fault;
      put_text(answer.failure, error.what());
    }
  }

  void run_program(const HostRequest& request, HostAnswer& answer) {
    EmittedPlanes emitted{request.emitted, request.emitted_bytes};
    qcts_program_call program = *request.program;
    program.emit = take_emitted_plane;
    program.context = &emitted;
    say(answer, guarded_support(known_.name, "run_program", [&](char* why, size_t size) {
          return known_.run_program(&program, why, size);
        }));
    if (emitted.is_full) throw ProviderFault("run_program() returned more than the judge can take");
    answer.bytes = emitted.used;
  }

  std::byte *inputs_, *outputs_;
  std::optional<HostDevice> device_;  // before the provider, so that it finds a context
  OpenProvider provider_;
  qcts_provider known_{};
  std::string load_fault_;
  Json table_;
  LanePages pages_;
};

}  // namespace

int serve(const HostOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a host in a hung kernel does not outlive the judge
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const int fd : {STDIN_FILENO, kAnswerFd, kSecondRequestFd, kSecondAnswerFd})
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  for (int i = 0; options.device && i < kMostDeviceFds; ++i) ::fcntl(kFirstDeviceFd + i, F_SETFD, FD_CLOEXEC);
  const auto say_error = [](const std::string& error) {
    say_line({{"error", error}});
    return 5;
  };
  const Namespaces namespaces = options.caged
                                    ? enter_namespaces(options.covered, {options.library, options.scratch})
                                    : Namespaces{::getppid()};
  if (namespaces.are_own) ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // now of the init's end
  if (const std::string error = map_windows(options.windows, options.window_bytes, options.repeated);
      !error.empty())
    return say_error(error);
  const Cage cage =
      options.caged ? enter_cage(options.scratch, namespaces.are_own, options.device.has_value()) : Cage();
  const std::string isolation =
      isolation_of(cage, namespaces, reinterpret_cast<void*>(options.windows), options.covered);
  try {
    Host host(options);
    Json table = host.table();
    table["isolation"] = isolation;
    say_line(table);
    limit_memory(options.memory_limit_bytes);
    std::thread([&host] { host.serve_lane(1, kSecondRequestFd, kSecondAnswerFd); }).detach();
    host.serve_lane(0, STDIN_FILENO, kAnswerFd);
    std::_Exit(0);  // threads of the provider may still run
  } catch (const std::exception& error) {
    return say_error(error.what());
  }
}

}  // namespace qcts
