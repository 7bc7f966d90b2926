// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/buffer_cause.h"

#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace qcts {
namespace {

// The options of a call, one at a time, in words.
std::vector<std::pair<std::string, RunOptions>> single_options(const RunOptions& options) {
  std::vector<std::pair<std::string, RunOptions>> all;
  const auto add = [&](const std::string& words, auto set) {
    RunOptions alone;
    set(alone);
    all.emplace_back(words, alone);
  };
  if (options.gap_elems > 0)
    add("gaps between rows", [&](RunOptions& o) { o.gap_elems = options.gap_elems; });
  for (const auto& [words, misaligned] : {std::pair("inputs off alignment", Misaligned::inputs),
                                          std::pair("outputs off alignment", Misaligned::outputs)})
    if (options.misalign_elems > 0 &&
        (options.misaligned == Misaligned::all || options.misaligned == misaligned))
      add(words, [&, only = misaligned](RunOptions& o) {
        o.misalign_elems = options.misalign_elems;
        o.misaligned = only;
      });
  if (options.planes_reversed)
    add("the planes in another order", [](RunOptions& o) { o.planes_reversed = true; });
  if (options.renamed) add("another scheme_name", [](RunOptions& o) { o.renamed = true; });
  if (options.planes_gone)
    add("the planes overwritten and the prepared weight moved", [](RunOptions& o) { o.planes_gone = true; });
  if (options.prepares_alone && options.threads > 1)
    add("prepare() on 1 thread and run() on " + std::to_string(options.threads), [&](RunOptions& o) {
      o.prepares_alone = true;
      o.threads = options.threads;
    });
  if (options.flush != Flush::none)
    add("buffers at the edge of accessible memory", [&](RunOptions& o) { o.flush = options.flush; });
  if (options.threads > 1)
    add(std::to_string(options.threads) + " threads", [&](RunOptions& o) { o.threads = options.threads; });
  return all;
}

}  // namespace

std::string cause_in_buffers(const qcts_kernel& kernel, const KernelInput& input, const RunOptions& options,
                             const std::function<bool(const KernelAnswer&)>& is_right) {
  // nullopt: the kernel declines these buffers
  const auto right_with = [&](const RunOptions& trial) -> std::optional<bool> {
    KernelRun run(kernel, input, trial);
    if (run.supports().status != QCTS_OK) return std::nullopt;
    return is_right(run.run(Poison::zeros));
  };
  try {
    const auto singles = single_options(options);
    if (singles.empty() || right_with({}) != true) return "";
    std::string wrong;
    for (const auto& [words, alone] : singles)
      if (right_with(alone) == false) wrong += (wrong.empty() ? "" : ", or ") + words;
    return wrong.empty() ? "" : "right in aligned and dense buffers with 1 thread, wrong only with " + wrong;
  } catch (const std::exception&) {  // the call itself failed: its answer says nothing about buffers
    return "";
  }
}

}  // namespace qcts
