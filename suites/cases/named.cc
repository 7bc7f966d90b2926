// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/named.h"

#include <unistd.h>

#include "suites/base/did_you_mean.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/providers/reference_provider.h"

namespace qcts {
namespace fs = std::filesystem;

Plan named_plan(const std::string& name) {
  const fs::path path = plan_path(name);
  if (!fs::exists(path)) throw UsageError("no plan '" + name + "'" + did_you_mean(name, plan_names()));
  try {
    return load_plan(path);
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

void check_provider_path(const fs::path& path) {
  if (!fs::exists(path)) throw UsageError("no provider " + path.string());
  const bool is_file = fs::is_regular_file(path);
  if (is_file && is_shared_library(path)) return;
  if (!is_file || ::access(path.c_str(), X_OK) != 0)
    throw UsageError(path.string() +
                     " is not a provider: neither a shared library (.so) nor an executable file");
}

std::string located_provider(const std::string& name) {
  if (name == "builtin" || name == kReferenceProvider) return name;
  if (!fs::exists(name))
    throw UsageError("no provider " + name + did_you_mean(name, {"builtin", kReferenceProvider}));
  return fs::absolute(name).string();
}

}  // namespace qcts
