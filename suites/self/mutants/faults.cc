#include "suites/self/mutants/faults.h"

#include <bitset>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace qcts::mutants {
namespace {

constexpr std::string_view kNames[] = {
#define QCTS_MUTANT(kind, id, set, what, public_case) #id,
#include "suites/self/mutants/mutants.inc"
#undef QCTS_MUTANT
};
constexpr size_t kCount = static_cast<size_t>(Fault::count);

std::bitset<kCount> read_environment() {
  std::bitset<kCount> faults;
  const char* text = std::getenv("QCTS_MUTANT");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('+'));
    rest.remove_prefix(name.size() < rest.size() ? name.size() + 1 : rest.size());
    size_t i = 0;
    while (i < kCount && kNames[i] != name) ++i;
    if (i == kCount) throw std::invalid_argument("QCTS_MUTANT: no mutant '" + std::string(name) + "'");
    faults.set(i);
  }
  return faults;
}

const std::bitset<kCount>& faults() {
  static const std::bitset<kCount> set = read_environment();
  return set;
}

struct Reach {
  std::string_view prefix;
  uint32_t op, second_op;
  std::string_view family;  // empty: every one
};
constexpr Reach kReaches[] = {
    {"q8_", QCTS_OP_QUANTIZE, 0, "int8_row"},
    {"q4_", QCTS_OP_QUANTIZE, 0, "int4_tinygemm"},
    {"qf8_", QCTS_OP_QUANTIZE, 0, "fp8_row"},
    {"d8_", QCTS_OP_DEQUANTIZE, 0, "int8_row"},
    {"d4_", QCTS_OP_DEQUANTIZE, 0, "int4_tinygemm"},
    {"df8_", QCTS_OP_DEQUANTIZE, 0, "fp8_row"},
    {"d_", QCTS_OP_DEQUANTIZE, 0, ""},
    {"p4_", QCTS_OP_PACK, QCTS_OP_UNPACK, "int4_tinygemm"},
    {"u4_", QCTS_OP_UNPACK, 0, "int4_tinygemm"},
    {"l8_", QCTS_OP_LINEAR, 0, "int8_row"},
    {"l4_", QCTS_OP_LINEAR, 0, "int4_tinygemm"},
    {"lf8_", QCTS_OP_LINEAR, 0, "fp8_row"},
    {"l_", QCTS_OP_LINEAR, 0, ""},
};

}  // namespace

bool planted(Fault fault) { return faults().test(static_cast<size_t>(fault)); }

bool strikes(uint32_t op, std::string_view family) {
  if (faults().none()) return true;
  for (size_t i = 0; i < kCount; ++i)
    for (const Reach& reach : kReaches)
      if (faults().test(i) && kNames[i].starts_with(reach.prefix) &&
          (op == reach.op || op == reach.second_op) && (reach.family.empty() || reach.family == family))
        return true;
  return false;
}

}  // namespace qcts::mutants
