// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/workers/worker.h"
#include "suites/identify/option_shares.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "suites/base/memory.h"
#include "suites/base/paths.h"
#include "suites/base/process.h"
#include "suites/cases/case_key.h"
#include "suites/cases/conformance/profiles.h"
#include "suites/host/probes.h"
#include "suites/judge/expected/coverage.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/providers/hosted_provider.h"
#include "suites/providers/mapped_code.h"
#include "suites/providers/reference_provider.h"
#include "suites/providers/remote_provider.h"
#include "suites/timing/peers.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

void write_line(int fd, const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(fd, text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw std::runtime_error(std::string("the parent closed the pipe: ") + std::strerror(errno));
    sent += static_cast<size_t>(count);
  }
}

class Worker {
 public:
  Worker(const WorkerOptions& options, int answer_fd)
      : options_(options),
        answer_fd_(answer_fd),
        scratch_(options.settings.scratch / ("worker_" + std::to_string(::getpid()))) {}

  int run() {
    WorkerReady ready;
    try {
      open(ready);
    } catch (const HostFailure& failure) {
      ready = WorkerReady();
      ready.error = with_last_words(failure.reason, "/proc/self/fd/2");
    } catch (const std::exception& error) {
      ready = WorkerReady();
      ready.error = error.what();
    }
    write_line(answer_fd_, to_json(ready));
    if (!ready.error.empty()) return 5;
    limit_memory();
    std::string key;
    while (std::getline(std::cin, key)) {
      try {
        answer(Json::parse(key));
      } catch (const HostFailure& failure) {
        tell(failure);
        return 0;
      }
    }
    return 0;
  }

 private:
  void open(WorkerReady& ready) {
    if (options_.provider == "builtin") {
      start_host(builtin_library(), "");
    } else if (options_.provider == kReferenceProvider) {
      registry_.add(reference_provider());
    } else if (options_.provider != kFileProvider) {
      if (is_shared_library(options_.provider))
        start_host(options_.provider, options_.provider);
      else
        start_remote();
    }
    const bool files = options_.provider == kFileProvider;
    ready.provider = files ? kFileProvider : registry_.providers().front().name;
    ready.info = provider_json(registry_, ready.provider);
    if (hosted_) ready.info["isolation"] = as_asked(hosted_->isolation());
    if (options_.device)
      ready.info["device_guards"] = hosted_->no_guards().empty() ? "yes" : "no: " + hosted_->no_guards();
    if (remote_) ready.info["isolation"] = as_asked(remote_->isolation());
    if (const char* profile = promised_profile(); profile != nullptr && *profile != '\0') {
      ready.info["profile"] = profile;
      play(profile);
    }
    ready.offers = offers_of(registry_, ready.provider);
  }

  // Names of profiles, or NULL.
  const char* promised_profile() const {
    return hosted_ ? hosted_->table().profile : remote_ ? remote_->table().profile : nullptr;
  }

  // Leaves names that nobody knows to the parent, which refuses them.
  void play(const char* profile) try {
    played_ = PlayedProfiles(profiles_named(profile, load_profiles(profiles_file())));
  } catch (const std::runtime_error&) {
  }

  bool is_caged() const { return options_.isolation != Isolation::off; }

  // Goldens hold right answers, and plans and lists say what is asked.
  CageRequest cage() const {
    CageRequest request{is_caged(), scratch_, options_.fixtures};
    for (const char* data : {"plans", "mustpass"})
      request.covered.push_back(repository_root() / "suites" / data);
    return request;
  }

  // A run that does not require the floor is not refused if it is not reached.
  std::string as_asked(std::string isolation) const {
    if (options_.isolation != Isolation::required && isolation.starts_with(kNotIsolated))
      isolation.insert(std::strlen(kNotIsolated), kAsAsked);
    return isolation;
  }

  // If the kernel refuses to hide this process, a probe in the cage says so.
  void prepare_for_cage() const {
    if (is_caged()) hide_from_others();
    std::filesystem::create_directories(scratch_);
  }

  void start_remote() {
    prepare_for_cage();
    remote_ = std::make_unique<RemoteProvider>(options_.provider, cage(), options_.memory_limit_bytes);
    FileCalls files;
    if (remote_->offers_load_save())
      files.load_save = [this](const char* input, const char* output, char* why, size_t why_size) {
        return remote_->load_save(input, output, why, why_size);
      };
    registry_.add(remote_->table(), options_.provider, std::move(files));
  }

  // `name` is the library's for the registry, which has none for builtin.
  void start_host(const std::filesystem::path& library, const std::string& name) {
    prepare_for_cage();
    hosted_ = std::make_unique<HostedProvider>(library, cage(), options_.memory_limit_bytes, options_.device);
    registry_.add(hosted_->table(), name, hosted_->file_calls());
    load_fault_ = hosted_->load_fault();
    host_base_bytes_ = data_bytes_of(hosted_->pid()).value_or(0);
  }

  // Says nothing if support was asked: the supervisor then judges the case, which shows the fault.
  void tell(const HostFailure& failure) {
    if (is_asked_for_support_) return;
    write_line(answer_fd_,
               {{kHostFailedKey, failure.reason}, {kPeakResidentKey, failure.peak_resident_bytes}});
  }

  // Reads the manifest only when a case needs it: that is half of a worker's start-up time.
  void require_fixtures() {
    if (has_fixtures_) return;
    fixtures_ = load_fixtures(options_.fixtures, options_.fixture_files);
    has_fixtures_ = true;
  }

  void answer(const Json& key) {
    is_asked_for_support_ = key.contains("supports");
    if (key.contains("replay"))
      finish(judge_replay_of(key));
    else if (key.contains("supports"))
      for (const Json& each : key["supports"])
        write_line(answer_fd_, is_served(case_of_key(each, fixtures_, registry_)));
    else
      answer_case(key);
  }

  // Errors other than the replay's are internal and must not look like a crash of the provider.
  Verdict judge_replay_of(const Json& key) const {
    Verdict verdict;
    verdict.case_id = parse_case_id(key["replay"].at("case").get<std::string>()).value();
    verdict.provider = registry_.providers().front().name;
    verdict.variant = key.at("variant");
    judge_guarded(verdict, [&] {
      const Replay replay = replay_from_json(key["replay"]);
      const KernelInput& input = replay.input;
      for (const Implementation* each :
           registry_.find(abi_op(input.op), input.scheme->family(), input.activation.name())) {
        if (each->kernel->variant != verdict.variant) continue;
        JudgeContext context{options_.settings};
        context.played = &played_;
        verdict = key.contains("shares") ? ask_for_shares(replay, *each, context)
                                         : judge_replay(replay, *each, context);
        return;
      }
      throw std::runtime_error("no " + verdict.variant + " for " + verdict.case_id.text());
    });
    return verdict;
  }

  void answer_case(const Json& key) {
    if (needs_fixtures(key)) require_fixtures();
    const Case c = case_of_key(key, fixtures_, registry_);
    JudgeContext context{options_.settings};
    context.scratch = scratch_ / "case";
    const bool writes_files = c.id.kind == Kind::round_trip || c.id.kind == Kind::reject || c.is_block();
    std::filesystem::remove_all(context.scratch);
    if (writes_files) std::filesystem::create_directories(context.scratch);
    if (c.id.kind == Kind::latency) add_peers(c, context);
    context.coverage = &coverage_;
    context.played = &played_;
    context.test_vectors = &test_vectors_;
    context.seed = key.value("seed", context.seed);
    finish(judge(c, context));
    if (writes_files) std::filesystem::remove_all(context.scratch);
  }

  // Without the library, nothing is timed on a device, and the verdict says why.
  void add_device_clock(JudgeContext& context) {
    if (!clock_ && no_clock_.empty()) {
      try {
        const std::optional<std::filesystem::path> library = cuda_clock();
        if (!library) throw std::runtime_error("no libqcts_cudaclock.so: this build has none");
        clock_ =
            std::make_unique<HostedProvider>(*library, cage(), options_.memory_limit_bytes, options_.device);
        clock_registry_.add(clock_->table(), library->string());
      } catch (const HostFailure& failure) {
        no_clock_ = failure.reason;
      } catch (const std::exception& error) {
        no_clock_ = error.what();
      }
    }
    context.no_device_clock = no_clock_;
    if (no_clock_.empty()) context.device_clock = context.dense_peer = &clock_registry_;
  }

  void add_peers(const Case& c, JudgeContext& context) {
    if (options_.device) return add_device_clock(context);
    if (!peers_) peers_ = std::make_unique<Peers>(cage(), options_.memory_limit_bytes);
    context.dense_peer = peers_->dense(registry_);
    if (c.scheme) context.torch_peer = peers_->torch(abi_op(c.id.op), c.scheme->family());
  }

  // A case may start children, compilers for example, which end with it.
  bool children_end() const {
    constexpr int kPatience = 20;
    for (int i = 0; i < kPatience; ++i) {
      if (children_of(hosted_->pid()).empty()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  // Sends the verdict, or a memory verdict in its place.
  void finish(Verdict verdict) {
    const bool held = verdict.status == Status::pass || verdict.status == Status::robustness;
    if (!load_fault_.empty() && held) {
      verdict.status = Status::fail;
      verdict.reason =
          "loading the provider changed the floating-point control state of its host: " + load_fault_;
    }
    const bool leaves_children = hosted_ && !children_end();
    if (leaves_children && held) {
      verdict.status = Status::fail;
      verdict.reason = "left a child process running";
    }
    const bool used_up = watch_memory(verdict) || leaves_children;
    Json line = to_json(verdict);
    if (used_up || verdict.has(Caveat::overrun)) line[kSpoiltKey] = true;
    if (hosted_) {
      const uint64_t trips = hosted_->round_trips();
      line[kRoundTripsKey] = trips - std::exchange(round_trips_, trips);
      if (const std::vector<MappedInode> mapped = mapped_.added(hosted_->pid()); !mapped.empty())
        line[kMappedKey] = mapped;
    }
    write_line(answer_fd_, line);
  }

  // Makes allocations beyond the limit fail at once, in the case that makes them.
  void limit_memory() {
    if (!kMemoryCounts) return;
    rlimit limit{};
    const std::optional<uint64_t> base_bytes = data_bytes();
    if (options_.memory_limit_bytes == 0 || !base_bytes || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
    base_bytes_ = *base_bytes;
    limit_bytes_ = options_.memory_limit_bytes;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, base_bytes_ + limit_bytes_);
    ::setrlimit(RLIMIT_DATA, &limit);
  }

  // A case that came near the limit and did not pass ran out of memory. Returns true if the next case needs a
  // fresh process because so much memory is used.
  bool watch_memory(Verdict& verdict) const {
    if (limit_bytes_ == 0) return false;
    double taken = share_taken(data_bytes().value_or(0), base_bytes_);
    if (hosted_)
      taken = std::max(taken, share_taken(data_bytes_of(hosted_->pid()).value_or(0), host_base_bytes_));
    const bool may_lack_memory = verdict.status == Status::fail || verdict.status == Status::internal ||
                                 verdict.status == Status::robustness;
    if (taken > 0.9 && may_lack_memory) {
      verdict.status = Status::resource;
      verdict.reason = "reached the memory limit of " + mib_text(limit_bytes_) + ": " + verdict.reason;
    }
    return taken > 0.25;
  }

  double share_taken(uint64_t now_bytes, uint64_t base_bytes) const {
    return now_bytes > base_bytes
               ? static_cast<double>(now_bytes - base_bytes) / static_cast<double>(limit_bytes_)
               : 0;
  }

  const WorkerOptions& options_;
  const int answer_fd_;
  const std::filesystem::path scratch_;  // where the provider may write
  std::unique_ptr<RemoteProvider> remote_;
  std::unique_ptr<HostedProvider> hosted_;
  Registry registry_;
  bool is_asked_for_support_ = false;
  uint64_t round_trips_ = 0;  // when the last verdict was written
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<HostedProvider> clock_;  // on a device
  Registry clock_registry_;
  std::string no_clock_;
  MappedCode mapped_;  // by the host
  CoverageLog coverage_;
  PlayedProfiles played_;
  TestVectorCache test_vectors_;
  Fixtures fixtures_;
  bool has_fixtures_ = false;
  std::string load_fault_;
  // Private memory before the first case, here and in the host. A limit of 0 means none.
  uint64_t base_bytes_ = 0, host_base_bytes_ = 0, limit_bytes_ = 0;
};

}  // namespace

int run_worker(int answer_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a worker in a hung kernel does not outlive its parent
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::fcntl(answer_fd, F_SETFD, FD_CLOEXEC);
  std::string line;
  std::getline(std::cin, line);
  const WorkerOptions options = worker_options_from_json(Json::parse(line));
  return Worker(options, answer_fd).run();
}

}  // namespace qcts
