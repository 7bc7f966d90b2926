// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/selection/id_filter.h"

#include <algorithm>

#include "suites/inputs/input_families.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

// "*int4*_m1" -> "int4", "_m1"
std::vector<std::string> literal_pieces(std::string_view glob) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < glob.size();) {
    const size_t end = std::min(glob.find_first_of("*?", begin), glob.size());
    if (end > begin) pieces.emplace_back(glob.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

// Could it be a shape or dtype word of an input's name, such as "m17", "216" or "bf16", or part of one at the
// end of a piece?
bool may_tell_a_shape(std::string_view word) {
  for (const std::string_view dtype : {"bf16", "f32", "f16", "cold", "warm"})
    if (dtype.find(word) != dtype.npos) return true;
  if (!word.empty() && std::string_view("mnk").find(word.front()) != std::string_view::npos)
    word.remove_prefix(1);
  return word.find_first_not_of("0123456789") == word.npos;
}

bool occurs_in_names_of(std::string_view word, const Scheme& scheme) {
  const auto has = [&](std::string_view name) { return name.find(word) != name.npos; };
  return std::ranges::any_of(input_families(), has,
                             [](const InputFamily& family) { return generator_name(family.generator); }) ||
         std::ranges::any_of(scheme.activations(), has, &ActivationInfo::name) ||
         std::ranges::any_of(scheme.layouts(), has, &LayoutInfo::name);
}

// Could every word of the text occur in the name of a synthetic input?
bool words_may_occur(std::string_view text, const Scheme& scheme) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('_', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!occurs_in_names_of(word, scheme) && !may_tell_a_shape(word)) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

IdFilter::IdFilter(const Selection& selection, std::vector<std::string> suffixes)
    : schemes_(selection.schemes), suffixes_(std::move(suffixes)) {
  for (const std::string& kind : selection.kinds)
    if (const std::optional<Kind> known = kind_from_name(kind)) kinds_.push_back(*known);
  for (const std::string& filter : selection.filters) {
    const bool has_wildcard = filter.find_first_of("*?") != filter.npos;
    patterns_.push_back({has_wildcard ? std::nullopt : parse_case_id(filter), literal_pieces(filter)});
    // "numerics.*/intx_b4_g512_sym/*" names its scheme between two slashes.
    const size_t slash = filter.find('/');
    if (slash != filter.npos && filter.find('/', slash + 1) != filter.npos)
      named_.push_back(filter.substr(slash + 1, filter.find('/', slash + 1) - slash - 1));
  }
  named_.insert(named_.end(), schemes_.begin(), schemes_.end());
}

std::vector<const Scheme*> IdFilter::other_schemes() const {
  std::vector<const Scheme*> others;
  for (const std::string& name : named_) {
    const Scheme* scheme = find_scheme(name);
    if (scheme && !is_listed(*scheme) && std::ranges::find(others, scheme) == others.end())
      others.push_back(scheme);
  }
  return others;
}

bool IdFilter::takes_kind_and_scheme(Kind kind, std::string_view scheme) const {
  return (kinds_.empty() || std::ranges::find(kinds_, kind) != kinds_.end()) &&
         (schemes_.empty() || std::ranges::find(schemes_, scheme) != schemes_.end());
}

bool IdFilter::matches_suffix(std::string_view piece) const {
  return std::ranges::any_of(suffixes_,
                             [&](const std::string& suffix) { return suffix.find(piece) != suffix.npos; });
}

bool IdFilter::begins_suffix(std::string_view piece) const {
  return std::ranges::any_of(suffixes_, [&](const std::string& suffix) { return suffix.starts_with(piece); });
}

bool IdFilter::may_take(Kind kind, Op op, const Scheme& scheme) const {
  if (!takes_kind_and_scheme(kind, scheme.name())) return false;
  const std::string stem = CaseId{kind, op, std::string(scheme.name()), ""}.text();
  return patterns_.empty() || std::ranges::any_of(patterns_, [&](const Pattern& pattern) {
           if (pattern.exact)
             return pattern.exact->scheme == scheme.name() && pattern.exact->op == op &&
                    pattern.exact->kind == kind;
           return std::ranges::all_of(pattern.pieces, [&](const std::string& piece) {
             return stem.find(piece) != stem.npos || may_occur_in_names(piece, stem, scheme);
           });
         });
}

// The piece occurs in the id after the stem, or across the stem's end. Its last slash may be the one before
// the suffix; an earlier one then ends the stem.
bool IdFilter::may_occur_in_names(const std::string& piece, std::string_view stem,
                                  const Scheme& scheme) const {
  if (matches_suffix(piece)) return true;
  for (size_t slash = piece.find('/'); slash != piece.npos; slash = piece.find('/', slash + 1))
    if (stem.ends_with(piece.substr(0, slash + 1))) return true;
  const size_t slash = piece.find('/');
  if (slash == piece.npos) return words_may_occur(piece, scheme);
  if (slash != piece.rfind('/') || !begins_suffix(piece.substr(slash + 1))) return false;
  return words_may_occur(piece.substr(0, slash), scheme);
}

bool IdFilter::may_take(const CaseId& id) const {
  if (!takes_kind_and_scheme(id.kind, id.scheme)) return false;
  if (patterns_.empty()) return true;
  const std::string text = id.text();
  return std::ranges::any_of(patterns_, [&](const Pattern& pattern) {
    return std::ranges::all_of(pattern.pieces,
                               [&](const std::string& piece) { return may_occur(piece, text); });
  });
}

// A piece with a slash may extend past the end of the id into the suffix.
bool IdFilter::may_occur(const std::string& piece, std::string_view id) const {
  if (id.find(piece) != id.npos || matches_suffix(piece)) return true;
  const size_t slash = piece.rfind('/');
  if (slash == piece.npos || !id.ends_with(piece.substr(0, slash))) return false;
  return begins_suffix(piece.substr(slash + 1));
}

}  // namespace qcts
