// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/read_budget.h"

#include <string>

#include "reference/formats/refusal.h"

namespace qcts {

void ReadBudget::refuse_bytes() const {
  refuse(RefusalClass::LimitExceeded, "the file's contents take " + std::to_string(bytes_) +
                                          " bytes of memory, more than " + std::to_string(max_bytes_));
}

void ReadBudget::refuse_steps() const {
  refuse(RefusalClass::LimitExceeded,
         "the file reuses its values too often: more than " + std::to_string(max_steps_) + " steps");
}

}  // namespace qcts
