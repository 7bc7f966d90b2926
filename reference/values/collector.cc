// SPDX-License-Identifier: BSD-3-Clause
#include "reference/values/collector.h"

#include <algorithm>
#include <stdexcept>

#include "reference/dialects/dense.h"
#include "reference/values/shares.h"

namespace qcts {

std::optional<ReadWeight> ValueCollector::add(const NamedTensor& named) {
  if (!named.foreign.empty() || named.payload.empty()) return std::nullopt;
  if (named.coded || named.blocks) {
    if (named.coded)
      add_coded(named);
    else
      add_blocks(named);
    return std::nullopt;
  }
  const std::optional<SchemeTensor> tensor = scheme_tensor(named, cpu_layout_);
  if (!tensor) {
    if (is_plain(named))
      add_float(named);
    else
      add_parts(named);
    return std::nullopt;
  }
  ReadWeight weight{.scheme = tensor->scheme, .shape = {tensor->dtype, tensor->n, tensor->k}};
  try {
    weight.plain = tensor->layout == kPlain
                       ? tensor->planes
                       : tensor->scheme->unpack(tensor->planes, weight.shape, tensor->layout);
    weight.dense = tensor->scheme->dequantize(weight.plain, weight.shape);
  } catch (const std::invalid_argument& error) {
    add_unreadable(named.name, *tensor, error.what());
    return std::nullopt;
  }
  add_faults(named.name, *tensor, weight);
  add_shares(tensor_values(named.name, *tensor, weight.plain, weight.dense));
  return weight;
}

void ValueCollector::add_shares(TensorValues values) {
  const auto hold = [&](ValueRule rule, double percent, const std::optional<double>& limit, uint64_t count,
                        uint64_t total) {
    if (!limit || percent <= *limit) return;
    found_.findings.push_back({.rule = rule,
                               .tensor = values.name,
                               .value = percent_text(percent),
                               .expected = "at most " + percent_text(*limit),
                               .count = count,
                               .total = total});
  };
  hold(ValueRule::zero_groups, values.zero_group_percent(), limits_.max_zero_groups_percent,
       values.zero_groups, values.groups);
  hold(ValueRule::saturated_codes, values.saturated_percent(), limits_.max_saturated_percent,
       values.saturated, values.codes);
  if (values.zero_groups != 0) note("groups of zeros", values.name, "tensors", values.zero_groups);
  if (values.outlier_scales != 0)
    note("scales above " + number_text(kOutlierScale) + " times the median of their tensor", values.name,
         "tensors", values.outlier_scales);
  found_.tensors.push_back(std::move(values));
}

void ValueCollector::note(const std::string& oddity, const std::string& name, const std::string& what,
                          uint64_t values) {
  auto line = std::ranges::find(notes_, oddity, &NoteLine::oddity);
  if (line == notes_.end()) line = notes_.insert(notes_.end(), {oddity, name, what});
  ++line->tensors;
  line->values += values;
}

CheckpointValues ValueCollector::finish() {
  for (const NoteLine& line : notes_) {
    const std::string more =
        line.tensors == 1 ? "" : " and " + std::to_string(line.tensors - 1) + " more " + line.what;
    const std::string values = line.values == 0 ? "" : ": " + std::to_string(line.values);
    found_.notes.push_back(line.first + more + ": " + line.oddity + values);
  }
  notes_.clear();
  return std::move(found_);
}

CheckpointValues judge_values(const Checkpoint& checkpoint, const std::string& cpu_layout,
                              const ValueLimits& limits) {
  ValueCollector collector(limits, cpu_layout);
  for (const NamedTensor& tensor : checkpoint.tensors) collector.add(tensor);
  return collector.finish();
}

}  // namespace qcts
