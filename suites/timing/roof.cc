// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/roof.h"

#include <algorithm>
#include <cmath>

namespace qcts {
namespace {

// Enough to measure the clock speed, and little enough to leave the budget to the kernel.
constexpr double kPeakOperations = 5e6;
constexpr double kCanaryOperations = 5e7;
constexpr int kCanaryRuns = 9;

// Operations per microsecond of one thread, measured: which loop is fastest depends on the machine.
double measured_rate(const PeakLoop& loop) {
  PeakProbe probe(loop, static_cast<uint64_t>(kPeakOperations), 1);
  probe.call(0);
  std::vector<double> us;
  for (int i = 0; i < 5; ++i) us.push_back(probe.time_us(0, 1, false));
  return static_cast<double>(probe.operations()) / median(us);
}

bool multiplies_bytes(const PeakLoop& loop) {
  return loop.arithmetic == Arithmetic::int8 || loop.arithmetic == Arithmetic::int8_by_int4;
}

}  // namespace

bool can_multiply(const PeakLoop& loop, const RoofRequest& request) {
  switch (loop.arithmetic) {
    case Arithmetic::float32:
      return !request.int8_x;
    case Arithmetic::bfloat16:
      return !request.int8_x && request.x_dtype != DType::float32;
    case Arithmetic::int16:
      return request.integers && (request.int8_x || request.x_dtype != DType::float32);
    case Arithmetic::int8:
      return true;
    case Arithmetic::int8_by_int4:
      return request.nibbles && (request.int8_x || request.x_dtype != DType::float32);
  }
  return false;
}

const PeakLoop* bounding_loop(const RoofRequest& request, double& loop_operations_each) {
  const PeakLoop* best = nullptr;
  double best_rate = 0;
  for (const PeakLoop* loop : peak_loops(request.variant)) {
    if (!can_multiply(*loop, request)) continue;
    const double each = multiplies_bytes(*loop) && !request.int8_x ? 2 : 1;
    const double rate = measured_rate(*loop) / each;
    if (rate <= best_rate) continue;
    best = loop;
    best_rate = rate;
    loop_operations_each = each;
  }
  return best;
}

Roof::Roof(const RoofRequest& request) : stream_(request.stream), operations_(request.operations) {
  if (request.operations <= 0) return;
  double each = 1;
  const PeakLoop* loop = bounding_loop(request, each);
  if (!loop) return;
  const double wanted = request.operations * each;
  peak_ = std::make_unique<PeakProbe>(
      *loop, static_cast<uint64_t>(std::min(wanted, kPeakOperations * request.stream.threads)),
      request.stream.threads);
  peak_scale_ = wanted / static_cast<double>(peak_->operations());
}

void Roof::add_series(std::vector<Series>& series, bool cold) {
  series.push_back({.name = "probe", .target = &stream_, .cold = cold});
  if (peak_) series.push_back({.name = "peak", .target = peak_.get(), .cold = true, .scale = peak_scale_});
}

std::vector<double> Roof::roof_us(std::span<const Series> series) {
  const Series *stream = find_series(series, "probe"), *peak = find_series(series, "peak");
  std::vector<double> us = stream->us;
  for (size_t i = 0; peak != nullptr && i < us.size(); ++i)
    us[i] = std::isnan(peak->us[i]) ? peak->us[i] : std::max(us[i], peak->us[i]);
  return us;
}

Interval Roof::fastest_us(std::span<const Series> series) {
  const Interval stream = fastest(find_series(series, "probe")->us);
  const Series* peak = find_series(series, "peak");
  const Interval multiplied = peak == nullptr ? Interval{} : fastest(peak->us);
  return multiplied.value > stream.value ? multiplied : stream;
}

double Roof::busy_threads(std::span<const Series> series) {
  BatchTime sum;
  for (const char* name : {"probe", "peak"})
    if (const Series* entry = find_series(series, name)) {
      sum.wall_us += entry->target->spent().wall_us;
      sum.cpu_us += entry->target->spent().cpu_us;
    }
  return sum.wall_us > 0 ? sum.cpu_us / sum.wall_us : 0;
}

Canary::Canary(uint32_t threads) {
  for (const PeakLoop* loop : peak_loops("any"))
    if (loop->arithmetic == Arithmetic::float32)
      probe_ =
          std::make_unique<PeakProbe>(*loop, static_cast<uint64_t>(kCanaryOperations) * threads, threads);
}

double Canary::measure_us() {
  if (!probe_) return 0;
  std::vector<double> us;
  for (int i = 0; i < kCanaryRuns; ++i) us.push_back(probe_->time_us(0, 1, false));
  return *std::ranges::min_element(us);
}

}  // namespace qcts
