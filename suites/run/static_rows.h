// SPDX-License-Identifier: BSD-3-Clause
// Reduces the static tables of a report (providers, schemes, goldens, choices, readers) to the rows of cases
// that ran.
#pragma once

#include "reports/report.h"

namespace qcts {

// Keeps the rows of each static table that a verdict of the report is about. A run of everything keeps all
// rows.
void keep_rows_of_what_ran(RunReport& report);

}  // namespace qcts
