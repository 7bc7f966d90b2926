// SPDX-License-Identifier: BSD-3-Clause
// Collects findings and notes while the tensors of a checkpoint are looked at, one after the other.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/values/values.h"

namespace qcts {

// A weight as it was looked at.
struct ReadWeight {
  const Scheme* scheme = nullptr;
  WeightShape shape = {};
  Planes plain = {};                  // layout "plain"
  std::vector<std::byte> dense = {};  // dequantized by the scheme, row-major [n, k]
};

class ValueCollector {
 public:
  // `cpu_layout` is the pack of CPU int4 weights whose file does not record it.
  ValueCollector(ValueLimits limits, std::string cpu_layout)
      : limits_(limits), cpu_layout_(std::move(cpu_layout)) {}

  // Looks at a tensor. Tensors of foreign formats, and those without elements, have no findings.
  // Returns the weight if a scheme describes the tensor and its planes can be unpacked.
  std::optional<ReadWeight> add(const NamedTensor& tensor);

  // Returns what was found, with one note for each oddity.
  CheckpointValues finish();

 private:
  void add_float(const NamedTensor& tensor);
  void add_parts(const NamedTensor& tensor);
  void add_coded(const NamedTensor& tensor);
  // A part of floats, which are finite, and not negative if it holds scales.
  void add_finite_part(const NamedTensor& named, const InnerTensor& inner);
  void add_blocks(const NamedTensor& tensor);
  void add_affine(const NamedTensor& tensor);
  void add_qtensor(const NamedTensor& tensor);
  void add_faults(const std::string& name, const SchemeTensor& tensor, const ReadWeight& weight);
  void add_padding(const std::string& name, const SchemeTensor& tensor, const ReadWeight& weight);
  void add_unreadable(const std::string& name, const SchemeTensor& tensor, const std::string& why_not);
  void add_shares(TensorValues values);
  // Counts a tensor for the note "NAME and 3 more WHAT: ODDITY", and its values: "NAME: ODDITY: 12".
  void note(const std::string& oddity, const std::string& name, const std::string& what, uint64_t values = 0);

  struct NoteLine {
    std::string oddity, first, what;
    uint64_t tensors = 0, values = 0;
  };
  ValueLimits limits_;
  std::string cpu_layout_;
  std::vector<NoteLine> notes_;
  CheckpointValues found_;
};

}  // namespace qcts
