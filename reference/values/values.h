// SPDX-License-Identifier: BSD-3-Clause
// Judges the numbers that a checkpoint holds, without knowing the weights that it was made from.
// A finding is a value that the recipe of the tensor's scheme cannot write for any finite weight, a NaN or an
// infinity in a float tensor, or a share that the caller rules out. Everything else of interest is a note.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

enum class ValueRule : uint8_t {
  // Quantized tensors: the recipe writes no such scale, zero point or code for any finite weight.
  scale,
  zero_point,
  code,
  idle_bits,  // a bit that belongs to no code, scale or zero point is set
  // Float tensors
  not_a_number,
  infinity,
  // More than ValueLimits allow
  zero_groups,
  saturated_codes,
};
inline constexpr int kValueRuleCount = static_cast<int>(ValueRule::saturated_codes) + 1;
std::string_view value_rule_name(ValueRule rule);

// All values of one plane that break one rule.
struct ValueFinding {
  ValueRule rule = ValueRule::scale;
  std::string tensor = {};
  std::string plane = {};     // "scale"; empty for a float tensor and for the limits
  std::string place = {};     // of the first value: "row 3"
  std::string value = {};     // the first value: "nan", "-0.1"; "12.5 %" for the limits
  std::string expected = {};  // what the recipe writes, or the limit
  uint64_t count = 0;         // values that break the rule
  uint64_t total = 0;         // values that were looked at
};
// Returns "w: scale: row 3: nan (the recipe writes ...), the first of 2 among 64", or
// "w: 3 % of its groups are zeros (3 of 100, at most 1 %)".
std::string value_finding_text(const ValueFinding& finding);
std::string number_text(double value);   // "0.0123", "nan"
std::string percent_text(double value);  // "1.25 %"

// Figures of a quantized tensor that a scheme describes.
struct TensorValues {
  std::string name, scheme;
  uint64_t groups = 0;       // groups of elements that share a scale
  uint64_t zero_groups = 0;  // groups whose weights all dequantize to 0
  uint64_t codes = 0;        // 0 if the codes are not a finite set
  uint64_t saturated = 0;    // codes at an end of the range that the recipe uses
  uint64_t scales = 0;       // positive finite scales
  double median_scale = 0, largest_scale = 0;
  uint64_t outlier_scales = 0;      // scales above kOutlierScale times the median
  std::string largest_scale_place;  // "row 3"

  double zero_group_percent() const;
  double saturated_percent() const;
};
inline constexpr double kOutlierScale = 100;

struct ValueLimits {
  std::optional<double> max_zero_groups_percent, max_saturated_percent;  // of each tensor
};

struct CheckpointValues {
  std::vector<ValueFinding> findings;
  std::vector<std::string> notes;     // one line per kind, with a count
  std::vector<TensorValues> tensors;  // in the order of the checkpoint
};

// Looks at every tensor of a checkpoint (collector.h). `cpu_layout` is the pack of CPU int4 weights whose
// file does not record it.
CheckpointValues judge_values(const Checkpoint& checkpoint, const std::string& cpu_layout,
                              const ValueLimits& limits = {});

}  // namespace qcts
