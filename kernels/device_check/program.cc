// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/device_check/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "kernels/device_check/compare.h"
#include "kernels/device_check/processes.h"

namespace qcts::device_check {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string out, plant;
  std::vector<std::string> filters;
  std::string earlier;            // a file that --out wrote
  std::set<std::string> skipped;  // checks that were equal in that file
  int64_t tiles = 1000000, max_cases = INT64_MAX;
  uint32_t processes = std::max(1u, std::thread::hardware_concurrency());
  uint64_t seed = 1;
  bool self = false, list = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// These say which model of sums and which checks a machine has. has_model() is false if the executor models
// none.
bool has_model(const Machine& machine) { return machine.capability / 10 == 8 || machine.capability == 90; }
simt::Architecture architecture_of(const Machine& machine) {
  return machine.capability == 90 ? simt::Architecture::hopper : simt::Architecture::ampere;
}
bool has_instructions(const Machine& machine, const Check& check) {
  return check.capability <= 80 || machine.capability == check.capability;
}
std::string capability_text(int32_t capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}
std::string cuda_text(int32_t version) {
  return version == 0 ? "none" : std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

int64_t cases_of(const Check& check, const std::vector<Check>& all, const Options& options) {
  if (check.group == Tiles::none) return std::min(check.cases, options.max_cases);
  int64_t shares = 0;
  for (const Check& each : all) shares += each.group == check.group ? each.share : 0;
  const int64_t tiles = (options.tiles * check.share + shares - 1) / shares;
  return std::min((tiles + check.tiles - 1) / check.tiles, options.max_cases);
}

struct Result {
  std::string failure, not_run;
  Comparison comparison;
  double executor_seconds = 0, device_seconds = 0;
  bool is_equal() const { return failure.empty() && comparison.different == 0; }
};

// Runs a check in rounds, each as large as the arena holds.
Result run_check(const Arena& arena, Server& server, const Check& check, uint32_t number, int64_t cases,
                 const Machine& machine, const Options& options) {
  Result result;
  const int64_t step = Arena::capacity(check);
  for (int64_t first = 0; first < cases && result.failure.empty(); first += step) {
    const int64_t count = std::min(step, cases - first);
    const auto start = std::chrono::steady_clock::now();
    result.failure = execute_in_processes(arena, check, {options.seed, number, first, count},
                                          architecture_of(machine), options.processes);
    const auto executed = std::chrono::steady_clock::now();
    result.executor_seconds += std::chrono::duration<double>(executed - start).count();
    if (!result.failure.empty()) break;
    result.failure = server.run(number, count);
    result.device_seconds += seconds_since(executed);
    if (!result.failure.empty()) break;
    const Arena::Round round = arena.round(check, count);
    auto* device = reinterpret_cast<uint32_t*>(round.device_out);
    if (check.name == options.plant && first == 0) device[0] ^= 1;
    compare(check, first, count, reinterpret_cast<const uint32_t*>(round.in),
            reinterpret_cast<const uint32_t*>(round.executor_out), device, &result.comparison);
  }
  return result;
}

void print(const Check& check, const Result& result, const char* noun) {
  const Comparison& c = result.comparison;
  std::printf("%-46s ", check.name.c_str());
  if (!result.not_run.empty()) {
    std::printf("not run: %s\n", result.not_run.c_str());
    return;
  }
  std::printf("%8lld cases  ", static_cast<long long>(c.cases));
  if (!result.failure.empty())
    std::printf("FAILED: %s\n", result.failure.c_str());
  else if (c.different == 0)
    std::printf("equal");
  else
    std::printf("DIFFERENT: %lld, %lld of them only in the bits of NaN", static_cast<long long>(c.different),
                static_cast<long long>(c.nan_only));
  if (result.failure.empty())
    std::printf("%s  %.1f + %.1f s\n", c.nan_bits > 0 ? " (NaN with other bits counts as equal)" : "",
                result.executor_seconds, result.device_seconds);
  if (!c.examples.empty()) {
    // Prefers an example that is not NaN.
    const auto wrong =
        std::find_if(c.examples.begin(), c.examples.end(), [](const Difference& d) { return !d.nan_only; });
    const Difference& d = wrong == c.examples.end() ? c.examples.front() : *wrong;
    std::printf("    case %lld, word %u: executor %08x, %s %08x; %s\n", static_cast<long long>(d.index),
                d.word, d.executor, noun, d.device, d.operands.c_str());
  }
  std::fflush(stdout);
}

std::string hex(uint32_t word) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", word);
  return text;
}

Json json_of(const Check& check, const Result& result) {
  const Comparison& c = result.comparison;
  Json json = {{"name", check.name},
               {"result", !result.not_run.empty()   ? "not_run"
                          : !result.failure.empty() ? "failed"
                          : c.different > 0         ? "different"
                                                    : "equal"}};
  if (!result.not_run.empty()) json["why"] = result.not_run;
  if (!result.failure.empty()) json["why"] = result.failure;
  json["cases"] = c.cases;
  if (check.tiles > 0) json["tiles"] = c.cases * check.tiles;
  json["words"] = c.words;
  json["different_cases"] = c.different;
  json["different_words"] = c.different_words;
  json["different_in_nan_bits_only"] = c.nan_only;
  json["nan_bits_ignored"] = c.nan_bits;
  json["executor_seconds"] = result.executor_seconds;
  json["device_seconds"] = result.device_seconds;
  json["examples"] = Json::array();
  for (const Difference& d : c.examples)
    json["examples"].push_back({{"case", d.index},
                                {"word", d.word},
                                {"executor", hex(d.executor)},
                                {"device", hex(d.device)},
                                {"operands", d.operands}});
  return json;
}

std::set<std::string> equal_checks_of(const std::string& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  std::set<std::string> names;
  try {
    for (const Json& check : json.at("checks"))
      if (check.at("result") == "equal") names.insert(check.at("name").get<std::string>());
  } catch (const Json::exception&) {
    throw CLI::ValidationError("--except-equal", path + " is not a file that --out wrote");
  }
  return names;
}

bool is_wanted(const Check& check, const Options& options) {
  if (options.skipped.contains(check.name)) return false;
  return options.filters.empty() || std::ranges::any_of(options.filters, [&](const std::string& filter) {
           return check.name.find(filter) != std::string::npos;
         });
}

// Runs the checks and returns the exit code.
int run_checks(const std::vector<Check>& checks, const Options& options, const Backend& backend) {
  const Arena arena;
  Server server(arena, backend);
  Machine machine = {};
  if (const std::string why = server.open(&machine); !why.empty()) {
    std::fprintf(stderr, "qcts_device_check: no %s: %s\n", backend.noun, why.c_str());
    return kNoDevice;
  }
  if (!has_model(machine)) {
    std::fprintf(
        stderr,
        "qcts_device_check: no GPU that can be compared: the executor models compute capability 8.x and "
        "9.0, and %s has %s\n",
        machine.name, capability_text(machine.capability).c_str());
    return kNoDevice;
  }
  const char* sums = architecture_of(machine) == simt::Architecture::hopper ? "Hopper" : "Ampere";
  std::printf(
      "%s (compute capability %s, CUDA driver %s, runtime %s) against the executor (sums of %s, %u "
      "processes, seed %llu)\n",
      machine.name, capability_text(machine.capability).c_str(), cuda_text(machine.driver).c_str(),
      cuda_text(machine.runtime).c_str(), sums, options.processes,
      static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  Json json = {{"machine", machine.name},
               {"capability", capability_text(machine.capability)},
               {"cuda_driver", cuda_text(machine.driver)},
               {"cuda_runtime", cuda_text(machine.runtime)},
               {"sums", sums},
               {"seed", options.seed},
               {"checks", Json::array()}};
  int64_t tiles[3] = {};
  int n_equal = 0, n_wrong = 0, n_not_run = 0;
  for (uint32_t number = 0; number < checks.size(); ++number) {
    const Check& check = checks[number];
    if (!is_wanted(check, options)) continue;
    Result result;
    if (has_instructions(machine, check))
      result = run_check(arena, server, check, number, cases_of(check, checks, options), machine, options);
    else
      result.not_run = "needs compute capability " + capability_text(check.capability);
    ++(!result.not_run.empty() ? n_not_run : result.is_equal() ? n_equal : n_wrong);
    tiles[static_cast<int>(check.group)] += result.comparison.cases * check.tiles;
    print(check, result, backend.noun);
    json["checks"].push_back(json_of(check, result));
  }
  std::printf(
      "%d checks equal, %d different or failed, %d not run; %lld tiles of mma.sync, %lld of wgmma; %.0f s\n",
      n_equal, n_wrong, n_not_run, static_cast<long long>(tiles[1]), static_cast<long long>(tiles[2]),
      seconds_since(start));
  json["seconds"] = seconds_since(start);
  if (!options.out.empty()) {
    std::ofstream file(options.out);
    file << json.dump(1) << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + options.out);
  }
  return n_wrong > 0 ? kDifferent : kEqual;
}

void describe(CLI::App& app, Options& options) {
  app.add_option("--out", options.out, "write the results and examples of differences as JSON");
  app.add_option("--filter", options.filters, "only checks whose name contains one of these");
  app.add_option("--except-equal", options.earlier,
                 "leave out the checks that are equal in this file, which --out wrote");
  app.add_option("--tiles", options.tiles, "tiles of mma.sync, and as many of wgmma")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--max-cases", options.max_cases, "no more cases of any check")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--processes", options.processes, "processes of the executor")->check(CLI::Range(1, 1024));
  app.add_option("--seed", options.seed, "of the inputs");
  app.add_option("--plant", options.plant, "flip a bit of this check's output, as a test of the comparison");
  app.add_flag("--self", options.self, "compare the executor with itself, as a test of this program");
  app.add_flag("--list", options.list, "list the checks and their cases");
}

}  // namespace

int program(int argc, char** argv, const Backend& device) {
  Options options;
  CLI::App app(
      "Compares the instructions that kernels use (kernels/cuda/*.h) on a GPU with the executor, bit for "
      "bit.\n"
      "Exit code: 0 equal, 1 different, 2 wrong usage or a failure of this program, 3 no GPU.");
  describe(app, options);
  try {
    app.parse(argc, argv);
    const std::vector<Check> checks = on_executor::checks();
    const auto named = [&](const Check& check) { return check.name == options.plant; };
    if (!options.earlier.empty()) options.skipped = equal_checks_of(options.earlier);
    if (std::ranges::none_of(checks, [&](const Check& check) { return is_wanted(check, options); }))
      throw CLI::ValidationError(
          "no check", options.earlier.empty() ? "--filter: no check has such a name; --list shows them"
                                              : "all that --filter chooses are equal in " + options.earlier);
    if (!options.plant.empty() && std::ranges::none_of(checks, named))
      throw CLI::ValidationError("--plant", "no check has this name; --list lists them");
    if (!options.list) return run_checks(checks, options, options.self ? kExecutorAgain : device);
    for (const Check& check : checks)
      if (is_wanted(check, options))
        std::printf("%-46s %8lld cases\n", check.name.c_str(),
                    static_cast<long long>(cases_of(check, checks, options)));
    return kEqual;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kEqual : kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qcts_device_check: %s\n", error.what());
    return kUsage;
  }
}

}  // namespace qcts::device_check
