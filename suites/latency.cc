// The latency kind. A candidate is verified, then timed in rounds with its peers in this one process: itself
// again (A/A), a probe that moves the same bytes, and the dense layer of the same dtype where a provider of
// one is loaded. Rounds run forward and backward in turn. What is reported are medians of the ratios within a
// round, with bootstrap intervals; cold (copies of the weight that do not fit the caches take turns) and warm
// (one copy) apart.
#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/machine.h"
#include "suites/judge.h"
#include "suites/latency_case.h"
#include "suites/rounds.h"
#include "suites/stats.h"
#include "suites/targets.h"

namespace qcts {
namespace {

constexpr double kLatencyConfidence = 0.95;
constexpr double kAlarm = 0.02;        // an A/A interval that lies further from 1 is an alarm
constexpr size_t kSamplesKept = 1000;
constexpr const char* kDense = "dense";

const Lane* find(const std::vector<Lane>& lanes, std::string_view name) {
  for (const Lane& lane : lanes)
    if (lane.name == name) return &lane;
  return nullptr;
}

Measure measure_of(std::string name, std::string unit, const Interval& interval) {
  Measure measure{std::move(name), std::move(unit), interval.value, {}, {}, interval.samples};
  if (std::isfinite(interval.low) && std::isfinite(interval.high)) {
    measure.low = interval.low;
    measure.high = interval.high;
  }
  return measure;
}

class LatencyJudge {
 public:
  LatencyJudge(const Case& c, const JudgeContext& context, Verdict& verdict)
      : case_(c),
        context_(context),
        verdict_(verdict),
        seed_(c.synthetic ? c.synthetic->seed + context.seed : 0),
        candidate_(c, seed_, context.threads) {}

  void run() {
    const Support support = candidate_.supports();
    if (support.status != QCTS_OK) {
      verdict_.status = support.status == QCTS_UNSUPPORTED ? Status::not_supported : Status::fail;
      verdict_.reason = support.reason;
      return;
    }
    if (!make_candidate()) return;
    make_probe();
    make_dense();
    time(true, 0.6 * context_.latency_budget_s);
    time(false, 0.4 * context_.latency_budget_s);
    const std::string wrong = candidate_.verify();
    if (!wrong.empty()) return fail("right before it was timed, wrong afterwards: " + wrong);
    judge_targets();
  }

 private:
  void fail(std::string reason) {
    verdict_.status = Status::fail;
    verdict_.reason = std::move(reason);
  }

  bool make_candidate() {
    KernelContender& contender = candidate_.contender();
    // quantize has no planes: its input is what has to leave the caches, and it is one buffer.
    const size_t copies =
        contender.weight_bytes() == 0
            ? 1
            : cold_copies(contender.weight_bytes(), machine().l3_bytes, copy_budget_bytes());
    const std::string wrong = candidate_.make_and_verify(copies);
    if (!wrong.empty()) {
      fail("not timed, because the answer is wrong: " + wrong);
      return false;
    }
    verdict_.measures.push_back(
        {"moved_bytes", "bytes", static_cast<double>(contender.moved_bytes()), {}, {}, {}});
    verdict_.measures.push_back(
        {"working_set_bytes", "bytes", static_cast<double>(copies * contender.weight_bytes()), {}, {}, {}});
    if (contender.prepared_bytes() != 0)
      verdict_.measures.push_back(
          {"prepared_bytes", "bytes", static_cast<double>(contender.prepared_bytes()), {}, {}, {}});
    return true;
  }

  void make_probe() {
    const KernelContender& contender = candidate_.contender();
    probe_ = std::make_unique<StreamProbe>(contender.moved_bytes() - contender.written_bytes(),
                                           contender.written_bytes(), contender.copies());
  }

  // The dense layer comes from whoever has one; a plain loop of ours would be no fair peer.
  void make_dense() {
    if (case_.op != "linear") return;
    no_dense_ = "no dense baseline here";
    if (context_.registry == nullptr) return;
    for (const Implementation* implementation : context_.registry->find("linear", kDense)) {
      auto dense = std::make_unique<TimedKernel>(*implementation->kernel, case_, seed_ + 7, context_.threads);
      if (dense->supports().status != QCTS_OK) continue;
      KernelContender& contender = dense->contender();
      const std::string wrong = dense->make_and_verify(
          cold_copies(contender.weight_bytes(), machine().l3_bytes, copy_budget_bytes()));
      if (!wrong.empty()) {
        no_dense_ = "no dense baseline: " + implementation->name() + " answers wrongly, " + wrong;
        continue;
      }
      dense_ = std::move(dense);
      no_dense_.clear();
      return;
    }
  }

  void time(bool cold, double budget_s) {
    std::vector<Lane> lanes = {{"candidate", &candidate_.contender(), cold}};
    if (cold) lanes.push_back({"probe", probe_.get(), cold});
    if (dense_) lanes.push_back({"dense", &dense_->contender(), cold});
    lanes.push_back({"again", &candidate_.contender(), cold});
    time_rounds(lanes, budget_s, seed_);
    report(lanes, cold);
  }

  void report(const std::vector<Lane>& lanes, bool cold) {
    const std::vector<double>& us = lanes[0].us;
    const std::string prefix = cold ? "" : "warm_";
    const Interval median_us = bootstrap_median(us, block_length(us.size()), kLatencyConfidence, 1000, seed_);
    verdict_.measures.push_back(measure_of(prefix + "median_us", "us", median_us));
    if (cold) {
      verdict_.samples_us.assign(us.begin(),
                                 us.begin() + static_cast<ptrdiff_t>(std::min(us.size(), kSamplesKept)));
      const double gigabytes = static_cast<double>(candidate_.contender().moved_bytes()) * 1e-9;
      verdict_.measures.push_back(
          {"bandwidth", "GB/s", gigabytes / (median_us.value * 1e-6), {}, {}, us.size()});
    }
    add_ratio(prefix + "ratio_to_dense", find(lanes, "dense"), us);
    add_ratio(prefix + "share_of_probe", find(lanes, "probe"), us);
    const Lane* again = find(lanes, "again");
    const Interval itself = ratio_interval(again->us, us, block_length(us.size()), kLatencyConfidence, seed_);
    verdict_.measures.push_back(measure_of(prefix + "ratio_to_itself", "x", itself));
    if (itself.low > 1 + kAlarm || itself.high < 1 / (1 + kAlarm))
      alarm_ = prefix + "ratio_to_itself is not 1";
    if (again->us.size() < 5) few_ = true;
  }

  // How many times as fast as the peer: the peer's time over the candidate's.
  void add_ratio(const std::string& name, const Lane* peer, const std::vector<double>& us) {
    if (peer == nullptr) return;
    const Interval ratio = ratio_interval(peer->us, us, block_length(us.size()), kLatencyConfidence, seed_);
    ratios_.emplace_back(name, ratio);
    verdict_.measures.push_back(measure_of(name, "x", ratio));
  }

  void judge_targets() {
    const LatencyTargets targets = load_latency_targets(context_.targets, machine_class(machine()));
    Decision worst = Decision::met;
    std::string notes;
    const auto note = [&notes](const std::string& text) { notes += (notes.empty() ? "" : "; ") + text; };
    size_t decided = 0;
    for (const LatencyTarget& target : targets.targets) {
      if (!applies(target, case_.op, case_.scheme->name(), case_.scheme->family(), verdict_.variant,
                   case_.synthetic->m))
        continue;
      const auto found = std::find_if(ratios_.begin(), ratios_.end(),
                                      [&](const auto& r) { return r.first == target.measure; });
      verdict_.measures.push_back({"target_" + target.measure, "x", target.at_least, {}, {}, {}});
      const Decision decision =
          found == ratios_.end() ? Decision::undecided : decide_at_least(found->second, target.at_least);
      ++decided;
      if (decision != Decision::met)
        note("target " + target.measure + " " + std::string(decision_name(decision)));
      if (decision == Decision::missed || worst == Decision::met) worst = decision;
    }
    if (decided == 0)
      note((targets.listed ? "no target for this case on machine class "
                           : "no target for this machine class ") +
           targets.machine_class);
    if (!no_dense_.empty()) note(no_dense_);
    if (few_) note("too few rounds in the budget for an interval");
    if (!alarm_.empty()) note("the measurement is not to be trusted: " + alarm_);
    verdict_.reason = notes;
    verdict_.status = Status::pass;
    if (!context_.gate_latency) return;
    if (decided == 0 || worst == Decision::undecided || !alarm_.empty())
      verdict_.status = Status::inconclusive;
    else if (worst == Decision::missed)
      verdict_.status = Status::fail;
  }

  const Case& case_;
  const JudgeContext& context_;
  Verdict& verdict_;
  const uint64_t seed_;
  TimedKernel candidate_;
  std::unique_ptr<TimedKernel> dense_;
  std::unique_ptr<StreamProbe> probe_;
  std::vector<std::pair<std::string, Interval>> ratios_;
  std::string no_dense_, alarm_;
  bool few_ = false;
};

}  // namespace

void judge_latency(const Case& c, const JudgeContext& context, Verdict& verdict) {
  if (c.implementation == nullptr) throw std::logic_error("a latency case without an implementation");
  LatencyJudge(c, context, verdict).run();
}

}  // namespace qcts
