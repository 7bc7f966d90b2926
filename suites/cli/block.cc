// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "reference/schemes/scheme.h"
#include "reports/report.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/base/terminal.h"
#include "suites/bench/block.h"
#include "suites/cases/named.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/host/probes.h"
#include "suites/providers/host_registry.h"
#include "suites/timing/peers.h"

namespace qcts::cli {
namespace {

using BlockJson = nlohmann::ordered_json;

BlockJson interval_json(const Interval& interval) {
  BlockJson json = {{"value", interval.value}, {"samples", interval.samples}};
  if (std::isfinite(interval.low) && std::isfinite(interval.high)) {
    json["low"] = interval.low;
    json["high"] = interval.high;
  }
  return json;
}

std::string ratio_text(const Interval& ratio) {
  char text[64];
  if (std::isfinite(ratio.low) && std::isfinite(ratio.high))
    std::snprintf(text, sizeof text, "%.2f [%.2f, %.2f]", ratio.value, ratio.low, ratio.high);
  else
    std::snprintf(text, sizeof text, "%.2f [too few rounds]", ratio.value);
  return text;
}

BlockJson row_json(const BlockRow& row) {
  const BlockTimes& times = row.times;
  BlockJson claims = BlockJson::array();
  for (const SpeedClaim& claim : times.claims) claims.push_back(to_json(claim));
  return {{"scheme", row.scheme},
          {"m", times.m},
          {"status", status_name(row.status)},
          {"linear", times.linear},
          {"quantize", row.quantized_by},
          {"dense", times.dense},
          {"dense_bytes", times.dense_bytes},
          {"quantized_bytes", times.quantized_bytes},
          {"file_bytes", row.file_bytes},
          {"dense_copies", times.dense_copies},
          {"quantized_copies", times.quantized_copies},
          {"reloaded_equal", row.reloaded_equal},
          {"dense_us", interval_json(times.dense_us)},
          {"before_us", interval_json(times.before_us)},
          {"after_us", interval_json(times.after_us)},
          {"speedup_before", interval_json(times.speedup_before)},
          {"speedup_after", interval_json(times.speedup_after)},
          {"before_over_after", interval_json(times.before_over_after)},
          {"ratio_to_itself", interval_json(times.itself)},
          {"canary_drift", times.canary_drift},
          {"doubt", times.doubt},
          {"speed", claims}};
}

void print_row(const BlockRow& row, Printout& out) {
  constexpr size_t kIndent = 16;
  const BlockTimes& times = row.times;
  const auto tokens = [&](const Interval& us) {
    return fixed(static_cast<double>(times.m) / us.value * 1e6, 1);
  };
  const double smaller = static_cast<double>(times.dense_bytes) / static_cast<double>(times.quantized_bytes);
  out.blank();
  out.text(row.scheme + ", m = " + std::to_string(times.m) + " (" + times.linear + ", quantized by " +
               row.quantized_by + "; dense bfloat16 by " + times.dense + ")",
           0, Ink::bold);
  out.item("  bytes", kIndent,
           std::to_string(times.dense_bytes) + " -> " + std::to_string(times.quantized_bytes) + ", " +
               fixed(smaller, 2) + "x; file " + std::to_string(row.file_bytes) + "; copies " +
               std::to_string(times.dense_copies) + " and " + std::to_string(times.quantized_copies));
  out.item("  tokens/s", kIndent,
           "dense " + tokens(times.dense_us) + ", before saving " + tokens(times.before_us) +
               ", after loading " + tokens(times.after_us));
  out.item("  loaded", kIndent,
           std::string("planes ") + (row.reloaded_equal ? "bitwise equal" : "DIFFER") + "; against itself " +
               ratio_text(times.itself) + (times.doubt.empty() ? "" : "; not to be trusted: " + times.doubt));
  for (const SpeedClaim& claim : times.claims)
    out.item("  " + std::string(status_name(claim.status)), kIndent,
             claim_text(claim) + (claim.required ? "" : " (not required)"));
}

void print_rows(const BlockRequest& request, const std::vector<BlockRow>& rows) {
  const BlockSettings& settings = request.settings;
  Printout out(screen_of(STDOUT_FILENO));
  out.text("one decoder block of Llama-3.1-8B, linear layers only" +
           std::string(settings.shrink == 1 ? "" : " (shrunk)") + "; " + std::to_string(settings.threads) +
           (settings.threads == 1 ? " thread" : " threads") + "; tokens per second through one block");
  for (const BlockRow& row : rows) print_row(row, out);
  if (!request.gate_latency) {
    out.blank();
    out.text("speed does not gate (--gate latency)");
  }
  std::cout << out.str();
}

struct BlockArguments {
  BlockRequest request;
  std::string provider = "builtin", gate;
  uint64_t set_mib = 1024;
  bool json = false;
  std::filesystem::path out;
};

void check_scheme(const std::string& word) {
  std::vector<std::string> known;
  for (const Scheme* scheme : schemes()) known.emplace_back(scheme->name());
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw UsageError("no scheme '" + word + "'" + did_you_mean(word, known));
  if (!has_block_file(*find_scheme(word)))
    throw UsageError("no torchao class holds " + word + ", so a block cannot be saved");
}

// Starts a host with builtin or a shared library. A provider that is a program times one layer at a time, in
// its own process.
void add_provider(const std::string& name, HostRegistry& hosts) {
  const std::string located = located_provider(name);
  if (located != "builtin" && !is_shared_library(located))
    throw UsageError("'" + name + "' is not a shared library, and a program times one layer at a time");
  if (const std::string change = hosts.add(located).load_fault(); !change.empty())
    throw Failure("loading " + name + " changed the floating-point control state of its host: " + change);
}

std::vector<BlockRow> timed_rows(const BlockRequest& request, const Registry& registry, const Registry& dense,
                                 const std::filesystem::path& folder) {
  try {
    return run_block(request, registry, dense, folder,
                     [](const std::string& text) { std::cerr << text << "\n"; });
  } catch (const ProviderFault& fault) {
    throw Failure(fault.what());
  } catch (const HostFailure& failure) {
    throw Failure(failure.reason);
  }
}

Outcome block_words(BlockArguments& words) {
  for (const std::string& scheme : words.request.schemes) check_scheme(scheme);
  words.request.settings.set_bytes = words.set_mib << 20;
  words.request.gate_latency = words.gate == "latency";
  if (words.request.gate_latency && words.request.settings.threads != 1)
    throw UsageError("--gate latency needs --threads 1; with more threads latency is only reported");
  const ScratchFolder scratch;
  const CageRequest cage{true, scratch.path(), {}};
  hide_from_others();
  HostRegistry hosts(cage, 0);
  add_provider(words.provider, hosts);
  const Registry& registry = hosts.registry();
  Peers peers(cage, 0);
  const Registry* dense = peers.dense(registry);
  if (!dense)
    throw RunError(Outcome::nothing_proved, "no provider has a dense linear: the aten plug-in is needed");
  const auto rows = timed_rows(words.request, registry, *dense, scratch.path());
  BlockJson list = BlockJson::array();
  for (const BlockRow& row : rows) list.push_back(row_json(row));
  const BlockJson body = {{"label", "linear layers only"},
                          {"gate_latency", words.request.gate_latency},
                          {"shrink", words.request.settings.shrink},
                          {"rows", list}};
  if (words.json)
    print_json("block", body);
  else
    print_rows(words.request, rows);
  if (!words.out.empty()) write_document(words.out, "block", body, words.json);
  return block_outcome(rows);
}

}  // namespace

void add_block(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<BlockArguments>();
  BlockRequest& request = words->request;
  CLI::App* command = app.add_subcommand(
      "block",
      "the linear layers of a decoder block: dense, quantized, and quantized after saving and loading");
  command->add_option("--scheme", request.schemes, "schemes in `qcts schemes`")
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--m", request.m, "rows of x")
      ->allow_extra_args(false)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  command
      ->add_option("--set-mib", words->set_mib,
                   "MiB of rotating copies per dtype, so that weights come from memory")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--budget", request.settings.budget_s, "seconds per scheme and m")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command->add_option("--shrink", request.settings.shrink, "divide every dimension by this")
      ->check(CLI::IsMember(std::vector<int64_t>(std::begin(kBlockShrinks), std::end(kBlockShrinks))))
      ->capture_default_str();
  command->add_option("--threads", request.settings.threads, "threads of each kernel call")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seed", request.settings.seed, "seed of the weights")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--provider", words->provider, "builtin, or the path of a shared library")
      ->capture_default_str();
  command
      ->add_option("--gate", words->gate,
                   "fail if decoding is slower than dense or loading makes it slower; exit code 4 if that is "
                   "not known")
      ->check(CLI::IsMember({"latency"}));
  command->add_flag("--json", words->json, "print JSON");
  command->add_option("--out", words->out, "also write the JSON to this file");
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return block_words(*words); }); });
}

}  // namespace qcts::cli
