// SPDX-License-Identifier: BSD-3-Clause
// Which synthetic inputs each operation is judged on. One table; expand() multiplies it with schemes and
// implementations, numerics and determinism make the data. An input earns its place by what a wrong kernel
// gets wrong on it.
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

struct InputFamily {
  Generator generator;
  std::string_view hunts;  // what is wrong with a kernel that fails it
  std::vector<Op> ops;
  bool every_shape = false;  // in bfloat16, weight only: all shapes of the scheme
  bool every_dtype = false;  // float32 and float16 beside bfloat16
  // None where few are asked for, and no turn of the others' where inputs are dealt over schemes: for what
  // takes up to a second a case, and for what is added without changing who is dealt the others.
  bool excluded_from_sampling = false;
  size_t max_shapes = 2;  // taken of its list, where not every one is
};
std::span<const InputFamily> input_families();  // one for each Generator, in its order
const InputFamily& input_family(Generator generator);

enum class InputSet : uint8_t { all, few };  // few: one shape and one m of each family

// Which generators have something to give for a scheme. Asking the reference costs the quantization of a row,
// so that each (dtype, k) is asked once.
class GeneratorSupport {
 public:
  explicit GeneratorSupport(const Scheme& scheme) : scheme_(&scheme) {}
  bool has(Op op, Generator generator, const WeightShape& shape);

 private:
  using Answers = std::map<std::pair<DType, int64_t>, bool>;
  WeightShape few_groups(const WeightShape& shape) const;
  bool remembered(Answers& answers, const WeightShape& shape, bool (*ask)(const Scheme&, const WeightShape&));
  const Scheme* scheme_;
  Answers exact_, finite_, outliers_;
  std::map<std::tuple<Generator, DType, int64_t>, bool> relations_;
};

// Inputs of (kind, op, scheme, layout), only such that the scheme takes, for every activation policy that the
// op knows (linear: all; quantize_activation: all but weight_only). `layout` is "plain" but for pack and
// unpack. Seeds derive from the input's name, so that adding one leaves the others as they were. `known`:
// answers about the scheme that the caller keeps between calls.
std::vector<Synthetic> synthetic_inputs(Kind kind, Op op, const Scheme& scheme, Layout layout, InputSet set,
                                        GeneratorSupport* known = nullptr);

// "noise_m3_n37_k216_bf16", "noise_dyn_row_sym_m3_n37_k216_bf16"; without m where the op has none, with the
// layout where it is not plain and the policy where it is not weight_only.
std::string input_name(const Synthetic& input, Op op, Layout layout);

// "bf16", "f32", "f16", otherwise torch's name.
std::string_view short_dtype(DType dtype);

}  // namespace qcts
