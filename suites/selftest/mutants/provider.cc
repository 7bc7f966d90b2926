// SPDX-License-Identifier: BSD-3-Clause
// Provider "mutant": correct kernels with the faults that QCTS_MUTANT plants. It serves the ops that a
// planted fault touches, and all of them when none is.
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/more.h"
#include "suites/selftest/mutants/weights.h"

namespace qcts::mutants {

qcts_kernel entry_of(const qcts_kernel& kernel) {
  using enum Fault;
  qcts_kernel entry = kernel;
  if (planted(l_threads_lose_tail_unclaimed) || planted(w8_threads_lose_tail_unclaimed) ||
      planted(q8_threads_lose_tail_unclaimed) || planted(d8_threads_lose_tail_unclaimed) ||
      planted(a8_threads_lose_tail_unclaimed))
    entry.claims &= ~static_cast<uint32_t>(QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT);
  if ((planted(l8_prepared_by_m) || planted(l8_prepares_for_rows)) && &kernel == &linear_int8_row) {
    entry.prepared_bytes = prepared_bytes;
    entry.prepare = prepare_int8;
  }
  return entry;
}

}  // namespace qcts::mutants

namespace {

namespace mutants = qcts::mutants;

const qcts_provider* make_provider() {
  static std::deque<qcts_kernel> entries;
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
    if (mutants::strikes(kernel->op, kernel->scheme))
      kernels.push_back(&entries.emplace_back(mutants::entry_of(*kernel)));
  static qcts_provider provider = {};
  provider.struct_size = sizeof provider;
  provider.abi_version = QCTS_ABI_VERSION;
  provider.name = "mutant";
  provider.version = "1";
  provider.choices = QCTS_CHOICE_HOSTILE_INPUTS;
  provider.n_kernels = static_cast<uint32_t>(kernels.size());
  provider.kernels = kernels.data();
  provider.claims = mutants::file_claims();
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
  return host_abi_version >= QCTS_ABI_VERSION ? provider : nullptr;
}
