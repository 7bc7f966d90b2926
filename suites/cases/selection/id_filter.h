// SPDX-License-Identifier: BSD-3-Clause
// A quick test of a selection, which expansion applies before it makes an input.
// The test never rejects a case that the selection takes.
// selection.h decides exactly, once the implementations are known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"
#include "reports/case_id.h"
#include "suites/cases/selection/selection.h"

namespace qcts {

class IdFilter {
 public:
  IdFilter() = default;  // accepts everything
  // `suffixes` lists every "provider_variant" that can follow an id.
  IdFilter(const Selection& selection, std::vector<std::string> suffixes);

  // Returns true if the selection may take a synthetic input of this scheme.
  bool may_take(Kind kind, Op op, const Scheme& scheme) const;
  bool may_take(const CaseId& id) const;
  // Returns the schemes that the selection names and that are not listed: those of other group lengths.
  std::vector<const Scheme*> other_schemes() const;

 private:
  struct Pattern {
    std::optional<CaseId> exact;      // set if the filter has no wildcards and is a case id
    std::vector<std::string> pieces;  // literal text between wildcards; a match contains all of it
  };
  bool takes_kind_and_scheme(Kind kind, std::string_view scheme) const;
  bool matches_suffix(std::string_view piece) const;
  bool begins_suffix(std::string_view piece) const;
  bool may_occur(const std::string& piece, std::string_view id) const;
  bool may_occur_in_names(const std::string& piece, std::string_view stem, const Scheme& scheme) const;

  std::vector<Kind> kinds_;
  std::vector<std::string> schemes_, suffixes_, named_;
  std::vector<Pattern> patterns_;
};

}  // namespace qcts
