#include "suites/worker.h"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <map>
#include <stdexcept>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "suites/baseline.h"
#include "suites/paths.h"
#include "suites/provider_call.h"
#include "suites/reference_provider.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

void write_line(int fd, const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(fd, text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw std::runtime_error(std::string("the parent no longer listens: ") + std::strerror(errno));
    sent += static_cast<size_t>(count);
  }
}

Json claims_json(uint32_t claims) {
  Json names = Json::array();
  const std::pair<uint32_t, const char*> known[] = {{QCTS_CLAIM_BIT_EXACT, "bit_exact"},
                                                    {QCTS_CLAIM_DETERMINISTIC, "deterministic"},
                                                    {QCTS_CLAIM_THREAD_INVARIANT, "thread_invariant"},
                                                    {QCTS_CLAIM_BATCH_INVARIANT, "batch_invariant"},
                                                    {QCTS_CLAIM_EMULATED, "emulated"}};
  for (const auto& [bit, name] : known)
    if (claims & bit) names.push_back(name);
  return names;
}

class Worker {
 public:
  Worker(const WorkerOptions& options, int answer_fd) : options_(options), answer_fd_(answer_fd) {}

  int run() {
    Hello hello;
    try {
      open(hello);
    } catch (const std::exception& error) {
      hello = Hello();
      hello.error = error.what();
    }
    write_line(answer_fd_, to_json(hello));
    if (!hello.error.empty()) return 5;
    std::string full_id;
    while (std::getline(std::cin, full_id)) answer(full_id);
    return 0;
  }

 private:
  void open(Hello& hello) {
    if (options_.provider == "builtin") {
      registry_.add(builtin_provider());
    } else if (options_.provider == kReferenceProvider) {
      registry_.add(reference_provider());
    } else if (options_.provider != kFileProvider) {
      const uint32_t before = float_control();
      registry_.load(options_.provider);
      load_fault_ = float_control_change(before, float_control());
      set_float_control(before);
    }
    fixtures_ = load_fixtures(options_.fixtures);
    hello.provider = registry_.providers().empty() ? kFileProvider : registry_.providers().front().name;
    hello.info = provider_json(registry_, hello.provider);
    const bool files = hello.provider == kFileProvider;
    for (Case& c :
         expand(load_plan(plan_path(options_.plan)), {fixtures_.goldens, fixtures_.malformed, &registry_})) {
      if (files != c.judges_file()) continue;
      const std::string full_id = c.full_id();
      hello.cases.push_back({c.id, full_id, c.variant()});
      cases_.emplace(full_id, std::move(c));
    }
  }

  void answer(const std::string& full_id) {
    const auto found = cases_.find(full_id);
    if (found == cases_.end()) throw std::runtime_error("asked for a case that was not offered: " + full_id);
    JudgeContext context = options_.context;
    context.scratch = options_.context.scratch / ("case_" + std::to_string(::getpid()));
    std::filesystem::remove_all(context.scratch);
    std::filesystem::create_directories(context.scratch);
    if (found->second.kind == Kind::latency) context.registry = baseline_.find(registry_);
    Verdict verdict = judge(found->second, context);
    if (!load_fault_.empty() && verdict.status == Status::pass) {
      verdict.status = Status::fail;
      verdict.reason =
          "loading the provider changed the floating-point control state of its host: " + load_fault_;
    }
    write_line(answer_fd_, to_json(verdict));
    std::filesystem::remove_all(context.scratch);
  }

  const WorkerOptions& options_;
  const int answer_fd_;
  Registry registry_;
  Baseline baseline_;
  Fixtures fixtures_;
  std::map<std::string, Case> cases_;
  std::string load_fault_;
};

}  // namespace

std::vector<std::string> worker_arguments(const WorkerOptions& options) {
  const JudgeContext& context = options.context;
  std::vector<std::string> words = {"worker",
                                    "--plan",
                                    options.plan,
                                    "--provider",
                                    options.provider,
                                    "--scratch",
                                    context.scratch.string(),
                                    "--targets",
                                    context.targets.string(),
                                    "--program",
                                    context.program,
                                    "--threads",
                                    std::to_string(context.threads),
                                    "--seed",
                                    std::to_string(context.seed),
                                    "--latency-budget",
                                    std::to_string(context.latency_budget_s)};
  if (!context.rerun_options.empty()) words.push_back("--rerun-options=" + context.rerun_options);
  if (context.gate_latency) words.push_back("--gate-latency");
  for (const std::filesystem::path& folder : options.fixtures)
    words.insert(words.end(), {"--fixtures", folder.string()});
  return words;
}

Json provider_json(const Registry& registry, const std::string& name) {
  Json json = {{"name", name},  {"version", ""}, {"url", ""},
               {"choices", ""}, {"library", ""}, {"implementations", Json::array()}};
  for (const ProviderInfo& info : registry.providers())
    if (info.name == name) {
      json["version"] = info.version;
      json["url"] = info.url;
      json["choices"] = info.choices;
      json["library"] = info.library;
    }
  for (const Implementation& implementation : registry.implementations()) {
    if (implementation.provider != name) continue;
    const qcts_kernel& kernel = *implementation.kernel;
    const std::string refusal = implementation.machine_refusal();
    json["implementations"].push_back(
        {{"op", op_name(kernel.op)},
         {"scheme", kernel.scheme},
         {"variant", kernel.variant},
         {"description", kernel.description == nullptr ? "" : kernel.description},
         {"claims", claims_json(kernel.claims)},
         {"runnable", refusal.empty()},
         {"refusal", refusal}});
  }
  return json;
}

Json to_json(const Hello& hello) {
  if (!hello.error.empty()) return {{"hello", 1}, {"error", hello.error}};
  Json cases = Json::array();
  for (const CaseName& name : hello.cases) cases.push_back({name.id, name.full_id, name.variant});
  return {{"hello", 1}, {"provider", hello.provider}, {"info", hello.info}, {"cases", cases}};
}

Hello hello_from_json(const Json& json) {
  if (!json.is_object() || json.value("hello", 0) != 1)
    throw std::runtime_error("the worker's first line is no greeting");
  Hello hello;
  hello.error = json.value("error", "");
  if (!hello.error.empty()) return hello;
  hello.provider = json.at("provider");
  hello.info = json.at("info");
  for (const Json& name : json.at("cases")) hello.cases.push_back({name.at(0), name.at(1), name.at(2)});
  return hello;
}

int run_worker(const WorkerOptions& options, int answer_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a worker in a hung kernel does not outlive its parent
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::fcntl(answer_fd, F_SETFD, FD_CLOEXEC);
  return Worker(options, answer_fd).run();
}

}  // namespace qcts
