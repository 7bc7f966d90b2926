// SPDX-License-Identifier: BSD-3-Clause
// The machine's limits for one timed problem, timed as series next to the kernel.
// The memory limit is a stream of the same bytes.
// The arithmetic limit is the fastest multiply-adds that the kernel's variant may use.
// The canary is a fixed amount of arithmetic.
// The canary is timed before and after a measurement to detect a change of clock speed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/tensor.h"
#include "suites/timing/interleaved_timer.h"
#include "suites/timing/probes.h"
#include "suites/timing/stats.h"

namespace qcts {

struct RoofRequest {
  std::string_view variant{};  // the kernel's variant
  bool int8_x = false;  // linear: the activation policy quantizes x to integers, so products are int8 x int8
  bool integers = false;  // the weight's codes are integers: products with x in fixed point use 16-bit words
  bool nibbles = false;   // integers with at most 16 codes: byte products are int8 x int4
  DType x_dtype = DType::bfloat16;
  StreamRequest stream{};
  double operations = 0;  // 0: there is no arithmetic limit
};

class Roofs {
 public:
  virtual ~Roofs() = default;
  // Adds "probe", and also "peak" if there is an arithmetic limit.
  // A sample is scaled to the time of the whole problem.
  virtual void add_series(std::vector<Series>& series, bool cold) = 0;
  // Returns the name of the loop that the series "peak" times.
  virtual std::string peak_name() const = 0;
  // Returns the operations per second of the peak series, whose median sample is `us`.
  virtual double peak_rate(double us) const = 0;
};

// The limits of this machine's processor.
class Roof final : public Roofs {
 public:
  explicit Roof(const RoofRequest& request);
  void add_series(std::vector<Series>& series, bool cold) override;
  // Returns the longer of the two times of each round, or NaN if a series was not timed.
  static std::vector<double> roof_us(std::span<const Series> series);
  // Returns the longer of the two series' fastest().
  static Interval fastest_us(std::span<const Series> series);
  // Returns the CPU time of the roofs' own calls, divided by the time that they took.
  static double busy_threads(std::span<const Series> series);
  const PeakLoop* peak() const { return peak_ ? &peak_->loop() : nullptr; }
  std::string peak_name() const override { return peak_ ? peak_->loop().name : ""; }
  double peak_rate(double us) const override { return operations_ / us * 1e6; }

 private:
  StreamProbe stream_;
  std::unique_ptr<PeakProbe> peak_;
  double operations_ = 0, peak_scale_ = 1;
};

// Returns true if the loop's products match the problem's.
// If only the weight is quantized, its products are floats, words, or bytes.
// With bytes, x is split in two, which can hold 16 bits of x.
bool can_multiply(const PeakLoop& loop, const RoofRequest& request);

// Returns the loop that bounds a kernel of this variant, or nullptr if none is known.
// `loop_operations_each` receives the loop operations for each operation of the kernel.
// The kernel needs two loop operations if x is split into two bytes.
const PeakLoop* bounding_loop(const RoofRequest& request, double& loop_operations_each);

class Canary {
 public:
  explicit Canary(uint32_t threads);
  // Returns the time of the fastest of several runs of a fixed amount of arithmetic. Returns 0 if there is no
  // loop for it.
  // A neighbour that slows some of the runs does not change the clock.
  double measure_us();

 private:
  std::unique_ptr<PeakProbe> probe_;
};

// Times a latency case. Tests replace it to judge samples that they choose.
struct Stopwatch {
  void (*rounds)(std::vector<Series>& series, double budget_s, uint64_t seed) = time_rounds;
  double (*canary_us)(Canary& canary) = [](Canary& canary) { return canary.measure_us(); };
};

}  // namespace qcts
