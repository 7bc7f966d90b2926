// Kernels with one planted fault each, made from the builtin scalar ones: the judge has to catch every one of
// them.
#pragma once

#include <string>
#include <vector>

#include "kernels/registry.h"

namespace qcts::selftest {

enum class Fault {
  none,  // the control: has to pass
  nibbles_swapped,
  next_group_scale,
  next_row_scale,
  zero_ignored,
  scale_as_bf16,
  tail_dropped,
  nan_output,
  last_row_unwritten,
  previous_kept,
  writes_behind,
  writes_before,
  writes_input,
  reads_behind_row,
  forgets_bias,
  changes_mxcsr,
  fails,
  differs_each_time,
  differs_with_threads,
  differs_with_batch,
};

struct Mutant {
  Fault fault;
  const char* name;
  const char* op;
  const char* family;
  const char* kind;    // of case that has to catch it: "numerics", "determinism"
  const char* reason;  // what the verdict has to say
};
const std::vector<Mutant>& mutants();

// The kernel of a mutant; claims to be deterministic, thread- and batch-invariant. Its description is the
// mutant's name.
const qcts_kernel& mutant_kernel(const Mutant& mutant);

}  // namespace qcts::selftest
