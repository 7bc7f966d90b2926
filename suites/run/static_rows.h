// SPDX-License-Identifier: BSD-3-Clause
// Reduces the static tables of a report to the rows of cases that ran.
// The tables are providers, schemes, goldens, choices and readers.
#pragma once

#include "reports/report.h"

namespace qcts {

// Keeps only the rows of each static table that belong to a verdict of the report.
// A run of everything keeps all rows.
void keep_rows_of_what_ran(RunReport& report);

}  // namespace qcts
