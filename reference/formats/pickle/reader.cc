// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/reader.h"

#include <cstring>
#include <utility>

#include "reference/formats/io/utf8.h"
#include "reference/formats/pickle/calls.h"
#include "reference/formats/pickle/numpy_arrays.h"
#include "reference/formats/pickle/opcodes.h"

namespace qcts::pickle {

// Handles values, memo and globals.
void Reader::step_scalar(uint8_t opcode) {
  const auto push_shared = [&](Ref& shared, Kind kind) {
    if (shared == nullptr) shared = make(kind);
    push(shared);
  };
  switch (opcode) {
    case 'N':
      return push_shared(none_, Kind::none);
    case 0x88:
      push_shared(true_, Kind::boolean);
      true_->boolean = true;
      return;
    case 0x89:
      return push_shared(false_, Kind::boolean);
    case ')':
      return push_shared(empty_tuple_, Kind::tuple);
    case 'K':
      return push(integer_of(take_le<uint8_t>("BININT1")));
    case 'M':
      return push(integer_of(take_le<uint16_t>("BININT2")));
    case 'J':
      return push(integer_of(static_cast<int32_t>(take_le<uint32_t>("BININT"))));
    case 0x8a:
      return long_integer();
    case 'G': {
      uint64_t bits = 0;
      for (std::byte byte : source_.take(8, "BINFLOAT")) bits = bits << 8 | std::to_integer<uint64_t>(byte);
      Ref node = make(Kind::real);
      std::memcpy(&node->real, &bits, sizeof bits);
      return push(std::move(node));
    }
    case 'X':
    case 'U': {
      const uint64_t count =
          opcode == 'X' ? take_le<uint32_t>("BINUNICODE") : take_le<uint8_t>("SHORT_BINSTRING");
      const std::string_view text = take_text(count);
      if (!is_utf8(text, true)) fail(RefusalClass::PickleType, "a string is not UTF-8");
      Ref node = make(Kind::string);
      node->text = text;
      return push(std::move(node));
    }
    case 'c':
      return named_global();
    case 'q':
      return stack_.put(take_le<uint8_t>("BINPUT"), ops_);
    case 'r':
      return stack_.put(take_le<uint32_t>("LONG_BINPUT"), ops_);
    case 'h':
      return push(stack_.get(take_le<uint8_t>("BINGET")));
    case 'j':
      return push(stack_.get(take_le<uint32_t>("LONG_BINGET")));
    default:
      fail(RefusalClass::PickleOpcode, opcode_words(opcode) + " is not on the allow-list");
  }
}

// Handles containers and objects.
void Reader::step_container(uint8_t opcode) {
  switch (opcode) {
    case '(':
      return stack_.mark();
    case ']':
      return push(make(Kind::list));
    case '}':
      return push(make(Kind::dict));
    case 0x8f:
      return push(make(Kind::set));
    case 0x85:
      return push_tuple(stack_.take(1));
    case 0x86:
      return push_tuple(stack_.take(2));
    case 0x87:
      return push_tuple(stack_.take(3));
    case 't':
      return push_tuple(stack_.pop_to_mark());
    case 'a': {
      Refs value = stack_.take(1);
      return append_items(stack_.top(), std::move(value));
    }
    case 'e': {
      Refs values = stack_.pop_to_mark();
      return append_items(stack_.top(), std::move(values));
    }
    case 's': {
      Refs item = stack_.take(2);
      return set_items(stack_.top(), std::move(item));
    }
    case 'u': {
      Refs flat = stack_.pop_to_mark();
      return set_items(stack_.top(), std::move(flat));
    }
    case 'R':
    case 0x81: {
      Refs parts = stack_.take(2);
      const Ref &callable = parts[0], &arguments = parts[1];
      for (const Ref& argument : arguments->items)
        ledger_.charge(argument->text.size() + argument->items.size());
      if (opcode == 'R')
        check_reduce(callable, role_of_callable(callable), arguments, source_.opcode_at());
      else
        check_new_object(callable, arguments, source_.opcode_at());
      Ref node = make(opcode == 'R' ? Kind::call : Kind::new_object);
      place(parts, *node);
      node->items = std::move(parts);
      return push(std::move(node));
    }
    case 'b': {
      Ref state = stack_.pop();
      const Ref& target = stack_.top();
      check_build(target, state, source_.opcode_at());
      open(target, std::span(&state, 1));
      place(std::span(&state, 1), *target);
      target->state = std::move(state);
      return;
    }
    case 'Q':
      return push_persistent(stack_.take(1));
    default:
      return step_scalar(opcode);
  }
}

bool Reader::step() {
  const uint8_t opcode = source_.begin_opcode();
  if (++ops_ > options_.limits.pickle_ops) fail(RefusalClass::LimitExceeded, "too many opcodes");
  ledger_.begin(ops_, source_.at(), source_.opcode_at());
  if (opcode == '.') return false;
  if (opcode == 0x80) {
    const int version = take_le<uint8_t>("PROTO");
    if (version != 2 && version != 3)
      fail(RefusalClass::Version,
           "pickle protocol " + std::to_string(version) +
               ", which torch.load(weights_only=True) refuses too: torch.save writes protocol 2 by default");
    return true;
  }
  if (ops_ == 1) fail(RefusalClass::Version, "the pickle does not begin with PROTO 2");
  step_container(opcode);
  return true;
}

Ref Reader::run(uint64_t& used) {
  while (step()) {
  }
  Ref root = stack_.pop();
  if (!stack_.empty()) fail(RefusalClass::PickleStack, "values are left over at STOP");
  if (numpy_parts_) check_numpy_parts(root, allowed_);
  used = source_.at();
  if (options_.cost != nullptr) {
    options_.cost->opcodes += ops_;
    options_.cost->pickle_bytes += used;
    options_.cost->heap_bytes += ledger_.heap_bytes();
  }
  return root;
}

Ref read_first(std::span<const std::byte> data, uint64_t& used, const ReadOptions& options) {
  return Reader(data, options).run(used);
}

}  // namespace qcts::pickle
