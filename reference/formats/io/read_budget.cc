// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/read_budget.h"

#include <string>

#include "reference/formats/refusal.h"

namespace qcts {

void ReadBudget::refuse_bytes() const {
  refuse(RefusalClass::LimitExceeded, "what the file holds takes " + std::to_string(bytes_) +
                                          " bytes of memory, more than " + std::to_string(most_bytes_));
}

void ReadBudget::refuse_steps() const {
  refuse(RefusalClass::LimitExceeded,
         "the file's values are used again and again: more than " + std::to_string(most_steps_) + " steps");
}

}  // namespace qcts
