// SPDX-License-Identifier: BSD-3-Clause
// Which option a kernel follows: its answers next to those of every option that can be computed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "reports/verdict.h"
#include "suites/identify/options.h"
#include "suites/judge/context/judge_context.h"
#include "suites/judge/replay.h"

namespace qcts {

// Counts the elements of a kernel's answers that equal an option's. All NaNs of a floating plane are equal.
// An element of a linear's y is equal if it is in the option's range, by the roundings that the kernel
// declares.
struct OptionShare {
  std::string name, choice;               // as RecipeOption has them
  uint64_t codes = 0, equal = 0;          // elements of the codes, or values of y
  uint64_t scales = 0, equal_scales = 0;  // elements of all other planes
  size_t inputs = 0;                      // that the option could take

  double share() const { return codes == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(codes); }
};

// Compares an answer with the option's. Codes of two in a byte are counted one by one. `stages` counts only
// for linear.
OptionShare share_of(const IdentifyOption& option, const KernelInput& input, const LinearStages& stages,
                     const KernelAnswer& got);

// Runs the kernel once on the input, in a worker. The verdict has two measures per option that could take the
// input: its name with the unit "codes" (value: equal ones, samples: all) and with the unit "scales". A
// kernel that declines is not_supported. Throws ProviderFault as KernelRun does.
Verdict ask_for_shares(const Replay& replay, const Implementation& kernel, const JudgeContext& context);

// One kernel's answers to all inputs of one scheme, or of one policy of x.
class Identification {
 public:
  // Takes a verdict of ask_for_shares() on an input. One without measures was not answered.
  void add(const KernelInput& input, const Verdict& verdict);

  size_t answered() const { return answered_; }
  size_t asked() const { return asked_; }
  // Inputs on which the kernel crashed, was late or broke the contract. Declining one is not a fault.
  size_t faults() const { return faults_; }
  // Returns the reason of the first fault, or else why an input was declined, or "".
  const std::string& why_not() const { return fault_.empty() ? declined_ : fault_; }
  // Options in the order of identify_options(): what was asked comes first.
  const std::vector<OptionShare>& options() const { return options_; }
  // Returns true if nothing differs, in any answer.
  bool fits(const OptionShare& option) const;
  // Returns the options that fit. Empty: none does.
  std::vector<const OptionShare*> fitting() const;
  // Returns the option with the largest share of equal codes, then of scales. Needs an answer.
  const OptionShare& nearest() const;
  // Returns sets of two and more options that give the same answers to all inputs that were answered.
  std::vector<std::vector<std::string>> not_told_apart() const;

 private:
  std::vector<OptionShare> options_;
  std::map<std::string, std::string> answers_;  // of an option: the hashes of its answers
  size_t asked_ = 0, answered_ = 0, faults_ = 0;
  std::string fault_, declined_;
};

// Returns the inputs of one op and scheme that identify a kernel: finite values, not large; of a linear,
// only noise. `policy` is weight_only unless the op is quantize_activation or linear. `layout` is that of
// pack, unpack, and of the planes that a linear reads.
std::vector<KernelInput> identifying_inputs(Op op, const Scheme& scheme, Policy policy, Layout layout);

}  // namespace qcts
