// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cmath>
#include <string>
#include <string_view>

#include "reference/formats/pickle/calls.h"

namespace qcts::pickle {
namespace {

// Makes the text of one key. Every step adds at least one byte, so kKeyBytes bounds the time for tuples that
// share their parts.
class KeyText {
 public:
  explicit KeyText(uint64_t offset) : offset_(offset) {}

  std::string of(const Ref& key) {
    add(key);
    return std::move(text_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    refuse(RefusalClass::PickleType, "data.pkl: " + what, offset_);
  }
  // Parts carry their lengths: ("a", "bc") and ("ab", "c") are two keys.
  void put(char tag, std::string_view text) {
    if (inside_ > 0) text_ += std::to_string(text.size()) + ":";
    text_ += tag;
    text_ += text;
    if (inside_ > 0 && text_.size() > kKeyBytes)
      refuse(RefusalClass::LimitExceeded,
             "data.pkl: a dict key of more than " + std::to_string(kKeyBytes) + " bytes", offset_);
  }
  void put_address(const Ref& node) { put('@', std::to_string(reinterpret_cast<uintptr_t>(node.get()))); }

  void add(const Ref& key);
  void add_items(char tag, const Refs& items);
  void add_real(const Ref& key, double value);
  void add_call(const Ref& key);
  void add_complex(const Ref& key);

  uint64_t offset_;
  unsigned inside_ = 0;
  std::string text_;
};

void KeyText::add_items(char tag, const Refs& items) {
  ++inside_;
  put(tag, std::to_string(items.size()));
  for (const Ref& item : items) add(item);
  --inside_;
}

// An integral value is the key of the integer.
void KeyText::add_real(const Ref& key, double value) {
  if (std::isnan(value)) return put_address(key);
  if (!std::isfinite(value) || value != std::trunc(value))
    return put('r', std::to_string(std::bit_cast<uint64_t>(value)));
  if (std::abs(value) < 0x1p63) return put('i', std::to_string(static_cast<int64_t>(value)));
  int exponent = 0;
  __int128 mantissa = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  mantissa <<= (exponent - 53) % 8;
  std::byte bytes[136] = {};  // 53 bits of mantissa and a sign, shifted by up to 971
  for (size_t i = static_cast<size_t>(exponent - 53) / 8; i < sizeof bytes; ++i, mantissa >>= 8)
    bytes[i] = static_cast<std::byte>(mantissa & 0xff);
  add(integer(bytes));
}

void KeyText::add_complex(const Ref& key) {
  const Refs& parts = key->items[1]->items;
  const double real = parts[0]->real, imaginary = parts[1]->real;
  if (imaginary == 0) return add_real(key, real);
  if (std::isnan(real) || std::isnan(imaginary)) return put_address(key);
  put('c', std::to_string(std::bit_cast<uint64_t>(real + 0.0)) + "," +
               std::to_string(std::bit_cast<uint64_t>(imaginary)));
}

void KeyText::add_call(const Ref& key) {
  const auto info = role_of(key);
  const Refs* args = key->items[1]->kind == Kind::tuple ? &key->items[1]->items : nullptr;
  const bool bare = key->state == nullptr && key->pairs.empty() && key->appended().empty();
  if (!info || args == nullptr) fail("a dict key is a call of an unknown function");
  switch (info->role) {
    case Role::encode:
      return put('b', (*args)[0]->text);
    case Role::bytes:
      return put('b', "");
    case Role::size:
      return add((*args)[0]);
    case Role::complex:
      return add_complex(key);
    case Role::device: {
      const std::string name = (*args)[0]->text;
      return put('d', args->size() == 1 ? name : name + ":" + std::to_string((*args)[1]->integer));
    }
    case Role::layout:
      return put('l', (*args)[0]->text);
    case Role::rebuild:
    case Role::parameter:
      fail("a dict key is a tensor, under which nothing can be named: save a list of pairs instead");
    case Role::library_type:
      if (!bare) fail("a dict key is an object with items or a state, whose tensors would have no name");
      ++inside_;
      put_address(key);
      for (const Ref& part : *args) part->kind == Kind::list ? add_items('[', part->items) : add(part);
      --inside_;
      return;
    default:
      fail("a dict key is a value that Python cannot hash");
  }
}

void KeyText::add(const Ref& key) {
  switch (key->kind) {
    case Kind::none:
      return put('n', "");
    case Kind::boolean:
      return put('i', key->boolean ? "1" : "0");
    case Kind::integer:
      return put('i', std::to_string(key->integer));
    case Kind::big_integer:
      return put('I', key->text);
    case Kind::string:
      return put('s', key->text);
    case Kind::bytes:
      return put('B', key->text);
    case Kind::global:
      return put('g', key->text);
    case Kind::real:
      return add_real(key, key->real);
    case Kind::tuple:
      return add_items('(', key->items);
    case Kind::call:
    case Kind::new_object:
      return add_call(key);
    case Kind::persistent:
      fail("a dict key is a storage, under which nothing can be named: save a list of pairs instead");
    case Kind::list:
    case Kind::dict:
    case Kind::set:
    case Kind::enclosing:
      fail("a dict key is a value that Python cannot hash");
  }
}

}  // namespace

std::string key_text(const Ref& key, uint64_t offset) { return KeyText(offset).of(key); }

}  // namespace qcts::pickle
