// SPDX-License-Identifier: BSD-3-Clause
// Which inputs a library can meet. The kind follows from the values that a family draws and those that the
// scheme's recipe writes (Scheme::written). It covers only planes: x, the bias and the float weight of
// quantize may hold anything.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/case_id.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

// Each kind is wider than the one before it.
enum class InputKind : uint8_t {
  reachable,      // the recipe writes each code, scale and zero point for some finite weight
  representable,  // a file could hold them: finite numbers of the planes' types
  hostile,        // the rest
};
std::string_view input_kind_name(InputKind kind);
std::optional<InputKind> find_input_kind(std::string_view name);

// Returns the values that the generator draws for the planes of layout "plain" and the policy. A plane
// without a range has what the recipe wrote for a finite weight.
std::vector<WrittenRange> drawn_ranges(const Scheme& scheme, Op op, const Synthetic& synthetic);

struct KindOfInput {
  InputKind kind = InputKind::reachable;
  std::string
      outside;  // "scale: draws 1e-39 .. 0.1, the recipe writes 1.19209e-07 .. 2.66e+36"; "" if reachable
};
KindOfInput kind_of_input(const Scheme& scheme, Op op, const Synthetic& synthetic);

}  // namespace qcts
