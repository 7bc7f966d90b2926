// SPDX-License-Identifier: BSD-3-Clause
// The providers that a run asks, and what their workers are told. The parent never loads a provider.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "suites/run/run.h"
#include "suites/run/supervisor.h"

namespace qcts {

// A word for each: the name of one of this program's own, or the path of a shared library. Throws RunError.
std::vector<std::string> provider_words(const RunRequest& request);

// The source behind such a word, not greeted yet. `folders`: of fixtures.
Source source_for(const std::string& word, const RunRequest& request,
                  const std::vector<std::filesystem::path>& folders, const std::filesystem::path& logs,
                  const std::filesystem::path& scratch);

// The name by which a provider behind such a word is known before it has been started: "builtin" for
// "builtin", "aten" for ".../libqcts_aten.so", empty for a vendor's library.
std::string provider_of_word(const std::string& word);
// Can the provider behind the word have a case that the selection takes? False only where the selection names
// other providers or kinds that it never judges, so that it need not be started.
bool may_judge(const std::string& word, const Selection& selection);

// false for a variant that a greeted source has said it cannot run here.
bool is_runnable(const Source& source, const std::string& variant);

}  // namespace qcts
