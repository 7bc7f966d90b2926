// SPDX-License-Identifier: BSD-3-Clause
// The first step of a run: the plan, the fixtures and the providers.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/golden.h"
#include "suites/base/paths.h"
#include "suites/cases/offers.h"
#include "suites/cases/plan.h"
#include "suites/run/progress.h"
#include "suites/run/run.h"
#include "suites/run/run_head.h"
#include "suites/run/workers/provider_slot.h"

namespace qcts {

struct RunSetup {
  Plan plan;
  std::vector<std::filesystem::path> folders;  // of fixtures
  Fixtures fixtures;
  ScratchFolder scratch;
  std::vector<ProviderSlot> slots;        // started
  std::map<std::string, size_t> slot_of;  // index in `slots` of each provider that is asked, by name
  OfferTable offers;
  RunHead head;
};

// Reads the plan and the fixtures, and starts the providers. One that cannot be judged is named in
// head.infrastructure. Throws RunError for arguments that name nothing.
std::unique_ptr<RunSetup> set_up(const RunRequest& request, Progress& progress);

// Throws UsageError if a word is not known. `what` is "kind", "scheme", ...
void check_words(const std::string& what, const std::vector<std::string>& words,
                 const std::vector<std::string>& known);

}  // namespace qcts
