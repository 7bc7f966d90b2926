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

// false for a variant that a greeted source has said it cannot run here.
bool is_runnable(const Source& source, const std::string& variant);

}  // namespace qcts
