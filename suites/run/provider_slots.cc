// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/provider_slots.h"

#include <algorithm>
#include <optional>

#include "suites/base/paths.h"
#include "suites/cases/named.h"
#include "suites/providers/reference_provider.h"
#include "suites/run/device_choice.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

// Is it part of this program, not a shared library?
bool is_own(const std::string& provider) {
  return provider == kFileProvider || provider == "builtin" || provider == kReferenceProvider;
}

// Returns "builtin" for "numerics.linear/int8_row/INPUT/builtin_avx2"; "" if the text has a wildcard or names
// no implementation.
std::string named_provider(const std::string& filter) {
  const size_t slash = filter.rfind('/');
  const std::optional<CaseId> id = parse_case_id(filter);
  if (!id || id->input.find('/') == id->input.npos) return "";
  return filter.substr(slash + 1, filter.find('_', slash) - slash - 1);
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_file_kind(Kind kind) {
  return kind == Kind::round_trip || kind == Kind::assign || kind == Kind::size || kind == Kind::reject;
}

bool may_judge_kind(const std::string& provider, Kind kind) {
  return provider != kFileProvider ? kind != Kind::assign && kind != Kind::size : is_file_kind(kind);
}

bool may_match(const std::string& provider, const std::string& filter) {
  if (filter.find_first_of("*?") != filter.npos) return true;
  const std::optional<CaseId> id = parse_case_id(filter);
  if (!id) return true;
  if (!may_judge_kind(provider, id->kind)) return false;
  const std::string named = named_provider(filter);
  return named.empty() || provider.empty() || named == provider;
}

// Adds the libraries of the named providers, or the one that this build has for the device.
std::vector<std::string> with_device_providers(std::vector<std::string> words,
                                               const std::vector<std::string>& names) {
  for (const std::string& word : words)
    if (!is_shared_library(word))
      throw UsageError(word + " is a program: on a device, only shared libraries can be judged");
  if (names.empty() && words.empty())
    for (const fs::path& plugin : plugins_for_device()) words.push_back(plugin.string());
  std::vector<fs::path> plugins = discovered_plugins();
  if (const std::optional<fs::path> cuda = cuda_plugin()) plugins.push_back(*cuda);
  for (const std::string& name : names) {
    const auto found = std::ranges::find(plugins, fs::path("libqcts_" + name + ".so"),
                                         [](const fs::path& plugin) { return plugin.filename(); });
    if (found == plugins.end())
      throw UsageError("no provider '" + name + "' for a device: give a shared library");
    words.push_back(found->string());
  }
  return words;
}

}  // namespace

std::string provider_of_word(const std::string& word) {
  if (is_own(word)) return word;
  constexpr std::string_view kPrefix = "libqcts_";
  const std::string stem = fs::path(word).stem().string();
  const auto plugins = discovered_plugins();
  const bool ours = std::find(plugins.begin(), plugins.end(), fs::path(word)) != plugins.end();
  return ours && stem.starts_with(kPrefix) ? stem.substr(kPrefix.size()) : "";
}

bool is_shipped(const std::string& word) {
  if (is_own(word)) return true;
  std::vector<fs::path> shipped = discovered_plugins();
  if (const std::optional<fs::path> cuda = cuda_plugin()) shipped.push_back(*cuda);
  return std::ranges::find(shipped, fs::path(word)) != shipped.end();
}

bool may_judge(const std::string& word, const Selection& selection) {
  const std::string provider = provider_of_word(word);
  const auto judges = [&](const std::string& kind) {
    const std::optional<Kind> known = kind_from_name(kind);
    return !known || may_judge_kind(provider, *known);
  };
  if (!selection.kinds.empty() && std::none_of(selection.kinds.begin(), selection.kinds.end(), judges))
    return false;
  return selection.filters.empty() ||
         std::any_of(selection.filters.begin(), selection.filters.end(),
                     [&](const std::string& filter) { return may_match(provider, filter); });
}

bool is_asked(const ProviderSlot& slot, const RunRequest& request) {
  return request.providers.empty() || has(request.providers, slot.given) ||
         has(request.providers, slot.ready.provider) || is_peer(slot, request);
}

bool is_peer(const ProviderSlot& slot, const RunRequest& request) {
  if (has(request.peers, slot.given) || has(request.peers, slot.ready.provider)) return true;
  return request.providers.empty() && !request.device && !is_own(slot.given);
}

std::vector<std::string> provider_words(const RunRequest& request) {
  std::vector<std::string> words;
  std::vector<std::string> names;
  for (const auto* given_words : {&request.providers, &request.peers})
    for (const std::string& given : *given_words)
      (given.find('/') != given.npos || given.ends_with(".so") ? words : names).push_back(given);
  for (const std::string& peer : request.peers)
    if (has(request.providers, peer)) throw UsageError("'" + peer + "' is given as --provider and as --peer");
  for (const std::string& word : words) check_provider_path(word);
  if (request.device) return with_device_providers(std::move(words), names);
  const auto wanted = [&](const char* name) { return has(names, name); };
  const bool all = request.providers.empty();
  if (all || wanted(kFileProvider)) words.push_back(kFileProvider);
  if (all || wanted("builtin")) words.push_back("builtin");
  if (all || wanted(kReferenceProvider)) words.push_back(kReferenceProvider);
  const bool others =
      std::any_of(names.begin(), names.end(), [](const std::string& name) { return !is_own(name); });
  if (all || others)
    for (const fs::path& plugin : discovered_plugins()) words.push_back(plugin.string());
  return words;
}

ProviderSlot slot_for(const std::string& word, const RunRequest& request,
                      const std::vector<fs::path>& folders, const fs::path& logs, const fs::path& scratch) {
  ProviderSlot slot;
  slot.given = word;
  slot.logs = logs;
  const bool library = !is_own(word);
  slot.options.provider = library ? fs::absolute(word).string() : word;
  slot.options.fixtures = folders;
  slot.options.fixture_files = Files::known;
  slot.options.memory_limit_bytes = request.memory_limit_bytes;
  slot.options.isolation = request.isolation;
  slot.options.device = request.device;
  JudgeSettings& settings = slot.options.settings;
  settings.scratch = scratch;
  settings.targets = targets_folder();
  settings.program = program_word();
  settings.threads = request.threads;
  settings.gate_latency = request.gate_latency;
  settings.seed = request.seed;
  settings.is_seed_secret = !request.seed_sha256.empty();
  auto& rerun = settings.rerun_options;
  const auto add = [&](const std::string& text) { rerun += (rerun.empty() ? "" : " ") + text; };
  const fs::path plan = plan_path(request.plan);
  if (request.plan != kDefaultPlan)
    add("--plan " + shell_word(plan == request.plan ? path_word(plan) : request.plan));
  for (const fs::path& folder : request.fixtures) add("--fixtures " + shell_word(path_word(folder)));
  const auto plugins = discovered_plugins();
  if (library && std::find(plugins.begin(), plugins.end(), word) == plugins.end())
    add((has(request.peers, word) ? "--peer " : "--provider ") + shell_word(path_word(word)));
  if (!request.seed_file.empty())
    add("--seed-file " + shell_word(path_word(request.seed_file)));
  else if (request.seed != 0)
    add("--seed " + std::to_string(request.seed));
  if (request.threads != 1) add("--threads " + std::to_string(request.threads));
  if (request.gate_latency) add("--gate latency");
  if (request.device) add("--device " + device_word(request.device));
  if (request.isolation == Isolation::off) add("--isolation off");
  if (request.memory_limit_bytes != kDefaultMemoryLimitBytes)
    add("--memory-limit " + std::to_string(request.memory_limit_bytes >> 20));
  return slot;
}

bool is_runnable(const ProviderSlot& slot, const std::string& variant) {
  for (const nlohmann::ordered_json& implementation : slot.ready.info["implementations"])
    if (implementation["variant"] == variant) return implementation["runnable"].get<bool>();
  return true;
}

}  // namespace qcts
