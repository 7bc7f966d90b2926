// SPDX-License-Identifier: BSD-3-Clause
// The stack, marks and memo of one pickle. Only the pickle reader includes this header.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reference/formats/pickle/pickle.h"
#include "reference/formats/pickle/source.h"

namespace qcts::pickle {

// Throws Refused: PickleStack for a missing operand, LimitExceeded beyond Limits::pickle_stack.
class Stack {
 public:
  Stack(const Source& source, const Limits& limits) : source_(source), limits_(limits) {}

  bool empty() const { return values_.empty() && marks_.empty(); }
  void push(Ref value) {
    if (values_.size() >= limits_.pickle_stack)
      source_.fail(RefusalClass::LimitExceeded, "the stack is too deep");
    values_.push_back(std::move(value));
  }
  bool holds(size_t count) const { return values_.size() - (marks_.empty() ? 0 : marks_.back()) >= count; }
  const Ref& top() const {
    require(1);
    return values_.back();
  }
  Ref pop() {
    require(1);
    Ref value = std::move(values_.back());
    values_.pop_back();
    return value;
  }
  // Pops `count` operands.
  Refs take(size_t count) {
    require(count);
    return values_.take_back(count);
  }
  void mark() {
    if (marks_.size() >= limits_.pickle_stack) source_.fail(RefusalClass::LimitExceeded, "too many MARKs");
    marks_.push_back(values_.size());
  }
  Refs pop_to_mark() {
    if (marks_.empty()) source_.fail(RefusalClass::PickleStack, "no MARK on the stack");
    Refs values = values_.take_back(values_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }

  // Memoises the top of the stack as `index`, which must be less than `ops`, the number of opcodes so far.
  void put(uint64_t index, uint64_t ops) {
    const Ref& value = top();
    if (index >= ops)
      source_.fail(RefusalClass::LimitExceeded, "memo index " + std::to_string(index) + " is not dense");
    if (index == memo_.size()) return memo_.push_back(value);
    if (index > memo_.size()) memo_.resize(index + 1);
    memo_[index] = value;
  }
  const Ref& get(uint64_t index) const {
    if (index >= memo_.size() || memo_[index] == nullptr)
      source_.fail(RefusalClass::PickleStack, "memo index " + std::to_string(index) + " was never set");
    return memo_[index];
  }

  // The references that the stack and the memo hold to a value, and the number of places looked at.
  size_t references_to(const Ref& value) const {
    return static_cast<size_t>(std::ranges::count(values_, value) + std::ranges::count(memo_, value));
  }
  size_t places() const { return values_.size() + memo_.size(); }

 private:
  void require(size_t count) const {
    if (!holds(count)) source_.fail(RefusalClass::PickleStack, "an operand is missing");
  }

  const Source& source_;
  const Limits& limits_;
  Refs values_;
  std::vector<size_t> marks_;
  Refs memo_;
};

}  // namespace qcts::pickle
