// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "fixtures/golden.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/interruption.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/cases/candidates.h"
#include "suites/cases/case_key.h"
#include "suites/cases/mustpass.h"
#include "suites/cases/named.h"
#include "suites/providers/load_guarded.h"
#include "suites/providers/reference_provider.h"
#include "suites/run/environment.h"
#include "suites/run/progress.h"
#include "suites/run/provider_slots.h"
#include "suites/run/run_head.h"
#include "suites/run/run_report.h"
#include "suites/run/supervisor.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

class Run {
 public:
  explicit Run(const RunRequest& options) : options_(options) {}

  Outcome go() {
    const auto began = std::chrono::steady_clock::now();
    prepare();
    progress_.say("reading the fixtures");
    handshake();
    progress_.say("expanding plan " + options_.plan);
    choose();
    progress_.clear();
    if (options_.list) return print_list();
    open_record();
    judge_all();
    report_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    progress_.clear();
    record_.close();
    return write_report(report_, options_.out, {.print_json = options_.json, .junit = options_.junit});
  }

 private:
  void prepare() {
    plan_ = named_plan(options_.plan);
    folders_ = {fixtures_folder()};
    for (const fs::path& folder : options_.fixtures) {
      if (!fs::exists(folder / "manifest.json")) throw UsageError(folder.string() + " has no manifest.json");
      folders_.push_back(fs::absolute(folder));
    }
    check_words("device", {options_.device}, {"cpu", "cuda"});
    if (options_.device == "cuda") refuse_device();
    check_words("kind", options_.selection.kinds, all_kinds());
    std::vector<std::string> scheme_names = {"any", "mixed", "plain"};
    for (const Scheme* scheme : schemes()) scheme_names.emplace_back(scheme->name());
    check_words("scheme", options_.selection.schemes, scheme_names);
    head_ = head_of(options_, plan_, folders_);
  }

  // Kernels for a device are built, and can be judged where it is emulated, but not on it.
  [[noreturn]] static void refuse_device() {
    const std::optional<fs::path> plugin = cuda_plugin();
    if (!plugin)
      throw RunError(Outcome::nothing_proved,
                     "no provider for device cuda: this build has none (QCTS_CUDA=ON needs nvcc)");
    Registry registry;
    try {
      load_guarded(registry, *plugin);
    } catch (const std::exception& error) {
      throw RunError(Outcome::infrastructure, plugin->string() + ": " + error.what());
    }
    throw RunError(
        Outcome::nothing_proved,
        "provider " + registry.providers().front().name + " has " +
            std::to_string(registry.implementations().size()) +
            " kernels for device cuda, but device memory is not there yet; --provider cudaemu judges them, "
            "emulated");
  }

  static std::vector<std::string> all_kinds() {
    std::vector<std::string> names;
    for (int i = 0; i < kPlanKindCount; ++i) names.emplace_back(kind_name(static_cast<Kind>(i)));
    return names;
  }

  static void check_words(const std::string& what, const std::vector<std::string>& words,
                          const std::vector<std::string>& known) {
    for (const std::string& word : words)
      if (std::find(known.begin(), known.end(), word) == known.end())
        throw UsageError("no " + what + " '" + word + "'" + did_you_mean(word, known));
  }

  // Called if the fixtures do not load: is one of --fixtures at fault?
  static bool own_fixtures_load() {
    try {
      load_fixtures(fixtures_folder());
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void handshake() {
    try {
      fixtures_ = load_fixtures(folders_, options_.list ? Files::known : Files::checked);
    } catch (const std::exception& error) {
      throw RunError(own_fixtures_load() ? Outcome::usage : Outcome::infrastructure, error.what());
    }
    logs_ = options_.list ? scratch_.path() : options_.out / "logs";
    fs::create_directories(logs_);
    for (const fs::directory_entry& entry : fs::directory_iterator(logs_))
      if (entry.path().extension() == ".log") fs::remove(entry.path());  // remove the logs of an earlier run
    std::vector<std::string> known = {kFileProvider, "builtin", kReferenceProvider};
    for (const std::string& word : provider_words(options_)) {
      if (may_judge(word, options_.selection))
        slots_.push_back(slot_for(word, options_, folders_, logs_, scratch_.path()));
      else
        known.push_back(provider_of_word(word));
    }
    progress_.say("starting " + std::to_string(slots_.size()) +
                  (slots_.size() == 1 ? " provider" : " providers"));
    supervisor_.handshake(120);
    std::set<std::string> seen;
    std::map<fs::path, std::string> sha256;
    for (ProviderSlot& slot : slots_) {
      if (!slot.ready.error.empty()) {
        head_.infrastructure.push_back("provider " + slot.given + ": " + slot.ready.error);
        continue;
      }
      const std::string& name = slot.ready.provider;
      known.push_back(name);
      if (!seen.insert(name).second) throw UsageError("two providers have the name '" + name + "'");
      if (!is_asked(slot, options_)) continue;
      const std::string library = slot.ready.info["library"];
      const fs::path code = library.empty() ? program_path() : fs::path(library);
      if (!sha256.contains(code)) sha256[code] = options_.list ? "" : file_sha256(code);
      slot.ready.info["sha256"] = sha256[code];
      slot.options.context.is_peer = is_peer(slot, options_);
      if (slot.options.context.is_peer) slot.ready.info["peer"] = true;
      head_.providers.push_back(slot.ready.info);
      slot_of_[name] = static_cast<size_t>(&slot - slots_.data());
      offers_.add(slot.ready.offers);
    }
    if (!head_.infrastructure.empty()) return;
    for (const auto* words : {&options_.providers, &options_.peers})
      for (const std::string& name : *words)
        if (name.find('/') == name.npos && !name.ends_with(".so")) check_words("provider", {name}, known);
  }

  // Asks the builtin kernels, of which this process calls none.
  Candidates empty_candidates() {
    return Candidates(fixtures_, offers_, slot_of_, [this](std::span<const SupportQuestion> questions) {
      return supervisor_.ask_support(slot_of_.at("builtin"), questions, plan_.case_timeout_s);
    });
  }

  void choose() {
    const Selection& selection = options_.selection;
    if (!selection.variant.empty()) check_variant(selection.variant);
    candidates_.add(plan_, selection);
    candidates_.add_exact(named_plan(kFullPlan), selection);
    Selection unsharded = selection;
    unsharded.shard = unsharded.shards = 1;
    std::vector<Candidate> whole = select(unsharded, candidates_.all());
    std::vector<std::string> ids;
    for (const Candidate& candidate : whole) ids.push_back(candidate.name.full_id);
    head_.all_cases = ids.size();
    head_.cases_sha256 = ids_sha256(ids);
    candidates_.count_not_asked(unsharded, head_.providers);
    chosen_ = selection.shards == 1 ? std::move(whole) : select(selection, candidates_.all());
    head_.cases = chosen_.size();
    plan_latency();
    if (!chosen_.empty() || !head_.infrastructure.empty()) return;
    if (!ids.empty() && !options_.list) {
      open_record();  // merge needs every shard's record, even an empty one
      throw RunError(Outcome::nothing_proved, "no case was selected: shard " + std::to_string(head_.shard) +
                                                  "/" + std::to_string(head_.shards) + " of " +
                                                  std::to_string(ids.size()) + " cases is empty");
    }
    if (const Json* provider = with_cases_not_asked(head_.providers); ids.empty() && provider != nullptr)
      throw RunError(Outcome::nothing_proved,
                     "no case was selected: no recipe writes the inputs of those that match, and " +
                         (*provider)["name"].get<std::string>() +
                         " does not declare representable_inputs (kernels/abi/README.md)");
    std::string hint;
    Candidates everything = empty_candidates();
    everything.add(plan_, {});
    for (const std::string& filter : selection.filters) {
      Selection alone;
      alone.filters = {filter};
      if (select(alone, everything.all()).empty())
        hint += ": nothing matches '" + filter + "'" + meant(nearest_id(filter, everything.all()));
    }
    throw RunError(Outcome::nothing_proved, "no case was selected" + hint);
  }

  static std::string meant(const std::string& id) {
    return id.empty() ? "" : " (did you mean '" + id + "'?)";
  }

  // If --variant cannot run, that is an error; there is no fallback.
  void check_variant(const std::string& variant) const {
    std::vector<std::string> known;
    std::string refusal;
    bool runnable = false;
    for (const ProviderSlot& slot : slots_) {
      if (!slot.ready.error.empty()) continue;
      for (const Json& implementation : slot.ready.info["implementations"]) {
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
    if (options_.json) {
      Json names = Json::array();
      for (const Candidate& candidate : chosen_) names.push_back(candidate.name.full_id);
      Json list = {{"cases", names}};
      if (options_.list_inputs) {
        list["inputs"] = Json::array();
        for (const Candidate& candidate : chosen_)
          list["inputs"].push_back(candidates_.input_text(candidate));
      }
      print_json("list", list);
    } else {
      for (const Candidate& candidate : chosen_) {
        std::cout << candidate.name.full_id;
        if (options_.list_inputs) std::cout << "\t" << candidates_.input_text(candidate);
        std::cout << "\n";
      }
    }
    if (head_.infrastructure.empty()) return Outcome::conformant;
    throw RunError(Outcome::infrastructure, head_.infrastructure.front());
  }

  static bool is_latency(const Candidate& candidate) { return candidate.name.id.kind == Kind::latency; }

  // Opens a new run.jsonl, or that of an interrupted run.
  void open_record() {
    fs::create_directories(options_.out);
    const fs::path file = options_.out / "run.jsonl";
    if (const fs::path found = record_of(options_.out); options_.resume && has_run_head(found)) {
      const RunRecord before = resume_from(found);
      if (found != file) uncompress_record(options_.out);
      record_.append_to(file, before);
      remove_reports(options_.out);
    } else {
      report_ = report_from(head_, fixtures_);
      start_reports(options_.out);
      record_.create(file, head_);
    }
  }

  RunRecord resume_from(const fs::path& file) {
    RunRecord before;
    try {
      before = read_run_record(file);
    } catch (const std::runtime_error& error) {
      throw UsageError(std::string("cannot be resumed: ") + error.what());
    }
    std::string other = difference(before.head, head_);
    if (other.empty() && before.head.shard != head_.shard)
      other =
          "shard: " + std::to_string(before.head.shard) + " there, " + std::to_string(head_.shard) + " here";
    if (!other.empty())
      throw UsageError(file.string() + " is of a different run and cannot be resumed: " + other);
    report_ = report_from(before.head, fixtures_);
    std::set<std::string> known;
    for (const Candidate& candidate : chosen_) known.insert(candidate.name.full_id);
    for (Verdict& verdict : before.verdicts) {
      if (!known.contains(verdict.full_id()))
        throw UsageError(file.string() +
                         " has a verdict on a case that is not selected: " + verdict.full_id());
      judged_.insert(verdict.full_id());
      apply_waivers(report_.waivers, verdict);
      report_.verdicts.push_back(std::move(verdict));
    }
    return before;
  }

  void judge_all() {
    progress_.start(chosen_.size() - judged_.size());
    std::vector<Task> correctness, latency;
    for (const Candidate& candidate : chosen_) {
      if (judged_.contains(candidate.name.full_id)) continue;
      const bool timed = is_latency(candidate);
      (timed ? latency : correctness)
          .push_back(
              {candidate.slot, candidate.name,
               case_key(candidates_.case_of(candidate), candidate.name.variant).dump(),
               plan_.case_timeout_s +
                   (timed ? 10 * latency_budget_s_ * budget_share(candidates_.case_of(candidate)) : 0)});
    }
    const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
    run_tasks(correctness, options_.jobs != 0 ? options_.jobs : std::min(4u, cpus));
    if (!interruption_.happened() && !latency.empty()) run_latency(latency);
    if (interruption_.happened())
      throw RunError(Outcome::infrastructure, "interrupted after " + std::to_string(report_.verdicts.size()) +
                                                  " of " + std::to_string(chosen_.size()) + " cases; " +
                                                  (options_.out / "run.jsonl").string() +
                                                  " has their verdicts; continue with --resume");
  }

  // Divides the latency budget among the cases. Variants that cannot run get no share.
  void plan_latency() {
    size_t runnable = 0, timed = 0;
    double weights = 0;
    for (const Candidate& candidate : chosen_) {
      if (!is_latency(candidate)) continue;
      ++timed;
      if (!is_runnable(slots_[candidate.slot], candidate.name.variant)) continue;
      ++runnable;
      weights += budget_share(candidates_.case_of(candidate));
    }
    if (timed == 0) return;
    if (options_.gate_latency && options_.threads != 1)
      throw UsageError("--gate latency needs --threads 1; with more threads latency is only reported");
    latency_budget_s_ = std::clamp(plan_.latency_budget_s / std::max(1.0, weights), 0.05, 5.0);
    char note[200];
    std::snprintf(note, sizeof note,
                  "%zu cases share %g s, %.2f s each (prefill: %g times that); one worker at a time, %u "
                  "thread%s a call.",
                  runnable, plan_.latency_budget_s, latency_budget_s_, kPrefillBudgetShare, options_.threads,
                  options_.threads == 1 ? "" : "s");
    head_.latency_note = note;
  }

  // One worker at a time, so that nothing else runs during a measurement.
  void run_latency(const std::vector<Task>& tasks) {
    for (ProviderSlot& slot : slots_) {
      slot.idle.reset();
      slot.options.context.latency_budget_s = latency_budget_s_;
    }
    run_tasks(tasks, 1);
  }

  void run_tasks(const std::vector<Task>& tasks, unsigned jobs) {
    supervisor_.run(
        tasks, jobs,
        [&](Verdict verdict) {
          record_.add(verdict);
          apply_waivers(report_.waivers, verdict);
          progress_.saw(blocks_conformance(verdict, options_.gate_latency));
          report_.verdicts.push_back(std::move(verdict));
          return !interruption_.happened();
        },
        [&](const std::vector<std::string>& in_flight) {
          progress_.wait(in_flight);
          return !interruption_.happened();
        });
  }

  const RunRequest& options_;
  Progress progress_{Progress::on_standard_error(options_.progress)};
  Interruption interruption_;
  Plan plan_;
  std::vector<fs::path> folders_;
  Fixtures fixtures_;
  ScratchFolder scratch_;
  fs::path logs_;
  std::vector<ProviderSlot> slots_;
  Supervisor supervisor_{slots_};
  std::map<std::string, size_t> slot_of_;  // provider -> index in slots_
  OfferTable offers_;
  Candidates candidates_ = empty_candidates();
  std::vector<Candidate> chosen_;
  double latency_budget_s_ = 0;
  RunHead head_;
  RunRecordWriter record_;
  std::set<std::string> judged_;  // full ids with a verdict in an earlier run.jsonl
  RunReport report_;
};

}  // namespace

Outcome run(const RunRequest& options) { return Run(options).go(); }

}  // namespace qcts
