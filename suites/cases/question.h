// SPDX-License-Identifier: BSD-3-Clause
// The questions that a case may ask. The kind in the case's id says how the answer is judged.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "fixtures/golden.h"
#include "reference/schemes/scheme.h"
#include "reports/case_id.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

// A file of a real library: round_trip, assign and size.
struct FileQuestion {
  const Golden* golden = nullptr;
};

// A file that must be refused: reject.
struct RejectQuestion {
  const Malformed* malformed = nullptr;
};

// A tensor of a golden, with the values that its library computed: numerics.
struct TensorQuestion {
  const Golden* golden = nullptr;
  std::string tensor;
  Layout layout = {};      // used by pack and unpack
  Policy activation = {};  // used by linear and quantize_activation
};

// An input that a generator makes: numerics and determinism.
struct SyntheticQuestion {
  Synthetic input;
  Layout layout = {};  // used by pack, unpack, and a linear that reads packed planes
};

// The time of one call on such an input: latency.
struct TimedQuestion {
  Synthetic input;
  Layout layout = {};
  bool warm = false;  // one copy of the operands, in the caches, instead of rotating copies
};

// The time of the seven linear layers of a decoder block, timed together (suites/judge/latency/block.h):
// latency.
struct BlockQuestion {
  Synthetic first_layer;
  int64_t shrink = 1;  // divides every dimension
};

using Question = std::variant<FileQuestion, RejectQuestion, TensorQuestion, SyntheticQuestion, TimedQuestion,
                              BlockQuestion>;

// Returns the golden that the question is about, or nullptr.
const Golden* golden_of(const Question& question);
// Returns the input that a generator makes for the question, or nullptr. A block's is that of its first
// layer.
const Synthetic* synthetic_of(const Question& question);
// Returns the manifest's row of the tensor that the question is about, or nullptr.
const Golden::TensorInfo* tensor_of(const Question& question);
// Is the weight of another library, in the planes of a scheme (kernel_planes.json)?
bool is_joined(const Question& question);
// Does the golden record the answer to `op`? No library records a product with planes that are not its own.
bool is_recorded(const Question& question, Op op);
// Return "plain" and "weight_only" for questions that have no layout or no activation policy.
Layout layout_of(const Question& question);
Policy activation_of(const Question& question);

}  // namespace qcts
