// SPDX-License-Identifier: BSD-3-Clause
// `qcts schemes --define`: what the author of a kernel has to know about a scheme.
#pragma once

#include <string>
#include <vector>

#include "reference/schemes/scheme.h"
#include "suites/base/terminal.h"

namespace qcts::cli {

// A plane with its shape in n and k: {"scale", "float32", "[n, k / 32]"}. A type that is the weight's is
// "the weight's dtype".
struct SymbolicPlane {
  std::string name, dtype, shape;
};

// Returns the planes of a layout, for n and k that are multiples of what the scheme needs.
std::vector<SymbolicPlane> symbolic_planes(const Scheme& scheme, Layout layout);

// Prints planes, the formula of one element, the order of codes, the policies of x with the scheme's options
// of the ledger, what the recipe writes, and which inputs differ from that.
void print_definition(const Scheme& scheme, Printout& out);

}  // namespace qcts::cli
