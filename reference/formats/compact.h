// SPDX-License-Identifier: BSD-3-Clause
// Text and Array are strings and vectors of the size of one pointer.
// Both classes are for values that a file may hold by the million.
// An empty std::string takes 32 bytes, an empty std::vector 24.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace qcts {

// Immutable bytes, up to 4 GiB. Texts of up to seven bytes are stored inline.
class Text {
 public:
  Text() = default;
  Text(std::string_view text) { assign(text); }
  Text(const char* text) : Text(std::string_view(text)) {}
  Text(const std::string& text) : Text(std::string_view(text)) {}
  Text(const Text& other) : word_(other.word_) {
    if (!is_inside()) assign(other.view());
  }
  Text(Text&& other) noexcept : word_(std::exchange(other.word_, kEmpty)) {}
  Text& operator=(Text other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~Text() {
    if (!is_inside()) ::operator delete(block());
  }

  const char* data() const {
    return is_inside() ? reinterpret_cast<const char*>(&word_) + 1 : block() + sizeof(uint32_t);
  }
  size_t size() const {
    if (is_inside()) return (word_ & 0xff) >> 1;
    uint32_t length = 0;
    std::memcpy(&length, block(), sizeof length);
    return length;
  }
  bool empty() const { return size() == 0; }
  std::string_view view() const { return {data(), size()}; }
  std::string str() const { return std::string(view()); }
  operator std::string_view() const { return view(); }
  operator std::string() const { return str(); }

  const char* begin() const { return data(); }
  const char* end() const { return data() + size(); }
  char operator[](size_t at) const { return data()[at]; }
  bool starts_with(std::string_view text) const { return view().starts_with(text); }
  bool ends_with(std::string_view text) const { return view().ends_with(text); }
  size_t find(char c, size_t from = 0) const { return view().find(c, from); }
  std::string substr(size_t from, size_t count = std::string_view::npos) const {
    return std::string(view().substr(from, count));
  }

  friend bool operator==(const Text& a, const Text& b) { return a.view() == b.view(); }
  friend bool operator==(const Text& a, std::string_view b) { return a.view() == b; }
  friend bool operator==(const Text& a, const std::string& b) { return a.view() == b; }
  friend bool operator==(const Text& a, const char* b) { return a.view() == b; }
  friend bool operator<(const Text& a, const Text& b) { return a.view() < b.view(); }
  friend std::string operator+(std::string a, const Text& b) { return a.append(b.view()); }
  friend std::string operator+(const Text& a, std::string_view b) { return a.str().append(b); }
  friend std::ostream& operator<<(std::ostream& out, const Text& text) { return out << text.view(); }

 private:
  // Inline text sets the lowest bit: the lowest byte is twice the length plus one.
  // Allocated blocks have even addresses.
  static_assert(std::endian::native == std::endian::little);
  static constexpr uint64_t kEmpty = 1;
  static constexpr size_t kInside = 7;

  bool is_inside() const { return word_ & 1; }
  char* block() const { return reinterpret_cast<char*>(word_); }
  void assign(std::string_view text) {
    if (text.size() <= kInside) {
      word_ = text.size() << 1 | 1;
      std::memcpy(reinterpret_cast<char*>(&word_) + 1, text.data(), text.size());
      return;
    }
    if (text.size() > UINT32_MAX) throw std::length_error("Text");
    auto* block = static_cast<char*>(::operator new(sizeof(uint32_t) + text.size()));
    const auto length = static_cast<uint32_t>(text.size());
    std::memcpy(block, &length, sizeof length);
    std::memcpy(block + sizeof length, text.data(), text.size());
    word_ = reinterpret_cast<uintptr_t>(block);
  }

  uint64_t word_ = kEmpty;
};

// Lets hash tables look up Text, std::string and std::string_view alike.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// A vector of up to 2^32 - 1 elements. Its capacity grows by half.
// Items are moved as raw bytes, so no T may hold an address inside itself.
template <typename T>
class Array {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  Array() = default;
  explicit Array(size_t count) { resize(count); }
  Array(std::initializer_list<T> items) : Array(items.begin(), items.end()) {}
  template <std::forward_iterator I>
  Array(I first, I last) {
    insert(end(), first, last);
  }
  Array(const Array& other) : Array(other.begin(), other.end()) {}
  Array(Array&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Array& operator=(Array other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Array() {
    if (block_ == nullptr) return;
    clear();
    ::operator delete(block_);
  }

  size_t size() const { return block_ == nullptr ? 0 : block_->size; }
  size_t capacity() const { return block_ == nullptr ? 0 : block_->capacity; }
  bool empty() const { return size() == 0; }
  T* data() { return block_ == nullptr ? nullptr : items(block_); }
  const T* data() const { return block_ == nullptr ? nullptr : items(block_); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  std::reverse_iterator<const T*> rbegin() const { return std::reverse_iterator(end()); }
  std::reverse_iterator<const T*> rend() const { return std::reverse_iterator(begin()); }
  T& operator[](size_t at) { return data()[at]; }
  const T& operator[](size_t at) const { return data()[at]; }
  T& at(size_t index) { return const_cast<T&>(std::as_const(*this).at(index)); }
  const T& at(size_t index) const {
    if (index >= size()) throw std::out_of_range("Array::at");
    return data()[index];
  }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size() - 1]; }
  const T& back() const { return data()[size() - 1]; }

  void reserve(size_t count) {
    if (count > capacity()) move_to(count);
  }
  template <typename... Args>
  T& emplace_back(Args&&... args) {
    if (block_ == nullptr || block_->size == block_->capacity)
      return emplace_in_next_block(std::forward<Args>(args)...);
    return *::new (items(block_) + block_->size++) T(std::forward<Args>(args)...);
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  void pop_back() {
    back().~T();
    --block_->size;
  }
  // Inserts at the end only, whatever the first argument is.
  template <std::forward_iterator I>
  void insert(const T*, I first, I last) {
    const auto count = static_cast<size_t>(std::distance(first, last));
    if (count == 0) return;
    if (count > capacity() - size()) grow(count);
    for (T* at = end(); first != last; ++first, ++block_->size) ::new (at++) T(*first);
  }
  void resize(size_t count) {
    if (count > capacity()) grow(count - size());
    while (size() > count) pop_back();
    while (size() < count) ::new (data() + block_->size++) T();
  }
  void clear() {
    while (!empty()) pop_back();
  }
  // Removes the last `count` items and returns them.
  Array take_back(size_t count) {
    Array taken;
    if (count == 0) return taken;
    taken.reserve(count);
    block_->size -= static_cast<uint32_t>(count);
    taken.block_->size = static_cast<uint32_t>(count);
    copy_bytes(end(), count, taken.block_);
    return taken;
  }

 private:
  struct Block {
    uint32_t size, capacity;
  };
  static_assert(alignof(T) <= alignof(std::max_align_t) && sizeof(Block) % alignof(T) == 0);

  static T* items(Block* block) { return reinterpret_cast<T*>(block + 1); }
  static void copy_bytes(const T* from, size_t count, Block* into) {
    std::memcpy(static_cast<void*>(items(into)), static_cast<const void*>(from), count * sizeof(T));
  }
  template <typename... Args>
  [[gnu::noinline]] T& emplace_in_next_block(Args&&... args) {
    T item(std::forward<Args>(args)...);  // the arguments may refer to the block that grow() frees
    grow(1);
    return *::new (data() + block_->size++) T(std::move(item));
  }
  void grow(size_t more) { move_to(std::max(size() + more, size() + size() / 2)); }
  void move_to(size_t capacity) {
    if (capacity > UINT32_MAX) throw std::length_error("Array");
    auto* block = static_cast<Block*>(::operator new(sizeof(Block) + capacity * sizeof(T)));
    *block = {static_cast<uint32_t>(size()), static_cast<uint32_t>(capacity)};
    if (block_ != nullptr) copy_bytes(data(), size(), block);
    ::operator delete(std::exchange(block_, block));
  }

  Block* block_ = nullptr;
};

}  // namespace qcts
