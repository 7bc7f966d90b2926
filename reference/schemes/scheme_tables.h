// SPDX-License-Identifier: BSD-3-Clause
// The entries of a scheme's tables of layouts and activation policies, and the handles that name one entry.
// Text becomes a handle in Scheme::find_layout() and Scheme::find_activation() alone.
#pragma once

#include <compare>
#include <string_view>

namespace qcts {

struct LayoutInfo {
  std::string_view name;    // "plain" is every scheme's first
  std::string_view source;  // upstream file and version that defines the bytes
  bool confirmed = true;    // false: by index map, not confirmed on the hardware that writes it
};

// How activations reach the weight of `linear`: a key apart from the scheme. "weight_only" takes them as they
// are; "dyn_..." quantizes each call's own x; "static_..." does it with scales of the checkpoint.
struct ActivationInfo {
  std::string_view name;
  std::string_view source;  // upstream file, version and function
};

inline constexpr LayoutInfo kPlainInfo = {"plain", ""};
inline constexpr ActivationInfo kWeightOnlyInfo = {"weight_only", ""};

// An entry of a table, which outlives the handle; by default the one that schemes share. Entries of two
// schemes are equal when they have one name, and are ordered by it.
template <class Info, const Info& kShared>
class TableEntry {
 public:
  constexpr TableEntry() = default;
  constexpr TableEntry(const Info& entry) : entry_(&entry) {}
  TableEntry(const Info&&) = delete;

  constexpr std::string_view name() const { return entry_->name; }

  friend constexpr bool operator==(TableEntry a, TableEntry b) {
    return a.entry_ == b.entry_ || a.name() == b.name();
  }
  friend constexpr bool operator==(TableEntry a, std::string_view name) { return a.name() == name; }
  friend constexpr std::strong_ordering operator<=>(TableEntry a, TableEntry b) {
    return a.name() <=> b.name();
  }

 private:
  const Info* entry_ = &kShared;
};

// One of Scheme::layouts().
using Layout = TableEntry<LayoutInfo, kPlainInfo>;
inline constexpr Layout kPlain{};

// One of Scheme::activations().
using Policy = TableEntry<ActivationInfo, kWeightOnlyInfo>;
inline constexpr Policy kWeightOnly{};

}  // namespace qcts
