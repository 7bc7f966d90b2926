// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/run_setup.h"

#include <algorithm>
#include <optional>
#include <set>

#include "suites/base/did_you_mean.h"
#include "suites/cases/conformance/profiles.h"
#include "suites/cases/named.h"
#include "suites/cases/unknown_names.h"
#include "suites/confirmed/ledger.h"
#include "suites/providers/reference_provider.h"
#include "suites/run/device_choice.h"
#include "suites/run/provider_slots.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

constexpr double kStartTimeoutS = 120;

std::vector<std::string> all_kinds() {
  std::vector<std::string> names;
  for (int i = 0; i < kPlanKindCount; ++i) names.emplace_back(kind_name(static_cast<Kind>(i)));
  return names;
}

void check_request(const RunRequest& request) {
  check_words("kind", request.selection.kinds, all_kinds());
  std::vector<std::string> scheme_names = {"any", "mixed", "plain"};
  for (const Scheme* scheme : schemes()) scheme_names.emplace_back(scheme->name());
  std::vector<std::string> words = request.selection.schemes;
  std::erase_if(words, [](const std::string& word) { return find_scheme(word) != nullptr; });
  check_words("scheme", words, scheme_names);
}

std::vector<fs::path> fixture_folders(const RunRequest& request) {
  std::vector<fs::path> folders = {fixtures_folder()};
  for (const fs::path& folder : request.fixtures) {
    if (!fs::exists(folder / "manifest.json")) throw UsageError(folder.string() + " has no manifest.json");
    folders.push_back(fs::absolute(folder));
  }
  return folders;
}

// Called if the fixtures do not load: is one of --fixtures at fault?
bool own_fixtures_load() {
  try {
    load_fixtures(fixtures_folder());
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Fixtures read_fixtures(const std::vector<fs::path>& folders, Files files) {
  try {
    return load_fixtures(folders, files);
  } catch (const std::exception& error) {
    throw RunError(own_fixtures_load() ? Outcome::usage : Outcome::infrastructure, error.what());
  }
}

// Returns the folder for the logs of the workers, without those of an earlier run.
fs::path empty_logs(const RunRequest& request, const fs::path& scratch) {
  const fs::path logs = request.list ? scratch : request.out / "logs";
  fs::create_directories(logs);
  for (const fs::directory_entry& entry : fs::directory_iterator(logs))
    if (entry.path().extension() == ".log") fs::remove(entry.path());
  return logs;
}

// Adds unknown policies of a kernel to the provider's entry. Throws UsageError for a kernel that no case of
// any plan can ask, unless it is one of qcts' own, of which a family may have more than is judged.
void note_unknown_names(ProviderSlot& slot) {
  const UnknownNames unknown = unknown_names(slot.ready.offers);
  const bool is_own = slot.ready.info["library"].get<std::string>().empty();
  if (!unknown.never_asked.empty() && !is_own) {
    std::string text = "provider " + slot.ready.provider + " offers what no case of any plan can ask";
    for (const std::string& line : unknown.never_asked) text += "; " + line;
    for (const std::string& line : unknown.lines)
      if (std::ranges::find(unknown.never_asked, line) == unknown.never_asked.end()) text += "; " + line;
    throw UsageError(text);
  }
  if (!unknown.lines.empty()) slot.ready.info["unknown"] = unknown.lines;
}

// Adds to every kernel of a GPU what the ledgers say about it.
void add_confirmations(nlohmann::ordered_json& provider) {
  if (provider["name"] != "cuda" && provider["name"] != "cudaemu") return;
  const fs::path root = repository_root();
  const std::vector<Ledger> ledgers = read_ledgers(root / "suites" / "confirmed");
  std::map<std::pair<Op, std::string>, std::string> sources;  // with the variant
  for (nlohmann::ordered_json& row : provider["implementations"]) {
    LedgerRow now;
    const std::optional<Op> op = find_op(row["op"].get<std::string>());
    if (!op) continue;
    now.op = *op;
    now.variant = row["variant"];
    now.scheme = row["scheme"].get<std::string>();
    now.scheme.resize(std::min(now.scheme.size(), now.scheme.find(':')));
    const auto [known, is_new] = sources.try_emplace({now.op, now.variant});
    if (is_new) known->second = row_sources_sha256(root, now.op, now.variant);
    now.sources_sha256 = known->second;
    row["confirmed"] = confirmation_of(ledgers, now, provider["sha256"]);
  }
}

// Notes the options that the provider's profiles set. Throws UsageError if it promises a profile that nobody
// knows, or two that contradict each other.
void note_options(ProviderSlot& slot) try {
  const PlayedProfiles played(
      profiles_named(slot.ready.info.value("profile", ""), load_profiles(profiles_file())));
  if (!played.options().empty()) slot.ready.info["options"] = played.options();
} catch (const std::runtime_error& error) {
  throw UsageError("provider " + slot.ready.provider +
                   " promises what cannot be judged here: " + error.what());
}

// Adds the provider of a slot that has started to the run.
void admit(ProviderSlot& slot, const RunRequest& request, std::map<fs::path, std::string>& sha256,
           RunSetup& setup) {
  const std::string library = slot.ready.info["library"];
  const fs::path code = library.empty() ? program_path() : fs::path(library);
  if (!sha256.contains(code)) sha256[code] = request.list ? "" : file_sha256(code);
  slot.ready.info["sha256"] = sha256[code];
  add_confirmations(slot.ready.info);
  slot.options.settings.is_peer = is_peer(slot, request);
  if (slot.options.settings.is_peer) slot.ready.info["peer"] = true;
  note_unknown_names(slot);
  if (slot.ready.info.contains("profile")) note_options(slot);
  setup.head.providers.push_back(slot.ready.info);
  setup.slot_of[slot.ready.provider] = static_cast<size_t>(&slot - setup.slots.data());
  setup.offers.add(slot.ready.offers);
}

// Starts the providers and adds those that are asked. Returns the names of all of them.
std::vector<std::string> start_providers(const RunRequest& request, Progress& progress, RunSetup& setup) {
  std::vector<std::string> known = {kFileProvider, "builtin", kReferenceProvider};
  const fs::path logs = empty_logs(request, setup.scratch.path());
  for (const std::string& word : provider_words(request)) {
    if (!may_judge(word, request.selection)) {
      known.push_back(provider_of_word(word));
      continue;
    }
    setup.slots.push_back(slot_for(word, request, setup.folders, logs, setup.scratch.path()));
    setup.slots.back().keep_going = request.keep_going;
    setup.slots.back().options.settings.costly_share = setup.plan.costly_share;
  }
  progress.say("starting " + std::to_string(setup.slots.size()) +
               (setup.slots.size() == 1 ? " provider" : " providers"));
  start_workers(setup.slots, kStartTimeoutS);
  std::set<std::string> seen;
  std::map<fs::path, std::string> sha256;
  for (ProviderSlot& slot : setup.slots) {
    if (!slot.ready.error.empty()) {
      setup.head.infrastructure.push_back("provider " + slot.given + ": " + slot.ready.error);
      continue;
    }
    const std::string& name = slot.ready.provider;
    known.push_back(name);
    if (!seen.insert(name).second) throw UsageError("two providers have the name '" + name + "'");
    if (is_asked(slot, request)) admit(slot, request, sha256, setup);
  }
  return known;
}

}  // namespace

void check_words(const std::string& what, const std::vector<std::string>& words,
                 const std::vector<std::string>& known) {
  for (const std::string& word : words)
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw UsageError("no " + what + " '" + word + "'" + did_you_mean(word, known));
}

std::unique_ptr<RunSetup> set_up(const RunRequest& request, Progress& progress) {
  auto setup = std::make_unique<RunSetup>();
  setup->plan = named_plan(request.plan);
  if (request.case_timeout_s) setup->plan.case_timeout_s = *request.case_timeout_s;
  setup->folders = fixture_folders(request);
  check_request(request);
  setup->head = head_of(request, setup->plan, setup->folders);
  if (request.device) setup->head.environment["device"] = device_json(*request.device);
  progress.say("reading the fixtures");
  setup->fixtures = read_fixtures(setup->folders, request.list ? Files::known : Files::checked);
  const std::vector<std::string> known = start_providers(request, progress, *setup);
  if (!setup->head.infrastructure.empty()) return setup;
  for (const auto* words : {&request.providers, &request.peers})
    for (const std::string& name : *words)
      if (name.find('/') == name.npos && !name.ends_with(".so")) check_words("provider", {name}, known);
  return setup;
}

}  // namespace qcts
