// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/mutants/faults.h"

#include <cstdlib>

#include "suites/selftest/mutants/codes.h"

namespace qcts::mutants {
namespace {

constexpr std::string_view kNames[] = {
#define QCTS_MUTANT(kind, id, set, what, public_case) #id,
#include "suites/selftest/mutants/mutants.inc"
#undef QCTS_MUTANT
};
constexpr size_t kCount = static_cast<size_t>(Fault::count);

std::string_view environment() {
  const char* text = std::getenv("QCTS_MUTANT");
  return text == nullptr ? "" : text;
}

// Calls visit(name) for each name of the environment.
template <typename Visit>
void for_each_name(Visit visit) {
  std::string_view rest = environment();
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('+'));
    rest.remove_prefix(name.size() < rest.size() ? name.size() + 1 : rest.size());
    visit(name);
  }
}

size_t index_of(std::string_view name) {
  size_t i = 0;
  while (i < kCount && kNames[i] != name) ++i;
  return i;
}

std::array<bool, kCount> read_environment() {
  std::array<bool, kCount> faults{};
  for_each_name([&](std::string_view name) {
    if (const size_t i = index_of(name); i < kCount) faults[i] = true;
  });
  return faults;
}

struct Reach {
  std::string_view prefix;
  uint32_t op, second_op;
  std::string_view scheme;  // of the kernel; empty: the first three families
};
constexpr std::string_view kTokenX = "intx:dyn_token_asym", kFp8X = "fp8_row:dyn_row",
                           kMxX = "mx:dyn_block32",
                           kNvfp4X = "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16";
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
    {"a8_", QCTS_OP_QUANTIZE_ACTIVATION, 0, kInt8X},
    {"ai_", QCTS_OP_QUANTIZE_ACTIVATION, 0, kTokenX},
    {"af8_", QCTS_OP_QUANTIZE_ACTIVATION, 0, kFp8X},
    {"amx_", QCTS_OP_QUANTIZE_ACTIVATION, 0, kMxX},
    {"anv_", QCTS_OP_QUANTIZE_ACTIVATION, 0, kNvfp4X},
    {"qmx_", QCTS_OP_QUANTIZE, 0, "mx"},
    {"qnv_", QCTS_OP_QUANTIZE, 0, "nvfp4"},
    {"qnf_", QCTS_OP_QUANTIZE, 0, "nf4"},
    {"qix_", QCTS_OP_QUANTIZE, 0, "intx"},
    {"qip_", QCTS_OP_QUANTIZE, 0, "int4_plain"},
    {"qtq_", QCTS_OP_QUANTIZE, 0, "tinyq"},
    {"qsp_", QCTS_OP_QUANTIZE, 0, "fp8_sparse24"},
    {"dmx_", QCTS_OP_DEQUANTIZE, 0, "mx"},
    {"dnv_", QCTS_OP_DEQUANTIZE, 0, "nvfp4"},
    {"dnf_", QCTS_OP_DEQUANTIZE, 0, "nf4"},
    {"dix_", QCTS_OP_DEQUANTIZE, 0, "intx"},
    {"dip_", QCTS_OP_DEQUANTIZE, 0, "int4_plain"},
    {"dtq_", QCTS_OP_DEQUANTIZE, 0, "tinyq"},
    {"dsp_", QCTS_OP_DEQUANTIZE, 0, "fp8_sparse24"},
    {"ps_", QCTS_OP_PACK, 0, "mx"},
    {"ps_", QCTS_OP_PACK, 0, "nvfp4"},
    {"us_", QCTS_OP_UNPACK, 0, "mx"},
    {"us_", QCTS_OP_UNPACK, 0, "nvfp4"},
    {"pb_", QCTS_OP_PACK, QCTS_OP_UNPACK, "mx"},
    {"pb_", QCTS_OP_PACK, QCTS_OP_UNPACK, "nvfp4"},
    {"pi_", QCTS_OP_PACK, QCTS_OP_UNPACK, "int4_plain"},
    {"w8_", QCTS_OP_LINEAR, 0, kInt8X},
    {"da_", QCTS_OP_LINEAR, 0, kTokenX},
    {"lfd_", QCTS_OP_LINEAR, 0, kFp8X},
    {"lmd_", QCTS_OP_LINEAR, 0, kMxX},
    {"lnd_", QCTS_OP_LINEAR, 0, kNvfp4X},
    {"lmx_", QCTS_OP_LINEAR, 0, "mx"},
    {"lnv_", QCTS_OP_LINEAR, 0, "nvfp4"},
    {"lnf_", QCTS_OP_LINEAR, 0, "nf4"},
    {"lix_", QCTS_OP_LINEAR, 0, "intx"},
    {"lip_", QCTS_OP_LINEAR, 0, "int4_plain"},
    {"ltq_", QCTS_OP_LINEAR, 0, "tinyq"},
    {"lsp_", QCTS_OP_LINEAR, 0, "fp8_sparse24"},
};

bool is_first_family(std::string_view scheme) {
  return scheme == "int8_row" || scheme == "int4_tinygemm" || scheme == "fp8_row";
}

}  // namespace

const std::array<bool, kCount> kPlanted = read_environment();

std::string_view unknown_fault() {
  std::string_view unknown;
  for_each_name([&](std::string_view name) {
    if (index_of(name) == kCount) unknown = name;
  });
  return unknown;
}

uint32_t file_claims() {
  const char* claims = std::getenv("QCTS_MUTANT_CLAIMS");
  return claims != nullptr && std::string_view(claims) == "none" ? 0 : QCTS_CLAIM_KEEPS_BYTES;
}

bool strikes(uint32_t op, std::string_view scheme) {
  bool any = false;
  for (size_t i = 0; i < kCount; ++i) {
    any = any || kPlanted[i];
    for (const Reach& reach : kReaches)
      if (kPlanted[i] && kNames[i].starts_with(reach.prefix) && (op == reach.op || op == reach.second_op) &&
          (reach.scheme.empty() ? is_first_family(scheme) : reach.scheme == scheme))
        return true;
  }
  return !any;
}

}  // namespace qcts::mutants
