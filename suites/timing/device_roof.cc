// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/device_roof.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "suites/providers/provider_call.h"
#include "suites/timing/stats.h"

namespace qcts {
namespace {

// A peak needs no more than some tens of microseconds; its time is scaled to that of the whole problem.
constexpr double kLeastPeakOperations = 1e10, kMostPeakOperations = 1e11, kGpuCanaryOperations = 5e10;
// The clock library counts arithmetic in units of this many operations.
constexpr double kOperationsUnit = 1 << 20;
constexpr size_t kEmptyGraphs = 50;
constexpr int kEmptyTrials = 9, kGpuCanaryRuns = 9;

std::vector<std::byte> some_bytes(uint64_t count) {
  std::vector<std::byte> bytes(count);
  uint64_t state = 0x9E3779B97F4A7C15;
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 4 == 0) state = state * 6364136223846793005 + 1442695040888963407;
    bytes[i] = static_cast<std::byte>(state >> (32 + 8 * (i % 4)));
  }
  return bytes;
}

KernelInput clock_input(uint64_t read_bytes, uint64_t write_bytes, double operations) {
  KernelInput input;
  input.op = Op::linear;
  input.m = 1;
  input.x_dtype = DType::bfloat16;
  input.y_dtype = DType::uint8;
  input.weight = {DType::uint8, static_cast<int64_t>(write_bytes),
                  static_cast<int64_t>(std::max(operations / kOperationsUnit, 1.0))};
  input.planes = {{"bytes", DType::uint8, {static_cast<int64_t>(read_bytes)}, some_bytes(read_bytes)}};
  return input;
}

const char* arithmetic_of(DType x_dtype) {
  switch (x_dtype) {
    case DType::int8:
    case DType::uint8:
      return "roof_s8";
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return "roof_e4m3";
    default:
      return "roof_bf16";
  }
}

}  // namespace

size_t cold_copies_on_device(const TimedKernel& timed) {
  const uint64_t l2_bytes = timed.device()->properties().l2_bytes;
  return cold_copies(timed.copied_bytes(), timed.held_bytes(), l2_bytes * 3 / 2, timed.copies_budget_bytes());
}

ClockKernel::ClockKernel(const qcts_kernel& kernel, uint64_t read_bytes, uint64_t write_bytes,
                         double operations)
    : name_(std::string(kernel.scheme) + "_" + kernel.variant),
      operations_(std::max(1.0, static_cast<double>(static_cast<int64_t>(operations / kOperationsUnit))) *
                  kOperationsUnit),
      input_(clock_input(read_bytes, write_bytes, operations)),
      timed_(kernel, input_, 1) {}

void ClockKernel::make_ready(size_t copies) {
  timed_.make_ready(copies);
  timed_.call(0);
}

DeviceRoof::DeviceRoof(const Registry& clock, const RoofRequest& request, uint64_t l2_bytes)
    : operations_(request.operations) {
  constexpr uint64_t kFewBytes = 256;
  RoofRequest any = request, few = request;
  any.variant = {};
  few.stream.read_bytes = few.stream.write_bytes = kFewBytes;
  stream_ = fastest(clock, "roof_read", any, 0,
                    cold_copies(request.stream.read_bytes, request.stream.read_bytes, l2_bytes * 3 / 2,
                                request.stream.read_bytes * request.stream.copies));
  few.variant = {};
  empty_ = fastest(clock, "roof_empty", few, 0, 1);
  canary_ = fastest(clock, "roof_bf16", few, kGpuCanaryOperations, 1);
  if (request.operations <= 0) return;
  few.variant = request.variant;
  peak_ = fastest(clock, arithmetic_of(request.x_dtype), few,
                  std::clamp(request.operations, kLeastPeakOperations, kMostPeakOperations), 1);
  peak_scale_ = request.operations / peak_->operations();
}

// Kernels of an older variant are limited by its instructions; those of no known variant, by all.
std::unique_ptr<ClockKernel> DeviceRoof::fastest(const Registry& clock, std::string_view scheme,
                                                 const RoofRequest& request, double operations,
                                                 size_t copies) const {
  std::unique_ptr<ClockKernel> best;
  double best_us = 0;
  std::string why = "it has none";
  for (const Implementation* each : clock.find(QCTS_OP_LINEAR, scheme)) {
    if (request.variant == "sm80" && each->kernel->variant != request.variant) continue;
    auto kernel = std::make_unique<ClockKernel>(*each->kernel, request.stream.read_bytes,
                                                request.stream.write_bytes, operations);
    if (const Support support = kernel->supports(); support.status != QCTS_OK) {
      why = support.reason;
      continue;
    }
    kernel->make_ready(copies);
    const double us = kernel->timed().time_us(0, 1, true);
    if (best && us >= best_us) continue;
    best = std::move(kernel);
    best_us = us;
  }
  if (!best) throw std::runtime_error("the clock library cannot measure " + std::string(scheme) + ": " + why);
  return best;
}

void DeviceRoof::add_series(std::vector<Series>& series, bool cold) {
  series.push_back({.name = "probe", .target = &stream_->timed(), .cold = cold});
  if (peak_)
    series.push_back({.name = "peak", .target = &peak_->timed(), .cold = true, .scale = peak_scale_});
}

double DeviceRoof::canary_us() {
  std::vector<double> us;
  for (int i = 0; i < kGpuCanaryRuns; ++i) us.push_back(canary_->timed().time_us(0, 1, true));
  return *std::ranges::min_element(us);
}

EmptyBatch DeviceRoof::measure_empty() {
  std::vector<double> one, many, launch;  // the first two without the time of the events
  TimedKernel& timed = empty_->timed();
  for (int i = 0; i < kEmptyTrials; ++i) {
    const BatchTime shortest = timed.time_graphs(1, 1, true);
    const BatchTime time = timed.time_graphs(kEmptyGraphs, 1, true);
    one.push_back(shortest.wall_us - shortest.events_us);
    many.push_back(time.wall_us - time.events_us);
    launch.push_back(time.events_us / static_cast<double>(kEmptyGraphs));
  }
  launch_us_ = median(launch);
  const double graph_us = (median(many) - median(one)) / static_cast<double>(kEmptyGraphs - 1);
  return {std::max(median(one), 0.0), std::max(graph_us, 0.0)};
}

}  // namespace qcts
