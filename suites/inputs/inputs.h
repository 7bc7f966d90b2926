// SPDX-License-Identifier: BSD-3-Clause
// The table of synthetic inputs for each operation.
// expand() combines the table with schemes and implementations.
// The kinds numerics and determinism make the data.
// Each input is there because some wrong kernel fails on it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/case_id.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

enum class InputSet : uint8_t { all, few };  // few: one shape and one m per family

// Tells which generators a scheme supports.
// To find out, quantizes a row with the reference. Answers are therefore cached by (dtype, k).
class GeneratorSupport {
 public:
  explicit GeneratorSupport(const Scheme& scheme) : scheme_(&scheme) {}
  bool has(Op op, Generator generator, const WeightShape& shape);

 private:
  using Answers = std::map<std::pair<DType, int64_t>, bool>;
  WeightShape few_groups(const WeightShape& shape) const;
  bool remembered(Answers& answers, const WeightShape& shape, bool (*ask)(const Scheme&, const WeightShape&));
  const Scheme* scheme_;
  Answers exact_, finite_, outliers_, zero_codes_;
  std::map<std::tuple<Generator, DType, int64_t>, bool> relations_;
};

// Returns true for an input that does not change which others a plan samples.
bool is_sampled_alone(const Synthetic& input);

// Returns the inputs of (kind, op, scheme, layout) that the scheme accepts.
// Every activation policy of the op has inputs.
// A linear has all policies, quantize_activation has all but weight_only.
// `layout` is "plain" except for pack, unpack, and a linear that reads packed planes.
// Seeds derive from the input's name, so a new input does not change the others.
// `known` is a cache that the caller keeps between calls. `draw_seed` is that of the drawn problems.
std::vector<Synthetic> synthetic_inputs(Kind kind, Op op, const Scheme& scheme, Layout layout, InputSet set,
                                        GeneratorSupport* known = nullptr, uint64_t draw_seed = 0);

// Returns "noise_m3_n37_k216_bf16" or "noise_dyn_row_sym_m3_n37_k216_bf16".
// The name omits m if the op has none.
// The name has the layout if it is not plain, and the policy if it is not weight_only.
// A drawn input's ends in its number instead of its shape: "drawn_07", "drawn_dyn_row_sym_07".
std::string input_name(const Synthetic& input, Op op, Layout layout);

// FNV-1a, 64 bits.
uint64_t name_hash(std::string_view text);

// Returns "bf16", "f32", "f16", or torch's name for any other type.
std::string_view short_dtype(DType dtype);

}  // namespace qcts
