// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "reports/latency_trust.h"
#include "suites/judge/first_answer.h"
#include "suites/judge/latency/block.h"
#include "suites/judge/latency/latency_measures.h"

namespace qcts {
namespace {

constexpr size_t kBlockSamplesKept = 1000;

void fail_block(const std::string& reason, Verdict& verdict) {
  verdict.status = Status::fail;
  verdict.reason = reason;
}

void report_block(const BlockPlanes& planes, const BlockTimes& times, Verdict& verdict) {
  const auto add = [&](const char* name, const char* unit, double value) {
    verdict.measures.push_back({name, unit, value, {}, {}, {}});
  };
  const auto add_interval = [&](const char* name, const char* unit, const Interval& interval) {
    verdict.measures.push_back(measure_of(name, unit, interval));
  };
  add_interval("median_us", "us", times.before_us);
  add_interval("after_loading_us", "us", times.after_us);
  add_interval("dense_us", "us", times.dense_us);
  add_interval("speedup_before", "x", times.speedup_before);
  add_interval("speedup_after", "x", times.speedup_after);
  add_interval("before_over_after", "x", times.before_over_after);
  add_interval("ratio_to_itself", "x", times.itself);
  add(kAlarmMeasure, "x", alarms(times.itself) ? 1 : 0);
  add("canary_drift", "x", times.canary_drift);
  add("busy_threads", "x", times.busy_threads);
  add("dense_bytes", "bytes", static_cast<double>(times.dense_bytes));
  add("weight_bytes", "bytes", static_cast<double>(times.quantized_bytes));
  add("file_bytes", "bytes", static_cast<double>(planes.file_bytes));
  const std::vector<double>& us = times.samples_us;
  verdict.samples_us.assign(us.begin(),
                            us.begin() + static_cast<ptrdiff_t>(std::min(us.size(), kBlockSamplesKept)));
  verdict.speed = times.claims;
}

const Implementation* dense_of(const JudgeContext& context) {
  if (context.dense_peer == nullptr) return nullptr;
  const auto found = context.dense_peer->find(QCTS_OP_LINEAR, "dense");
  return found.empty() ? nullptr : found.front();
}

}  // namespace

void judge_block(const Case& c, const JudgeContext& context, Verdict& verdict) {
  const auto& question = std::get<BlockQuestion>(c.question);
  BlockSettings settings;
  settings.budget_s = context.latency_budget_s * budget_share(c);
  settings.shrink = question.shrink;
  settings.threads = context.threads;
  settings.seed = question.first_layer.seed + context.seed + 1;
  settings.stopwatch = context.stopwatch;
  settings.spent = context.spent;
  const int64_t m = question.first_layer.m;
  const Implementation* dense = dense_of(context);
  if (dense == nullptr) {
    verdict.status = Status::inconclusive;
    verdict.reason = "no provider here has a dense linear to compare with (LibTorch's plug-in has one)";
    return;
  }
  const BlockPlanes planes = save_and_load_block(settings, *c.scheme, nullptr, context.scratch);
  if (!planes.is_equal) return fail_block("the planes differ after saving and loading", verdict);
  const Support support = block_support(settings, *c.scheme, planes, *c.implementation, m);
  if (is_declined(support, verdict)) return;
  const BlockTimes times = time_block(settings, *c.scheme, planes, *c.implementation, *dense, m);
  report_block(planes, times, verdict);
  std::string notes;
  if (!std::isfinite(times.itself.low)) notes = "too few rounds in the budget for an interval";
  if (!times.doubt.empty())
    notes += (notes.empty() ? "" : "; ") + ("the measurement is not to be trusted: " + times.doubt);
  finish_latency(context, notes, Decision::met, !times.doubt.empty(), verdict);
}

}  // namespace qcts
