// Provider "mutant": right kernels with the faults that QCTS_MUTANT plants. It serves the ops that a planted
// fault touches, and all of them when none is.
#include <cstdio>
#include <string>
#include <vector>

#include "suites/self/mutants/faults.h"
#include "suites/self/mutants/more.h"

namespace {

namespace mutants = qcts::mutants;

const qcts_provider* make_provider() {
  static std::vector<const qcts_kernel*> kernels;
  for (const qcts_kernel* kernel : {&mutants::quantize_int8_row,
                                    &mutants::quantize_int4_tinygemm,
                                    &mutants::quantize_fp8_row,
                                    &mutants::dequantize_int8_row,
                                    &mutants::dequantize_int4_tinygemm,
                                    &mutants::dequantize_fp8_row,
                                    &mutants::pack_int4_tinygemm,
                                    &mutants::unpack_int4_tinygemm,
                                    &mutants::linear_int8_row,
                                    &mutants::linear_int4_tinygemm,
                                    &mutants::linear_fp8_row,
                                    &mutants::quantize_mx,
                                    &mutants::quantize_nvfp4,
                                    &mutants::quantize_nf4,
                                    &mutants::quantize_intx,
                                    &mutants::quantize_int4_plain,
                                    &mutants::quantize_tinyq,
                                    &mutants::quantize_fp8_sparse24,
                                    &mutants::activation_int8_row,
                                    &mutants::activation_intx,
                                    &mutants::activation_fp8_row,
                                    &mutants::activation_mx,
                                    &mutants::activation_nvfp4,
                                    &mutants::dequantize_mx,
                                    &mutants::dequantize_nvfp4,
                                    &mutants::dequantize_nf4,
                                    &mutants::dequantize_intx,
                                    &mutants::dequantize_int4_plain,
                                    &mutants::dequantize_tinyq,
                                    &mutants::dequantize_fp8_sparse24,
                                    &mutants::linear_mx,
                                    &mutants::linear_nvfp4,
                                    &mutants::linear_nf4,
                                    &mutants::linear_intx,
                                    &mutants::linear_int4_plain,
                                    &mutants::linear_tinyq,
                                    &mutants::linear_fp8_sparse24,
                                    &mutants::linear_int8_row_dyn,
                                    &mutants::linear_intx_dyn,
                                    &mutants::linear_fp8_row_dyn,
                                    &mutants::linear_mx_dyn,
                                    &mutants::linear_nvfp4_dyn,
                                    &mutants::pack_mx,
                                    &mutants::unpack_mx,
                                    &mutants::pack_nvfp4,
                                    &mutants::unpack_nvfp4,
                                    &mutants::pack_int4_plain,
                                    &mutants::unpack_int4_plain})
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
