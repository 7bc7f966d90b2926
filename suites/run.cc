#include "suites/run.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

#include <sys/signalfd.h>
#include <unistd.h>

#include "fixtures/golden.h"
#include "reference/formats/mapped_file.h"
#include "reference/formats/sha256.h"
#include "suites/cli/nearest.h"
#include "suites/environment.h"
#include "suites/paths.h"
#include "suites/reference_provider.h"
#include "suites/summary.h"
#include "suites/supervisor.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

// Ctrl-C and kill as something to ask for, while it lives.
class Interruption {
 public:
  Interruption() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
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

void write_text(const fs::path& path, const std::string& text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

class Run {
 public:
  explicit Run(const RunRequest& options) : options_(options) {}

  Outcome go() {
    const auto began = std::chrono::steady_clock::now();
    prepare();
    greet();
    choose();
    if (options_.list) return print_list();
    judge_all();
    report_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return finish();
  }

 private:
  void prepare() {
    const std::string plan = plan_path(options_.plan).string();
    if (!fs::exists(plan))
      throw RunError(Outcome::usage,
                     "no plan '" + options_.plan + "'" + cli::did_you_mean(options_.plan, plan_names()));
    try {
      plan_ = load_plan(plan);
    } catch (const std::runtime_error& error) {
      throw RunError(Outcome::usage, error.what());
    }
    folders_ = {fixtures_folder()};
    for (const fs::path& folder : options_.fixtures) {
      if (!fs::exists(folder / "manifest.json"))
        throw RunError(Outcome::usage, folder.string() + " holds no manifest.json");
      folders_.push_back(fs::absolute(folder));
    }
    add_mustpass();
    report_.waivers = load_waivers(repository_root() / "suites" / "waivers.json", today_utc());
    check_words("kind", options_.selection.kinds, all_kinds());
    std::vector<std::string> scheme_names = {"any", "mixed", "plain"};
    for (const Scheme* scheme : schemes()) scheme_names.emplace_back(scheme->name());
    check_words("scheme", options_.selection.schemes, scheme_names);
    describe();
  }

  static std::vector<std::string> all_kinds() {
    std::vector<std::string> names;
    for (int i = 0; i < kKindCount; ++i) names.emplace_back(kind_name(static_cast<Kind>(i)));
    return names;
  }

  static void check_words(const std::string& what, const std::vector<std::string>& words,
                          const std::vector<std::string>& known) {
    for (const std::string& word : words)
      if (std::find(known.begin(), known.end(), word) == known.end())
        throw RunError(Outcome::usage, "no " + what + " '" + word + "'" + cli::did_you_mean(word, known));
  }

  void describe() {
    report_.suite_version = suite_version();
    report_.suite_commit = options_.commit.empty() ? "unknown" : options_.commit;
    report_.plan = plan_.name;
    report_.started_utc = utc_now();
    report_.arguments = options_.arguments;
    report_.seed = options_.seed;
    report_.gate_latency = options_.gate_latency;
    for (const fs::path& folder : options_.fixtures) report_.fixtures.push_back(folder.string());
    report_.environment = environment_json();
    report_.schemes = schemes_json();
    const Selection& selection = options_.selection;
    auto& narrowed = report_.selection;
    if (options_.plan != "default") narrowed.push_back("--plan " + options_.plan);
    for (const std::string& filter : selection.filters) narrowed.push_back("--filter " + shell_word(filter));
    for (const std::string& kind : selection.kinds) narrowed.push_back("--kind " + kind);
    for (const std::string& scheme : selection.schemes) narrowed.push_back("--scheme " + scheme);
    for (const std::string& provider : options_.providers)
      narrowed.push_back("--provider " + shell_word(provider));
    if (!selection.variant.empty()) narrowed.push_back("--variant " + selection.variant);
    if (selection.shards > 1) {
      report_.shard = std::to_string(selection.shard) + "/" + std::to_string(selection.shards);
      narrowed.push_back("--shard " + report_.shard);
    }
  }

  // Of this program, not a shared library.
  static bool is_own(const std::string& provider) {
    return provider == kFileProvider || provider == "builtin" || provider == kReferenceProvider;
  }

  // What each worker is told; the parent never loads a provider.
  std::vector<std::string> provider_words() const {
    std::vector<std::string> words;
    std::vector<std::string> names;
    for (const std::string& given : options_.providers)
      (given.find('/') != given.npos || given.ends_with(".so") ? words : names).push_back(given);
    for (const std::string& word : words)
      if (!fs::exists(word)) throw RunError(Outcome::usage, "no shared library " + word);
    const auto wanted = [&](const char* name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const bool all = options_.providers.empty();
    if (all || wanted(kFileProvider)) words.push_back(kFileProvider);
    if (all || wanted("builtin")) words.push_back("builtin");
    if (all || wanted(kReferenceProvider)) words.push_back(kReferenceProvider);
    const bool others =
        std::any_of(names.begin(), names.end(), [](const std::string& name) { return !is_own(name); });
    if (all || others)
      for (const fs::path& plugin : discovered_plugins()) words.push_back(plugin.string());
    return words;
  }

  void greet() {
    try {
      fixtures_ = load_fixtures(folders_);
    } catch (const std::exception& error) {
      throw RunError(Outcome::infrastructure, error.what());
    }
    logs_ = options_.list ? scratch_.path() : options_.out / "logs";
    fs::create_directories(logs_);
    for (const fs::directory_entry& entry : fs::directory_iterator(logs_))
      if (entry.path().extension() == ".log")
        fs::remove(entry.path());  // an earlier run's last words are not this one's
    for (const std::string& word : provider_words()) sources_.push_back(source_for(word));
    supervisor_.greet(120);
    const auto& asked = options_.providers;
    std::vector<std::string> known = {kFileProvider, "builtin", kReferenceProvider};
    std::set<std::string> seen;
    for (Source& source : sources_) {
      if (!source.hello.error.empty()) {
        report_.infrastructure.push_back("provider " + source.given + ": " + source.hello.error);
        continue;
      }
      const std::string& name = source.hello.provider;
      known.push_back(name);
      if (!seen.insert(name).second)
        throw RunError(Outcome::usage, "two providers call themselves '" + name + "'");
      const bool by_path = std::find(asked.begin(), asked.end(), source.given) != asked.end();
      if (!asked.empty() && !by_path && std::find(asked.begin(), asked.end(), name) == asked.end()) continue;
      report_.providers.push_back(source.hello.info);
      for (const CaseName& c : source.hello.cases)
        candidates_.push_back({c, static_cast<size_t>(&source - sources_.data())});
    }
    drop_stand_ins(candidates_);
    if (report_.infrastructure.empty())
      for (const std::string& name : asked)
        if (name.find('/') == name.npos && !name.ends_with(".so")) check_words("provider", {name}, known);
  }

  Source source_for(const std::string& word) {
    Source source;
    source.given = word;
    source.logs = logs_;
    source.options.plan = options_.plan;
    const bool library = !is_own(word);
    source.options.provider = library ? fs::absolute(word).string() : word;
    source.options.fixtures = folders_;
    JudgeContext& context = source.options.context;
    context.scratch = scratch_.path();
    context.targets = targets_folder();
    context.program = program_word();
    context.threads = options_.threads;
    context.gate_latency = options_.gate_latency;
    context.seed = options_.seed;
    auto& rerun = context.rerun_options;
    const auto add = [&](const std::string& text) { rerun += (rerun.empty() ? "" : " ") + text; };
    if (options_.plan != "default") add("--plan " + shell_word(options_.plan));
    for (const fs::path& folder : options_.fixtures) add("--fixtures " + shell_word(folder.string()));
    const auto plugins = discovered_plugins();
    if (library && std::find(plugins.begin(), plugins.end(), word) == plugins.end())
      add("--provider " + shell_word(word));
    if (options_.seed != 0) add("--seed " + std::to_string(options_.seed));
    if (options_.threads != 1) add("--threads " + std::to_string(options_.threads));
    if (options_.gate_latency) add("--gate latency");
    return source;
  }

  void choose() {
    const Selection& selection = options_.selection;
    if (!selection.variant.empty()) check_variant(selection.variant);
    chosen_ = select(selection, candidates_);
    if (!chosen_.empty() || !report_.infrastructure.empty()) return;
    std::string hint;
    for (const std::string& filter : selection.filters) {
      Selection alone;
      alone.filters = {filter};
      if (select(alone, candidates_).empty())
        hint +=
            ": nothing matches '" + filter + "' (did you mean '" + nearest_id(filter, candidates_) + "'?)";
    }
    throw RunError(Outcome::nothing_proved, "no case was selected" + hint);
  }

  // A forced variant that cannot run is an error, never a fallback.
  void check_variant(const std::string& variant) const {
    std::vector<std::string> known;
    std::string refusal;
    bool runnable = false;
    for (const Source& source : sources_) {
      if (!source.hello.error.empty()) continue;
      for (const Json& implementation : source.hello.info["implementations"]) {
        const std::string name = implementation["variant"];
        if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
        if (name != variant) continue;
        runnable = runnable || implementation["runnable"].get<bool>();
        refusal = implementation["refusal"];
      }
    }
    check_words("variant", {variant}, known);
    if (!runnable)
      throw RunError(Outcome::nothing_proved,
                     "variant " + variant + " cannot run on this machine: " + refusal);
  }

  Outcome print_list() const {
    Json names = Json::array();
    for (const Candidate& candidate : chosen_) {
      if (!options_.json) std::cout << candidate.name.full_id << "\n";
      names.push_back(candidate.name.full_id);
    }
    if (options_.json) std::cout << names.dump(2) << "\n";
    if (report_.infrastructure.empty()) return Outcome::conformant;
    throw RunError(Outcome::infrastructure, report_.infrastructure.front());
  }

  static bool is_latency(const Candidate& candidate) { return candidate.name.id.starts_with("latency."); }

  void judge_all() {
    fs::create_directories(options_.out);
    for (const char* stale : {"report.json", "junit.xml", "report.html", "summary.md"})
      fs::remove(options_.out / stale);
    lines_.open(options_.out / "run.jsonl", std::ios::trunc);
    if (!lines_)
      throw RunError(Outcome::infrastructure, (options_.out / "run.jsonl").string() + " cannot be written");
    std::signal(SIGPIPE, SIG_IGN);
    Progress progress(options_.progress, chosen_.size());
    std::vector<Task> correctness, latency;
    for (const Candidate& candidate : chosen_)
      (is_latency(candidate) ? latency : correctness)
          .push_back({candidate.source, candidate.name, plan_.case_timeout_s});
    const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
    run_tasks(correctness, options_.jobs != 0 ? options_.jobs : std::min(4u, cpus), progress);
    if (!interruption_.happened() && !latency.empty()) run_latency(latency, progress);
    if (interruption_.happened())
      throw RunError(Outcome::infrastructure, "interrupted after " + std::to_string(report_.verdicts.size()) +
                                                  " of " + std::to_string(chosen_.size()) + " cases; " +
                                                  (options_.out / "run.jsonl").string() + " has them");
  }

  // One worker at a time, so that nothing else runs beside a measurement. Variants that cannot run take no
  // share of the budget.
  void run_latency(std::vector<Task>& tasks, Progress& progress) {
    size_t runnable = 0;
    for (const Task& task : tasks) runnable += is_runnable(sources_[task.source], task.name.variant) ? 1 : 0;
    const double budget_s =
        std::clamp(plan_.latency_budget_s / static_cast<double>(std::max<size_t>(1, runnable)), 0.05, 5.0);
    for (Source& source : sources_) {
      source.idle.reset();
      source.options.context.latency_budget_s = budget_s;
    }
    for (Task& task : tasks) task.timeout_s = plan_.case_timeout_s + 10 * budget_s;
    char note[200];
    std::snprintf(note, sizeof note,
                  "%zu cases share %g s, %.2f s each; one worker at a time, %u thread%s a call.", runnable,
                  plan_.latency_budget_s, budget_s, options_.threads, options_.threads == 1 ? "" : "s");
    report_.latency_note = note;
    run_tasks(tasks, 1, progress);
  }

  static bool is_runnable(const Source& source, const std::string& variant) {
    for (const Json& implementation : source.hello.info["implementations"])
      if (implementation["variant"] == variant) return implementation["runnable"].get<bool>();
    return true;
  }

  void run_tasks(const std::vector<Task>& tasks, unsigned jobs, Progress& progress) {
    supervisor_.run(
        tasks, jobs,
        [&](Verdict verdict) {
          apply_waivers(report_.waivers, verdict);
          lines_ << to_json(verdict).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n"
                 << std::flush;
          progress.saw(verdict, blocks_conformance(verdict, options_.gate_latency));
          report_.verdicts.push_back(std::move(verdict));
          return !interruption_.happened();
        },
        [&](const std::vector<std::string>& in_flight) {
          progress.wait(in_flight);
          return !interruption_.happened();
        });
  }

  Outcome finish() {
    std::sort(report_.verdicts.begin(), report_.verdicts.end(),
              [](const Verdict& a, const Verdict& b) { return a.full_id() < b.full_id(); });
    count_floor(report_);
    add_goldens();
    report_.ledger = choices_json();
    report_.readers = readers_json();
    const std::string json = report_json(report_).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    write_text(options_.out / "report.json", json);
    write_text(options_.out / "junit.xml", junit_xml(report_));
    std::cout << (options_.json ? json : summary_text(report_, options_.out.string())) << std::flush;
    return conformance(report_).outcome;
  }

  void add_mustpass() {
    const fs::path folder = repository_root() / "suites" / "mustpass";
    report_.mustpass_file = "suites/mustpass/default.txt";
    report_.mustpass = load_mustpass(folder / "default.txt");
    std::string joined;
    for (const std::string& id : report_.mustpass) joined += id + "\n";
    report_.mustpass_sha256 = sha256_hex(std::as_bytes(std::span(joined)));
    report_.floor = load_floor(folder / "floor.json");
  }

  void add_goldens() {
    for (const Golden& golden : fixtures_.goldens)
      report_.goldens.push_back({{"id", golden.id},
                                 {"producer", golden.producer},
                                 {"sha256", golden.sha256},
                                 {"flags", golden.flags},
                                 {"emulated", golden.emulated},
                                 {"choices", golden.choices}});
  }

  const RunRequest& options_;
  Interruption interruption_;
  Plan plan_;
  std::vector<fs::path> folders_;
  Fixtures fixtures_;
  ScratchFolder scratch_;
  fs::path logs_;
  std::vector<Source> sources_;
  Supervisor supervisor_{sources_};
  std::vector<Candidate> candidates_, chosen_;
  std::ofstream lines_;
  RunReport report_;
};

}  // namespace

Outcome run(const RunRequest& options) { return Run(options).go(); }

}  // namespace qcts
