// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/question.h"

#include <algorithm>

namespace qcts {
namespace {

// Builds one visitor from a lambda per alternative.
template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

}  // namespace

const Golden* golden_of(const Question& question) {
  return std::visit(Overloaded{[](const FileQuestion& file) { return file.golden; },
                               [](const TensorQuestion& tensor) { return tensor.golden; },
                               [](const auto&) -> const Golden* { return nullptr; }},
                    question);
}

const Synthetic* synthetic_of(const Question& question) {
  return std::visit(Overloaded{[](const SyntheticQuestion& synthetic) { return &synthetic.input; },
                               [](const TimedQuestion& timed) { return &timed.input; },
                               [](const BlockQuestion& block) { return &block.first_layer; },
                               [](const auto&) -> const Synthetic* { return nullptr; }},
                    question);
}

const Golden::TensorInfo* tensor_of(const Question& question) {
  const auto* asked = std::get_if<TensorQuestion>(&question);
  if (asked == nullptr) return nullptr;
  const auto& tensors = asked->golden->tensors;
  const auto found = std::ranges::find(tensors, asked->tensor, &Golden::TensorInfo::name);
  return found == tensors.end() ? nullptr : &*found;
}

bool is_joined(const Question& question) {
  const Golden::TensorInfo* tensor = tensor_of(question);
  return tensor != nullptr && !tensor->kernel_scheme.empty();
}

bool is_recorded(const Question& question, Op op) {
  if (!is_joined(question)) return golden_of(question) != nullptr;
  const std::vector<std::string>& recorded = tensor_of(question)->expected;
  return op == Op::dequantize && std::ranges::find(recorded, "dequant") != recorded.end();
}

Layout layout_of(const Question& question) {
  return std::visit(
      Overloaded{[](const TensorQuestion& tensor) { return tensor.layout; },
                 [](const SyntheticQuestion& synthetic) { return synthetic.layout; },
                 [](const TimedQuestion& timed) { return timed.layout; }, [](const auto&) { return kPlain; }},
      question);
}

Policy activation_of(const Question& question) {
  if (const Synthetic* input = synthetic_of(question)) return input->activation;
  const auto* tensor = std::get_if<TensorQuestion>(&question);
  return tensor != nullptr ? tensor->activation : kWeightOnly;
}

}  // namespace qcts
