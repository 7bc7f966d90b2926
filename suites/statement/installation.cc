// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/installation.h"

#include "suites/base/paths.h"
#include "suites/cases/conformance/mustpass.h"
#include "suites/cases/plan.h"
#include "suites/run/environment/environment.h"
#include "suites/run/run_report.h"

namespace qcts {

std::string other_installation(const RunHead& head) {
  const std::filesystem::path mustpass = repository_root() / "suites" / "mustpass" / "default.txt";
  const struct {
    const char* name;
    const std::string &there, here;
  } fields[] = {{"suite_version", head.suite_version, suite_version()},
                {"plan", head.plan, kCompletePlan},
                {"plan_sha256", head.plan_sha256, file_sha256(plan_path(kCompletePlan))},
                {"mustpass_sha256", head.mustpass_sha256, mustpass_sha256(load_mustpass(mustpass))},
                {"fixtures_sha256", head.fixtures_sha256, fixtures_sha256({fixtures_folder()})}};
  for (const auto& [name, there, here] : fields)
    if (there != here) return std::string(name) + ": " + there + " there, " + here + " here";
  return "";
}

}  // namespace qcts
