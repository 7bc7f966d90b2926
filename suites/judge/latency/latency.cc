// SPDX-License-Identifier: BSD-3-Clause
// The latency kind. Verifies the candidate, counts the threads it keeps busy, times it in interleaved rounds
// with its peers, then verifies it again on the same and on other data. Outputs are drawn after each batch.
// The peers are the candidate itself (A/A), a memory stream and an arithmetic peak of this machine, the dense
// layer in the scheme's source dtype, and LibTorch's quantized operation and its product with a static scale
// of x if a provider has them. The order alternates between rounds. Reports medians of ratios within pairs of
// rounds, with bootstrap intervals. A case is cold (rotates over copies that do not fit the caches) or warm
// (one copy, touched before each call). A linear claims to be faster than the dense layer (speed_claims.h);
// the claim is required only of decoding, because prefill is bound by arithmetic, which quantized weights do
// not save.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "kernels/machine/machine.h"
#include "reports/latency_trust.h"
#include "suites/judge/first_answer.h"
#include "suites/judge/judge.h"
#include "suites/judge/latency/block.h"
#include "suites/judge/latency/latency_case.h"
#include "suites/judge/latency/latency_measures.h"
#include "suites/judge/latency/latency_peers.h"
#include "suites/timing/busy_threads.h"
#include "suites/timing/device_roof.h"
#include "suites/timing/roof.h"
#include "suites/timing/speed_claims.h"
#include "suites/timing/targets.h"

namespace qcts {
namespace {

constexpr size_t kSamplesKept = 1000;
// A program that times itself may spend this share of the judge's time on the conversation.
constexpr double kMinToldShare = 0.8;

std::vector<double> finite(const std::vector<double>& us) {
  std::vector<double> kept;
  std::copy_if(us.begin(), us.end(), std::back_inserter(kept), [](double v) { return std::isfinite(v); });
  return kept;
}

class LatencyJudge {
 public:
  LatencyJudge(const Case& c, const JudgeContext& context, Verdict& verdict)
      : case_(c),
        context_(context),
        verdict_(verdict),
        seed_(c.synthetic() ? c.synthetic()->seed + context.seed : 0),
        candidate_(c, seed_, context.threads, context.played) {}

  void run() {
    if (is_declined(candidate_.supports(), verdict_) || !has_stopwatch()) return;
    if (!make_candidate() || !stays_within_threads()) return;
    peers_ = latency_peers(case_, context_, seed_);
    if (!peers_.why_no_dense.empty()) note(peers_.why_no_dense);
    candidate_.check_batches();
    time();
    add("drawn_outputs", "outputs", static_cast<double>(candidate_.finish_batches()));
    if (!stayed_within_threads()) return;
    const std::string wrong = candidate_.verify();
    if (!wrong.empty()) return fail("correct before timing, wrong afterwards: " + wrong);
    if (!computes_on_other_data()) return;
    for (const auto& [name, value] : candidate_.timed().provider_measures().items())
      add(name, name.ends_with("_us") ? "us" : "x", value.get<double>());
    claim_speed();
    judge_targets();
  }

 private:
  void fail(std::string reason) {
    verdict_.status = Status::fail;
    verdict_.reason = std::move(reason);
  }

  void add(std::string name, std::string unit, double value) {
    verdict_.measures.push_back({std::move(name), std::move(unit), value, {}, {}, {}});
  }

  void note(const std::string& text) { notes_ += (notes_.empty() ? "" : "; ") + text; }

  bool is_on_device() const { return candidate_.timed().device() != nullptr; }

  // On a device, graphs of linear are timed, by the kernels of the clock library.
  bool has_stopwatch() {
    if (!is_on_device()) return true;
    const auto not_timed = [&](Status status, const std::string& why) {
      verdict_.status = status;
      verdict_.reason = "not timed: " + why;
      return false;
    };
    const uint32_t claims = case_.implementation->kernel->claims;
    if (case_.id.op != Op::linear)
      return not_timed(Status::not_supported, "on a device, only linear is timed");
    if ((claims & (QCTS_CLAIM_CAPTURABLE | QCTS_CLAIM_EMULATED)) == 0)
      return not_timed(Status::not_supported,
                       "graphs are timed on a device, and it does not claim QCTS_CLAIM_CAPTURABLE");
    if (context_.device_clock == nullptr)
      return not_timed(Status::inconclusive, "no clock library: " + context_.no_device_clock);
    return true;
  }

  bool make_candidate() {
    TimedKernel& timed = candidate_.timed();
    const size_t copies = copies_of(case_, timed);
    const std::string wrong = candidate_.make_and_verify(copies);
    if (!wrong.empty()) {
      fail("not timed: wrong answer: " + wrong);
      return false;
    }
    add("moved_bytes", "bytes", static_cast<double>(timed.moved_bytes()));
    add("working_set_bytes", "bytes", static_cast<double>(copies * timed.copied_bytes()));
    if (candidate_.operations() > 0) add("operations", "op", candidate_.operations());
    if (timed.prepared_bytes() != 0) {
      add("prepared_bytes", "bytes", static_cast<double>(timed.prepared_bytes()));
      add("prepare_us", "us", timed.prepare_us());
    }
    return true;
  }

  bool stays_within_threads() {
    TimedKernel& timed = candidate_.timed();
    if (timed.timed_by_provider() || is_on_device()) return true;
    BusyThreads busy;
    const std::string too_many = too_many_threads(timed, context_.threads, busy, context_.spent);
    add("busy_threads", "x", busy.calling);
    if (busy.resting > kBusyMargin) doubt_ = "threads of its process are busy between calls";
    if (!too_many.empty()) fail("not timed: " + too_many);
    resting_ = busy.resting;
    return too_many.empty();
  }

  // The rounds count threads too: a kernel may have behaved until then.
  bool stayed_within_threads() {
    const TimedKernel& timed = candidate_.timed();
    if (timed.timed_by_provider() || is_on_device() || context_.spent || timed.spent().wall_us <= 0)
      return true;
    const double busy = timed.spent().cpu_us / timed.spent().wall_us;
    if (busy - resting_ <= context_.threads + kBusyMargin) return true;
    char text[80];
    std::snprintf(text, sizeof text, "kept %.1f threads busy while it was timed (limit %u)", busy,
                  context_.threads);
    fail(text);
    return false;
  }

  bool computes_on_other_data() {
    if (candidate_.timed().timed_by_provider()) return true;
    const std::string wrong = candidate_.verify_on_other_data(seed_ + 11);
    if (!wrong.empty())
      fail("correct on the timed data, wrong on other data at the same addresses: " + wrong);
    return wrong.empty();
  }

  void time() {
    if (is_on_device()) return time_on_device();
    Roof roof(roof_request(case_, candidate_, context_.threads));
    Canary canary(context_.threads);
    const auto canary_us = [&] { return context_.stopwatch.canary_us(canary); };
    time_beside(roof, canary_us);
  }

  void time_on_device() {
    TimedKernel& timed = candidate_.timed();
    DeviceRoof roof(*context_.device_clock, roof_request(case_, candidate_, context_.threads),
                    timed.device()->properties().l2_bytes);
    timed.clock_check().set_empty(roof.measure_empty());
    add("road_us", "us", roof.launch_us());
    time_beside(roof, [&] { return roof.canary_us(); });
    add("launches", "x", timed.launches_a_call());
    add("clock_ratio", "x", timed.clock_check().largest_ratio());
    add("batches_timed_again", "x", static_cast<double>(timed.clock_check().timed_again()));
    if (const std::string doubt = timed.clock_check().doubt(); !doubt.empty()) doubt_ = doubt;
  }

  void time_beside(Roofs& roof, const std::function<double()>& canary_us) {
    const bool cold = !case_.is_warm() || case_.id.op != Op::linear;
    TimedKernel& candidate = candidate_.timed();
    std::vector<Series> series = {{.name = "candidate", .target = &candidate, .cold = cold}};
    // Starts half the copies away, so that neither finds in a cache what the other has just read.
    series.push_back(
        {.name = "again", .target = &candidate, .cold = cold, .next_copy = candidate.copies() / 2});
    if (peers_.dense) series.push_back({.name = "dense", .target = &peers_.dense->timed(), .cold = cold});
    if (peers_.torch) series.push_back({.name = "torch", .target = &peers_.torch->timed(), .cold = cold});
    if (peers_.given_scale)
      series.push_back({.name = "static", .target = &peers_.given_scale->timed(), .cold = cold});
    roof.add_series(series, cold);
    const double before_us = canary_us();
    const double share = is_on_device() ? 1 : budget_share(case_);
    context_.stopwatch.rounds(series, context_.latency_budget_s * share, seed_);
    const double after_us = canary_us();
    report(series, roof);
    if (before_us > 0) report_canary(after_us / before_us);
  }

  void report(const std::vector<Series>& series, const Roofs& roof) {
    const std::vector<double>& us = series[0].us;
    verdict_.samples_us.assign(us.begin(),
                               us.begin() + static_cast<ptrdiff_t>(std::min(us.size(), kSamplesKept)));
    const Interval median_us = bootstrap_median(us, block_length(us.size()), kLatencyConfidence, 1000, seed_);
    verdict_.measures.push_back(measure_of("median_us", "us", median_us));
    const double moved_bytes = static_cast<double>(candidate_.timed().moved_bytes());
    add("bandwidth", "GB/s", moved_bytes / median_us.value * 1e-3);
    report_clock(series);
    report_fastest(series);
    add_ratio("ratio_to_dense", find_series(series, "dense"), us);
    add_ratio("ratio_to_torch", find_series(series, "torch"), us);
    add_ratio("ratio_to_static", find_series(series, "static"), us);
    report_roof(series, roof);
    const Interval itself = abba_interval(find_series(series, "again")->us, us, kLatencyConfidence, seed_);
    verdict_.measures.push_back(measure_of("ratio_to_itself", "x", itself));
    add(kAlarmMeasure, "x", alarms(itself) ? 1 : 0);
    if (alarms(itself) && doubt_.empty()) doubt_ = "ratio_to_itself is not 1";
    if (!std::isfinite(itself.low)) few_ = true;
  }

  // Reports what the clock itself costs, and whether the machine gave its roofs the threads that they need.
  void report_clock(const std::vector<Series>& series) {
    const TimedKernel& timed = candidate_.timed();
    if (is_on_device()) return;
    if (timed.road_us() > 0) add("road_us", "us", timed.road_us());
    if (timed.told_share() > 0) {
      add("told_share", "x", timed.told_share());
      if (timed.told_share() < kMinToldShare && doubt_.empty())
        doubt_ = "its own clock ran slower than the judge's";
    }
    const double busy = Roof::busy_threads(series);
    add("roof_busy_threads", "x", busy);
    if (busy < context_.threads - kBusyMargin && doubt_.empty())
      doubt_ = "another program took the processor from the roofs";
  }

  // Reports the times by which two runs are compared: the kernel's fastest call, alone and over the roof's.
  void report_fastest(const std::vector<Series>& series) {
    std::vector<double> us = series[0].us;
    const std::vector<double>& again = find_series(series, "again")->us;
    us.insert(us.end(), again.begin(), again.end());
    const Interval kernel = fastest(us);
    verdict_.measures.push_back(measure_of("fastest_us", "us", kernel));
    verdict_.measures.push_back(
        measure_of("fastest_of_roof", "x", ratio_of_independent(kernel, Roof::fastest_us(series))));
  }

  void report_roof(const std::vector<Series>& series, const Roofs& roof) {
    const std::vector<double>& us = series[0].us;
    const Series &stream = *find_series(series, "probe"), *peak = find_series(series, "peak");
    const double moved_bytes = static_cast<double>(candidate_.timed().moved_bytes());
    add("stream", "GB/s", moved_bytes / median(finite(stream.us)) * 1e-3);
    add_ratio("share_of_probe", &stream, us);
    if (peak) {
      add("peak_" + roof.peak_name(), "GOP/s", roof.peak_rate(median(finite(peak->us))) * 1e-9);
      add("rate", "GOP/s", candidate_.operations() / median(finite(us)) * 1e-3);
      add_ratio("share_of_peak", peak, us);
    }
    const Interval share = abba_interval(Roof::roof_us(series), us, kLatencyConfidence, seed_);
    add_interval("share_of_roof", share);
    if (exceeds_roof(share) && doubt_.empty()) doubt_ = "faster than the machine's own roof";
  }

  void report_canary(double drift) {
    add("canary_drift", "x", drift);
    if (canary_changed(drift) && doubt_.empty()) doubt_ = "the canary's speed changed";
  }

  // Speedup over the peer: the peer's time divided by the candidate's.
  void add_ratio(const std::string& name, const Series* peer, const std::vector<double>& us) {
    if (peer != nullptr) add_interval(name, abba_interval(peer->us, us, kLatencyConfidence, seed_));
  }

  void add_interval(const std::string& name, const Interval& ratio) {
    ratios_.emplace_back(name, ratio);
    verdict_.measures.push_back(measure_of(name, "x", ratio));
  }

  void claim_speed() {
    for (const auto& [name, ratio] : ratios_) {
      if (name != "ratio_to_dense") continue;
      const WeightShape& weight = case_.synthetic()->weight;
      SpeedClaim claim = faster_claim(linear_subject(case_), dense_against(weight.dtype, peers_.dense_name),
                                      ratio, !doubt_.empty());
      claim.required = case_.synthetic()->m < kPrefillRows;
      verdict_.speed.push_back(std::move(claim));
    }
  }

  // Compares one ratio with its target; undecided if it was not measured.
  Decision decide(const LatencyTarget& target) const {
    for (const auto& [name, ratio] : ratios_)
      if (name == target.measure) return decide_at_least(ratio, target.at_least);
    return Decision::undecided;
  }

  void judge_targets() {
    const Device* const device = candidate_.timed().device();
    const LatencyTargets targets = load_latency_targets(
        context_.targets, device ? device_class(device->properties().name) : machine_class(machine()));
    Decision worst = Decision::met;
    size_t decided = 0;
    for (const LatencyTarget& target : targets.targets) {
      if (!applies(target, case_, verdict_.variant)) continue;
      ++decided;
      add("target_" + target.measure, "x", target.at_least);
      const Decision decision = decide(target);
      if (decision != Decision::met)
        note("target " + target.measure + " " + std::string(decision_name(decision)));
      if (decision == Decision::missed || worst == Decision::met) worst = decision;
    }
    if (decided == 0)
      note((targets.listed ? "no target for this case on machine class "
                           : "no target for this machine class ") +
           targets.machine_class);
    if (candidate_.timed().timed_by_provider()) note("timed inside the provider's own process");
    if (few_) note("too few rounds in the budget for an interval");
    if (!doubt_.empty()) note("the measurement is not to be trusted: " + doubt_);
    finish_latency(context_, notes_, decided == 0 ? Decision::undecided : worst, !doubt_.empty(), verdict_);
  }

  const Case& case_;
  const JudgeContext& context_;
  Verdict& verdict_;
  const uint64_t seed_;
  VerifiedKernel candidate_;
  LatencyPeers peers_;
  std::vector<std::pair<std::string, Interval>> ratios_;
  std::string notes_, doubt_;
  double resting_ = 0;  // busy threads between calls
  bool few_ = false;
};

}  // namespace

void judge_latency(const Case& c, const JudgeContext& context, Verdict& verdict) {
  if (c.implementation == nullptr) throw std::logic_error("a latency case without an implementation");
  if (c.is_block()) return judge_block(c, context, verdict);
  LatencyJudge(c, context, verdict).run();
}

}  // namespace qcts
