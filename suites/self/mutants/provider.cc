// Provider "mutant": right kernels with the faults that QCTS_MUTANT plants. It serves the ops that a planted
// fault touches, and all of them when none is.
#include <cstdio>
#include <string>
#include <vector>

#include "suites/self/mutants/faults.h"

namespace {

namespace mutants = qcts::mutants;

const qcts_provider* make_provider() {
  static std::vector<const qcts_kernel*> kernels;
  for (const qcts_kernel* kernel :
       {&mutants::quantize_int8_row, &mutants::quantize_int4_tinygemm, &mutants::quantize_fp8_row,
        &mutants::dequantize_int8_row, &mutants::dequantize_int4_tinygemm, &mutants::dequantize_fp8_row,
        &mutants::pack_int4_tinygemm, &mutants::unpack_int4_tinygemm, &mutants::linear_int8_row,
        &mutants::linear_int4_tinygemm, &mutants::linear_fp8_row})
    if (mutants::strikes(kernel->op, kernel->scheme)) kernels.push_back(kernel);
  static qcts_provider provider = {};
  provider.struct_size = sizeof provider;
  provider.abi_version = QCTS_ABI_VERSION;
  provider.name = "mutant";
  provider.version = "1";
  provider.n_kernels = static_cast<uint32_t>(kernels.size());
  provider.kernels = kernels.data();
  provider.claims = QCTS_CLAIM_KEEPS_BYTES;
  provider.load_save = mutants::load_save;
  return &provider;
}

}  // namespace

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  if (const std::string_view name = mutants::unknown_fault(); !name.empty()) {
    std::fprintf(stderr, "QCTS_MUTANT: no mutant '%s'\n", std::string(name).c_str());
    return nullptr;
  }
  static const qcts_provider* const provider = make_provider();
  return host_abi_version == QCTS_ABI_VERSION ? provider : nullptr;
}
