// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/stated_run.h"

#include "reports/page/page.h"
#include "suites/base/run_error.h"
#include "suites/statement/verify.h"

namespace qcts {

std::string statement_line(const std::filesystem::path& folder) {
  VerifyRequest request;
  request.statement = folder / "statement.json";
  request.run = folder;
  if (!std::filesystem::exists(request.statement)) return kNoStatement;
  const VerifyResult checked = verify_statement(request);
  if (!checked.faults.empty())
    throw Failure("refused: " + request.statement.string() + ": " + checked.faults.front());
  return "statement: " + checked.product + " of " + checked.vendor + ", " + checked.signature;
}

}  // namespace qcts
