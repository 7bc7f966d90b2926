// SPDX-License-Identifier: BSD-3-Clause
// The static tables of a report (providers, schemes, goldens, choices, readers), cut down to what ran.
#pragma once

#include "reports/report.h"

namespace qcts {

// Keeps, of every static table, the rows that a verdict of the report is about. A run that nothing narrowed
// keeps them all.
void keep_rows_of_what_ran(RunReport& report);

}  // namespace qcts
