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
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/timing/baseline.h"

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
  return {{"scheme", row.scheme},
          {"m", row.m},
          {"linear", row.linear},
          {"quantize", row.quantize},
          {"dense", row.dense},
          {"dense_bytes", row.dense_bytes},
          {"quantized_bytes", row.quantized_bytes},
          {"file_bytes", row.file_bytes},
          {"dense_copies", row.dense_copies},
          {"quantized_copies", row.quantized_copies},
          {"reloaded_equal", row.reloaded_equal},
          {"dense_us", interval_json(row.dense_us)},
          {"before_us", interval_json(row.before_us)},
          {"after_us", interval_json(row.after_us)},
          {"speedup_before", interval_json(row.speedup_before)},
          {"speedup_after", interval_json(row.speedup_after)},
          {"before_over_after", interval_json(row.before_over_after)}};
}

void print_rows(const BlockRequest& request, const std::vector<BlockRow>& rows) {
  constexpr size_t kIndent = 14;
  Printout out(screen_of(STDOUT_FILENO));
  out.text("one decoder block of Llama-3.1-8B, linear layers only" +
           std::string(request.shrink == 1 ? "" : " (shrunk)") + "; " + std::to_string(request.threads) +
           (request.threads == 1 ? " thread" : " threads") + "; tokens a second through one block");
  for (const BlockRow& row : rows) {
    const auto tokens = [&](const Interval& us) {
      return fixed(static_cast<double>(row.m) / us.value * 1e6, 1);
    };
    const double smaller = static_cast<double>(row.dense_bytes) / static_cast<double>(row.quantized_bytes);
    out.blank();
    out.text(row.scheme + ", m = " + std::to_string(row.m) + " (" + row.linear + ", quantized by " +
                 row.quantize + "; dense bfloat16 by " + row.dense + ")",
             0, Ink::bold);
    out.item("  bytes", kIndent,
             std::to_string(row.dense_bytes) + " -> " + std::to_string(row.quantized_bytes) + ", " +
                 fixed(smaller, 2) + "x; file " + std::to_string(row.file_bytes) + "; copies " +
                 std::to_string(row.dense_copies) + " and " + std::to_string(row.quantized_copies));
    out.item("  tokens/s", kIndent,
             "dense " + tokens(row.dense_us) + ", before saving " + tokens(row.before_us) +
                 ", after reloading " + tokens(row.after_us));
    out.item("  speed-up", kIndent,
             "before saving " + ratio_text(row.speedup_before) + ", after reloading " +
                 ratio_text(row.speedup_after));
    out.item("  reloaded", kIndent,
             std::string("planes ") + (row.reloaded_equal ? "bitwise equal" : "DIFFER") +
                 "; before over after " + ratio_text(row.before_over_after));
  }
  std::cout << out.str();
}

struct BlockArguments {
  BlockRequest request;
  uint64_t set_mib = 1024;
  bool json = false;
  std::filesystem::path out;
};

void check_scheme(const std::string& word) {
  std::vector<std::string> known;
  for (const Scheme* scheme : schemes()) known.emplace_back(scheme->name());
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw RunError(Outcome::usage, "no scheme '" + word + "'" + did_you_mean(word, known));
}

Outcome block_words(BlockArguments& words) {
  for (const std::string& scheme : words.request.schemes) check_scheme(scheme);
  words.request.set_bytes = words.set_mib << 20;
  Registry registry;
  registry.add(builtin_provider());
  Baseline baseline;
  const Registry* dense = baseline.find(registry);
  if (!dense) throw std::runtime_error("no provider has a dense linear: the aten plug-in is needed");
  const ScratchFolder scratch;
  const auto rows = run_block(words.request, registry, *dense, scratch.path(),
                              [](const std::string& text) { std::cerr << text << "\n"; });
  BlockJson list = BlockJson::array();
  for (const BlockRow& row : rows) list.push_back(row_json(row));
  const BlockJson body = {{"label", "linear layers only"}, {"rows", list}};
  if (words.json)
    print_json("block", body);
  else
    print_rows(words.request, rows);
  if (!words.out.empty()) write_document(words.out, "block", body, words.json);
  const bool equal =
      std::all_of(rows.begin(), rows.end(), [](const BlockRow& row) { return row.reloaded_equal; });
  return equal ? Outcome::conformant : Outcome::failed;
}

}  // namespace

void add_block(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<BlockArguments>();
  BlockRequest& request = words->request;
  CLI::App* command = app.add_subcommand(
      "block",
      "the linear layers of a decoder block: dense, quantized, and quantized after saving and loading");
  command->add_option("--scheme", request.schemes, "schemes of `qcts schemes`")
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
  command->add_option("--budget", request.budget_s, "seconds for each scheme and m")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command->add_option("--shrink", request.shrink, "divide every dimension by this")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32}))
      ->capture_default_str();
  command->add_option("--threads", request.threads, "threads of each kernel call")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seed", request.seed, "seed of the weights")
      ->check(not_negative())
      ->capture_default_str();
  command->add_flag("--json", words->json, "print JSON");
  command->add_option("--out", words->out, "also write the JSON to this file");
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return block_words(*words); }); });
}

}  // namespace qcts::cli
