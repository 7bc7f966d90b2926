#include "suites/cases/case.h"

#include <algorithm>

namespace qcts {
bool is_program(const Golden& golden) {
  return std::find(golden.flags.begin(), golden.flags.end(), "torchscript") != golden.flags.end();
}

std::string Case::provider() const {
  if (runner != nullptr) return runner->name;
  if (kind == Kind::round_trip && golden != nullptr && is_program(*golden)) return kAbsentRunner;
  return implementation == nullptr ? "qcts" : implementation->provider;
}

std::string Case::variant() const {
  if (runner != nullptr) return kProgramVariant;
  return implementation == nullptr ? "" : implementation->kernel->variant;
}

std::string Case::full_id() const { return judges_file() ? id : id + "/" + provider() + "_" + variant(); }

double latency_weight(std::string_view id) {
  constexpr double kPrefillWeight = 4;
  for (size_t at = id.find("_m"); at != id.npos; at = id.find("_m", at + 1)) {
    size_t end = at + 2;
    int64_t m = 0;
    while (end < id.size() && id[end] >= '0' && id[end] <= '9' && m < 1'000'000)
      m = 10 * m + (id[end++] - '0');
    if (end > at + 2 && id.substr(end).starts_with("_n")) return m >= kPrefillRows ? kPrefillWeight : 1;
  }
  return 1;
}

}  // namespace qcts
