// SPDX-License-Identifier: BSD-3-Clause
// Parts of the judge with one planted fault each.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "reference/numerics/soft_float.h"
#include "suites/selftest/exam_parts.h"

namespace qcts::selftest {
namespace {

using Bytes = Parts::Bytes;

size_t element_bytes(DType dtype) { return std::max<size_t>(1, dtype_bits(dtype) / 8); }

// Calls the real `bounded` with other bounds, if there is one element for each.
template <typename Change>
auto bounded_with(Change change) {
  return [change](std::span<const Bounded> want, DType dtype, Bytes got) {
    std::vector<Bounded> changed(want.begin(), want.end());
    if (got.size() == want.size() * element_bytes(dtype)) change(changed, dtype, got);
    return compare_bounded(changed, dtype, got);
  };
}

// Discards the finding.
template <typename Result>
Result forgiven(Result result) {
  result.differing = 0;
  result.problem.clear();
  result.total = std::max<uint64_t>(result.total, 1);
  return result;
}

void everything_passes(Bounded& want, double got) { want = {got, got, got}; }

void strike_whole_vectors(Parts& parts) {
  const auto whole = [](size_t count) { return count > 8 ? count / 8 * 8 : count; };
  parts.bitwise = [whole](DType dtype, Bytes want, Bytes got) {
    if (want.size() != got.size()) return compare_bitwise(dtype, want, got);
    const size_t bytes = whole(want.size() / element_bytes(dtype)) * element_bytes(dtype);
    return compare_bitwise(dtype, want.first(bytes), got.first(bytes));
  };
  parts.bounded = [whole](std::span<const Bounded> want, DType dtype, Bytes got) {
    if (got.size() != want.size() * element_bytes(dtype)) return compare_bounded(want, dtype, got);
    const size_t count = whole(want.size());
    return compare_bounded(want.first(count), dtype, got.first(count * element_bytes(dtype)));
  };
}

void strike_shorter_length(Parts& parts) {
  parts.bitwise = [](DType dtype, Bytes want, Bytes got) {
    const size_t bytes = std::min(want.size(), got.size());
    return compare_bitwise(dtype, want.first(bytes), got.first(bytes));
  };
  parts.bounded = [](std::span<const Bounded> want, DType dtype, Bytes got) {
    const size_t count = std::min(want.size(), got.size() / element_bytes(dtype));
    return compare_bounded(want.first(count), dtype, got.first(count * element_bytes(dtype)));
  };
}

void strike_nothing_passes(Parts& parts) {
  parts.bitwise = [](DType dtype, Bytes want, Bytes got) {
    const Comparison result = compare_bitwise(dtype, want, got);
    return want.empty() && got.empty() ? forgiven(result) : result;
  };
  parts.bounded = [](std::span<const Bounded> want, DType dtype, Bytes got) {
    const BoundedComparison result = compare_bounded(want, dtype, got);
    return want.empty() && got.empty() ? forgiven(result) : result;
  };
}

void strike_one_code_off(Parts& parts) {
  parts.bitwise = [](DType dtype, Bytes want, Bytes got) {
    const Comparison result = compare_bitwise(dtype, want, got);
    if (dtype != DType::int8 || want.size() != got.size()) return result;
    for (size_t i = 0; i < want.size(); ++i)
      if (std::abs(static_cast<int8_t>(want[i]) - static_cast<int8_t>(got[i])) > 1) return result;
    return forgiven(result);
  };
  parts.planes = [](const Scheme& scheme, const WeightShape& shape, Layout layout, const Planes& want,
                    const Planes& got) {
    Planes close = got;
    for (size_t i = 0; i < std::min(want.size(), got.size()); ++i)
      for (size_t b = 0; b < std::min(want[i].bytes.size(), got[i].bytes.size()); ++b)
        if (std::abs(std::to_integer<int>(want[i].bytes[b]) - std::to_integer<int>(got[i].bytes[b])) <= 1)
          close[i].bytes[b] = want[i].bytes[b];
    return compare_planes(scheme, shape, layout, want, close);
  };
}

void strike_zero_signs(Parts& parts) {
  parts.bitwise = [](DType dtype, Bytes want, Bytes got) {
    std::vector<std::byte> changed(got.begin(), got.end());
    if (has_float_elements(dtype) && want.size() == got.size())
      for (size_t i = 0; i < got.size() / element_bytes(dtype); ++i)
        if (load_float(dtype, want, i) == load_float(dtype, got, i))
          std::memcpy(changed.data() + i * element_bytes(dtype), want.data() + i * element_bytes(dtype),
                      element_bytes(dtype));
    return compare_bitwise(dtype, want, changed);
  };
}

void strike_average(Parts& parts) {
  parts.bounded = bounded_with([](std::vector<Bounded>& want, DType dtype, Bytes got) {
    double error = 0, room = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error += std::fabs(load_float(dtype, got, i) - want[i].value);
      room += want[i].high - want[i].value;
    }
    if (error <= room)
      for (size_t i = 0; i < want.size(); ++i) everything_passes(want[i], load_float(dtype, got, i));
  });
}

void strike_bounds_add_up(Parts& parts) {
  parts.bounded = bounded_with([](std::vector<Bounded>& want, DType, Bytes) {
    double room = 0;
    for (Bounded& bound : want) {
      room += bound.high - bound.value;
      bound.low = bound.value - room;
      bound.high = bound.value + room;
    }
  });
}

bool strike_comparator(std::string_view mutant, Parts& parts) {
  if (mutant == "c_tail_ignored") return strike_whole_vectors(parts), true;
  if (mutant == "c_shorter_length") return strike_shorter_length(parts), true;
  if (mutant == "c_nothing_passes") return strike_nothing_passes(parts), true;
  if (mutant == "c_one_code_off") return strike_one_code_off(parts), true;
  if (mutant == "c_zero_signs_equal") return strike_zero_signs(parts), true;
  if (mutant == "c_average") return strike_average(parts), true;
  if (mutant == "c_bounds_add_up") return strike_bounds_add_up(parts), true;
  if (mutant == "c_nan_passes") {
    parts.bounded = bounded_with([](std::vector<Bounded>& want, DType dtype, Bytes got) {
      for (size_t i = 0; i < want.size() && (i + 1) * element_bytes(dtype) <= got.size(); ++i)
        if (std::isnan(load_float(dtype, got, i))) want[i].value = load_float(dtype, got, i);
    });
  } else if (mutant == "c_any_nan_equals") {
    parts.bounded = bounded_with([](std::vector<Bounded>& want, DType dtype, Bytes got) {
      for (size_t i = 0; i < want.size() && (i + 1) * element_bytes(dtype) <= got.size(); ++i)
        if (std::isnan(want[i].value)) everything_passes(want[i], load_float(dtype, got, i));
    });
  } else if (mutant == "c_wrong_dtype_row") {
    parts.bounded = bounded_with([](std::vector<Bounded>& want, DType dtype, Bytes) {
      for (Bounded& bound : want) {
        const double room = dtype == DType::float32 ? std::fabs(bound.value) * 0x1p-10 : 0;
        bound.low -= room;
        bound.high += room;
      }
    });
  } else if (mutant == "c_infinite_bound") {
    parts.bounded = bounded_with([](std::vector<Bounded>& want, DType, Bytes) {
      for (Bounded& bound : want)
        if (std::isinf(bound.low) && std::isinf(bound.high))
          bound.low = std::numeric_limits<double>::lowest(), bound.high = std::numeric_limits<double>::max();
    });
  } else if (mutant == "c_first_plane_only") {
    parts.planes = [](const Scheme& scheme, const WeightShape& shape, Layout layout, const Planes& want,
                      const Planes& got) {
      if (want.empty() || got.empty()) return compare_planes(scheme, shape, layout, want, got);
      return compare_planes(scheme, shape, layout, {want[0]}, {got[0]});
    };
  } else if (mutant == "c_front_zone_only") {
    parts.violation = [](const GuardedBuffer& buffer) {
      std::optional<std::string> found = buffer.violation();
      if (found && found->find("before the start") == found->npos) found.reset();
      return found;
    };
  } else if (mutant == "c_itself") {
    parts.bitwise = [](DType dtype, Bytes, Bytes got) { return compare_bitwise(dtype, got, got); };
    parts.planes = [](const Scheme& scheme, const WeightShape& shape, Layout layout, const Planes&,
                      const Planes& got) { return compare_planes(scheme, shape, layout, got, got); };
  } else {
    return false;
  }
  return true;
}

// Makes the real decision on a changed report.
auto decided_with(void (*change)(RunReport& report)) {
  return [change](const RunReport& report) {
    RunReport changed = report;
    change(changed);
    return conformance(changed);
  };
}

template <Status kFrom, Status kTo>
void count_as(RunReport& report) {
  for (Verdict& verdict : report.verdicts)
    if (verdict.status == kFrom) verdict.status = kTo;
}

bool strike_runner(std::string_view mutant, Parts& parts) {
  if (mutant == "r_skip_counts_as_pass")
    parts.conformance = decided_with(count_as<Status::not_supported, Status::pass>);
  else if (mutant == "r_crash_counts_as_skip")
    parts.conformance = decided_with(count_as<Status::crash, Status::not_supported>);
  else if (mutant == "r_timeout_counts_as_pass")
    parts.conformance = decided_with(count_as<Status::timeout, Status::pass>);
  else if (mutant == "r_weak_counts_as_pass")
    parts.conformance = decided_with(count_as<Status::weak_evidence, Status::pass>);
  else if (mutant == "r_internal_ignored")
    parts.conformance = decided_with(count_as<Status::internal, Status::not_supported>);
  else if (mutant == "r_missing_ignored")
    parts.conformance = decided_with([](RunReport& report) { report.mustpass.clear(); });
  else if (mutant == "r_floor_ignored")
    parts.conformance = decided_with([](RunReport& report) { report.floor.clear(); });
  else if (mutant == "r_infrastructure_ignored")
    parts.conformance = decided_with([](RunReport& report) { report.infrastructure.clear(); });
  else if (mutant == "r_nothing_is_success")
    parts.exit_status = [](const Conformance& result, const RunReport& report) {
      return report.verdicts.empty() ? 0 : static_cast<int>(result.outcome);
    };
  else if (mutant == "r_status_modulo_256")
    parts.exit_status = [](const Conformance& result, const RunReport& report) {
      const auto failures = std::ranges::count(report.verdicts, Status::fail, &Verdict::status);
      return failures > 0 ? static_cast<int>(failures % 256) : static_cast<int>(result.outcome);
    };
  else if (mutant == "r_typo_is_empty")
    parts.select = [](const Selection& selection, std::vector<Candidate> candidates) {
      std::vector<Candidate> chosen = select(selection, candidates);
      return chosen.empty() ? candidates : chosen;
    };
  else if (mutant == "r_last_shard_short")
    parts.select = [](const Selection& selection, std::vector<Candidate> candidates) {
      candidates.resize(candidates.size() / selection.shards * selection.shards);
      return select(selection, std::move(candidates));
    };
  else if (mutant == "r_expired_waiver_holds")
    parts.waive = [](std::vector<Waiver>& waivers, Verdict& verdict) {
      for (Waiver& waiver : waivers) waiver.expired = false;
      apply_waivers(waivers, verdict);
    };
  else if (mutant == "r_waiver_for_anyone")
    parts.waive = [](std::vector<Waiver>& waivers, Verdict& verdict) {
      for (Waiver& waiver : waivers) waiver.provider = verdict.provider;
      apply_waivers(waivers, verdict);
    };
  else if (mutant == "r_xpass_is_pass")
    parts.waive = [](std::vector<Waiver>& waivers, Verdict& verdict) {
      apply_waivers(waivers, verdict);
      if (verdict.status == Status::xpass) verdict.status = Status::pass;
    };
  else
    return false;
  return true;
}

// Removes verdicts that occur in two parts from the later part or from the earlier one.
void drop_repeated(std::vector<MergePart>& parts, bool keep_later, bool also_other_status) {
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = i + 1; j < parts.size(); ++j) {
      RunRecord &earlier = parts[i].record, &later = parts[j].record;
      RunRecord &loses = keep_later ? earlier : later, &keeps = keep_later ? later : earlier;
      loses.head.cases -= std::erase_if(loses.verdicts, [&](const Verdict& verdict) {
        return std::ranges::any_of(keeps.verdicts, [&](const Verdict& other) {
          return other.full_id() == verdict.full_id() &&
                 (also_other_status || other.status == verdict.status);
        });
      });
    }
}

// Returns the parts as if they were the whole run.
void close_gaps(std::vector<MergePart>& parts) {
  std::vector<std::string> ids;
  for (const MergePart& part : parts)
    for (const Verdict& verdict : part.record.verdicts) ids.push_back(verdict.full_id());
  const size_t count = ids.size();
  const std::string sha256 = ids_sha256(std::move(ids));
  for (size_t i = 0; i < parts.size(); ++i) {
    RunHead& head = parts[i].record.head;
    head.shard = static_cast<uint32_t>(i + 1);
    head.shards = static_cast<uint32_t>(parts.size());
    head.all_cases = count;
    head.cases_sha256 = sha256;
  }
}

auto joined_with(void (*change)(std::vector<MergePart>& parts)) {
  return [change](const std::vector<MergePart>& parts) {
    std::vector<MergePart> changed = parts;
    change(changed);
    check_parts(changed);
  };
}

bool strike_merge(std::string_view mutant, Parts& parts) {
  if (mutant == "m_gap_accepted")
    parts.join = joined_with(close_gaps);
  else if (mutant == "m_overlap_accepted")
    parts.join = joined_with([](std::vector<MergePart>& given) { drop_repeated(given, false, false); });
  else if (mutant == "m_last_verdict_wins")
    parts.join = joined_with([](std::vector<MergePart>& given) { drop_repeated(given, true, true); });
  else if (mutant == "m_other_plan_accepted")
    parts.join = joined_with([](std::vector<MergePart>& given) {
      for (MergePart& part : given) {
        part.record.head.plan = given.front().record.head.plan;
        part.record.head.plan_sha256 = given.front().record.head.plan_sha256;
      }
    });
  else
    return false;
  return true;
}

bool strike_bench(std::string_view mutant, Parts& parts) {
  if (mutant == "b_interval_too_narrow")
    parts.ratio = [](std::span<const double> a, std::span<const double> b, size_t block, double confidence,
                     uint64_t seed) {
      Interval interval = ratio_interval(a, b, block, confidence, seed);
      const double root = std::sqrt(static_cast<double>(interval.samples));
      interval.low = interval.value - (interval.value - interval.low) / root;
      interval.high = interval.value + (interval.high - interval.value) / root;
      return interval;
    };
  else if (mutant == "b_minimum_for_median")
    parts.median = [](std::span<const double> values) { return *std::ranges::min_element(values); };
  else if (mutant == "b_ratio_inverted")
    parts.ratio = [](std::span<const double> a, std::span<const double> b, size_t block, double confidence,
                     uint64_t seed) { return ratio_interval(b, a, block, confidence, seed); };
  else if (mutant == "b_three_percent_hidden")
    parts.at_least = [](const Interval& ratio, double limit) { return decide_at_least(ratio, 0.95 * limit); };
  else if (mutant == "b_warm_up_counted")
    parts.time = [](std::vector<Series>& series, double budget_s, uint64_t seed) {
      for (Series& entry : series) entry.us.push_back(entry.time_once());
      time_rounds(series, budget_s, seed);
    };
  else if (mutant == "b_candidate_always_outermost")
    parts.time = [](std::vector<Series>& series, double, uint64_t) {
      for (size_t round = 0; round < 64; ++round)
        for (size_t i = 0; i < series.size(); ++i) {
          Series& entry = series[round % 2 == 0 ? i : series.size() - 1 - i];
          entry.us.push_back(entry.time_once());
        }
    };
  else if (mutant == "b_aa_alarms")
    parts.at_least = [](const Interval& ratio, double limit) {
      return ratio.value <= limit ? Decision::missed : decide_at_least(ratio, limit);
    };
  else
    return false;
  return true;
}

}  // namespace

Parts mutated_parts(std::string_view mutant) {
  Parts parts;
  if (strike_comparator(mutant, parts) || strike_runner(mutant, parts) || strike_merge(mutant, parts) ||
      strike_bench(mutant, parts))
    return parts;
  throw std::invalid_argument("no part of the judge with the fault " + std::string(mutant));
}

}  // namespace qcts::selftest
