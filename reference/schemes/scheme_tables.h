// SPDX-License-Identifier: BSD-3-Clause
// The entries of a scheme's tables of layouts and activation policies, and the handles that name one entry.
// Only Scheme::find_layout() and Scheme::find_activation() turn text into a handle.
#pragma once

#include <compare>
#include <string_view>

namespace qcts {

struct LayoutInfo {
  std::string_view name;    // every scheme's first layout is "plain"
  std::string_view source;  // upstream file and version that defines the bytes
  bool confirmed = true;    // false: known from an index map, not confirmed on the hardware that writes it
};

// The form in which activations reach the weight of `linear`. It is a key separate from the scheme.
// "weight_only" takes activations unchanged. "dyn_..." quantizes the x of each call.
// "static_..." quantizes x with scales of the checkpoint.
struct ActivationInfo {
  std::string_view name;
  std::string_view source;  // upstream file, version and function
};

inline constexpr LayoutInfo kPlainInfo = {"plain", ""};
inline constexpr ActivationInfo kWeightOnlyInfo = {"weight_only", ""};

// A handle for an entry of a table, which outlives the handle.
// The default is the entry that all schemes share.
// Entries of two schemes are equal if they have the same name. They are ordered by name.
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

// A handle for one of Scheme::layouts().
using Layout = TableEntry<LayoutInfo, kPlainInfo>;
inline constexpr Layout kPlain{};

// A handle for one of Scheme::activations().
using Policy = TableEntry<ActivationInfo, kWeightOnlyInfo>;
inline constexpr Policy kWeightOnly{};

}  // namespace qcts
