// SPDX-License-Identifier: BSD-3-Clause
// The machine's own ceilings for one timed problem, as lanes beside the kernel: memory (a stream of the same
// bytes) and arithmetic (the fastest multiply-adds that the kernel's variant may use). And the canary: the
// same arithmetic before and after a measurement, which tells whether the machine stayed what it was.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "suites/timing/probes.h"
#include "suites/timing/rounds.h"

namespace qcts {

struct RoofRequest {
  std::string_view variant{};  // of the kernel
  bool int8_x = false;    // linear: the activation policy makes x integers, so that products are int8 x int8
  bool integers = false;  // the weight's codes are: products of x in fixed point are of words
  bool nibbles = false;   // of integers at most 16: products of bytes are int8 x int4
  DType x_dtype = DType::bfloat16;
  StreamRequest stream{};
  double operations = 0;  // 0: no ceiling of arithmetic
};

class Roof {
 public:
  explicit Roof(const RoofRequest& request);
  // "probe", and "peak" where arithmetic counts. A sample is the time that the whole problem would take.
  void add_lanes(std::vector<Lane>& lanes, bool cold);
  // Of each round, the longer of the two times; NaN where a lane was not timed.
  static std::vector<double> roof_us(std::span<const Lane> lanes);
  const PeakLoop* peak() const { return peak_ ? &peak_->loop() : nullptr; }
  // Operations a second of the peak lane's samples, whose median is `us`.
  double peak_rate(double us) const { return operations_ / us * 1e6; }

 private:
  StreamProbe stream_;
  std::unique_ptr<PeakProbe> peak_;
  double operations_ = 0, peak_scale_ = 1;
};

// Are the products of the problem such as the loop makes? Those of a weight that alone is quantized are
// floats, words, or bytes with x split into two, which 16 bits of x fit in.
bool can_multiply(const PeakLoop& loop, const RoofRequest& request);

// Which loop bounds a kernel of this variant; nullptr: none that is known. loop_operations_each: operations
// of the loop that one of the kernel takes. Where x is split into two bytes: two.
const PeakLoop* bounding_loop(const RoofRequest& request, double& loop_operations_each);

class Canary {
 public:
  explicit Canary(uint32_t threads);
  // The median of some runs of a fixed amount of arithmetic.
  double sing_us();

 private:
  std::unique_ptr<PeakProbe> probe_;
};

}  // namespace qcts
