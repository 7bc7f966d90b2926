// SPDX-License-Identifier: BSD-3-Clause
// Reads one pickle into a graph of values. reader.cc says what each opcode does, reader_values.cc makes and
// joins the values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/pickle/ledger.h"
#include "reference/formats/pickle/pickle.h"
#include "reference/formats/pickle/pool.h"
#include "reference/formats/pickle/source.h"
#include "reference/formats/pickle/stack.h"

namespace qcts::pickle {

class Reader {
 public:
  Reader(std::span<const std::byte> data, const ReadOptions& options)
      : source_(data, options.limits, options.base_offset),
        options_(options),
        depth_limit_(std::min(options.limits.pickle_depth, kMaxGraphDepth)),
        ledger_(options.limits),
        stack_(source_, options.limits) {
    allowed_.insert(options.allow.begin(), options.allow.end());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Returns the value at STOP; `used` receives the bytes up to there.
  Ref run(uint64_t& used);

 private:
  bool step();  // false after STOP
  void step_container(uint8_t opcode);
  void step_scalar(uint8_t opcode);

  template <typename T>
  T take_le(const char* what) {
    return source_.take_le<T>(what);
  }
  std::string_view take_text(uint64_t count);

  void push(Ref value) { stack_.push(std::move(value)); }
  Ref make(Kind kind);
  Ref integer_of(int64_t value);
  std::optional<GlobalInfo> role_of_callable(const Ref& callable);
  void place(std::span<const Ref> children, Node& parent);
  void open(const Ref& target, std::span<Ref> values);
  void close_cycles(const Ref& target, std::span<Ref> values);

  void push_tuple(Refs items);
  void named_global();
  bool is_allowed(const std::string& module, const std::string& name) const;
  void push_persistent(Refs id);
  void long_integer();
  void set_items(const Ref& target, Refs flat);
  void append_items(const Ref& target, Refs values);

  [[noreturn]] void fail(RefusalClass cls, std::string_view what) const { source_.fail(cls, what); }
  [[noreturn]] void fail_depth() const;

  Source source_;
  const ReadOptions& options_;
  const uint64_t depth_limit_;
  Ledger ledger_;
  NodePool pool_;
  std::unordered_set<std::string> allowed_;
  uint64_t ops_ = 0;
  Stack stack_;
  bool device_arrays_ = false;  // a function was named whose first argument is a numpy array
  bool numpy_parts_ = false;    // a part of one was named, which the caller did not allow
  // Values without identity: picklers never memoise them, so one node serves for each value.
  std::unordered_map<int64_t, Ref> integers_;
  NodeMap<std::optional<GlobalInfo>> roles_;  // roles of callables
  Ref none_, true_, false_, empty_tuple_;
};

}  // namespace qcts::pickle
