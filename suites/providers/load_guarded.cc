// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/load_guarded.h"

#include "suites/providers/provider_call.h"

namespace qcts {

std::string load_guarded(Registry& registry, const std::filesystem::path& library) {
  const uint32_t before = float_control();
  try {
    registry.load(library);
  } catch (...) {
    set_float_control(before);
    throw;
  }
  const std::string change = float_control_change(before, float_control());
  set_float_control(before);
  return change;
}

}  // namespace qcts
