// SPDX-License-Identifier: BSD-3-Clause
// Provider "cudamutant": runs device kernels in the executor, with the fault of kind cuda that QCTS_MUTANT
// plants. It serves the kernel that has the fault, and all of them if no fault is planted.
#include <cstdio>
#include <deque>
#include <string_view>
#include <vector>

#include "kernels/emulated/simt_rows.h"
#include "kernels/families/entry.h"
#include "kernels/machine/machine.h"
#include "suites/selftest/cuda_mutants/kernels.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts {

// As in provider cudaemu.
const char* missing_feature(const char*) { return nullptr; }
const char* misplaced(const char* variant, const qcts_problem& problem) {
  return simt::executor_refusal(variant, problem);
}

namespace cuda_mutants {
namespace {

using mutants::Fault;
using mutants::planted;
using enum mutants::Fault;

// The row of kSource. Its run() gets the problem as the planted fault changes it.
template <const qcts_kernel& kSource>
const qcts_kernel kChanged = [] {
  qcts_kernel row = kSource;
  row.run = [](const qcts_problem* problem) { return run_changed(*problem, kSource.run); };
  return row;
}();

struct Row {
  qcts_kernel (*executed)(const char* description);
  std::vector<Fault> faults;
};
template <const qcts_kernel& kSource>
Row row_of(std::vector<Fault> faults) {
  return {simt::executed_row<kChanged<kSource>>, std::move(faults)};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      row_of<qcts_kernel_linear_int4_tinygemm_sm80>({g_copies_awaited_late, g_left_out_copy_reads,
                                                     g_group_of_tile, g_scales_end_at_group_size,
                                                     g_tiles_of_other_lanes}),
      row_of<qcts_kernel_linear_int4_plain_sm80>({g_no_loop_barrier, g_scales_by_column}),
      row_of<qcts_kernel_linear_mx_sm80>({g_whole_tiles_only, g_tail_after_whole_rounds}),
      row_of<qcts_kernel_linear_int8_row_sm80>({g_x_rows_touch, g_pitch_of_four_bytes, g_sums_in_f16}),
      row_of<qcts_kernel_linear_fp8_row_sm80>({g_sums_keep_13_bits, g_width_of_three_tiles}),
      row_of<qcts_kernel_linear_fp8_row_dyn_sm90a>({g_slot_released_early, g_slot_not_awaited,
                                                    g_no_async_fence, g_box_column_frozen,
                                                    g_box_base_rounded}),
      row_of<qcts_kernel_quantize_int8_row_sm80>({g_stage_filled_again}),
      row_of<qcts_kernel_dequantize_int8_row_sm80>({g_no_warp_sync, g_rows_on_grid_y}),
      row_of<quantize_intx>({g_one_group_size_halved}),
      row_of<quantize_mx>({g_maximum_of_half, g_maximum_through_bf16, g_fraction_in_e8m0}),
      row_of<quantize_fp8_row>({g_f8_reciprocal}),
      row_of<quantize_fp8_sparse24>({g_minus_zero_stays}),
      row_of<activation_fp8>({g_f8_overflow_is_nan}),
      row_of<activation_fp8_row>({g_unaligned_maximum_signed}),
      row_of<dequantize_fp8_row>({g_y_taken_as_aligned}),
      row_of<pack_mx>({g_plain_scales_padded}),
      row_of<unpack_mx>({g_padded_scales_as_data}),
  };
  return all;
}

const qcts_provider* make_provider() {
  static std::deque<qcts_kernel> entries;
  static std::vector<const qcts_kernel*> kernels;
  const auto serve = [](bool all) {
    for (const Row& row : rows())
      for (const Fault fault : row.faults)
        if (all || planted(fault)) {
          kernels.push_back(&entries.emplace_back(row.executed("a device kernel in the executor")));
          break;
        }
  };
  serve(false);
  if (kernels.empty()) serve(true);
  static qcts_provider provider = {};
  provider.struct_size = sizeof provider;
  provider.abi_version = QCTS_ABI_VERSION;
  provider.name = "cudamutant";
  provider.version = "1";
  provider.choices = QCTS_CHOICE_HOSTILE_INPUTS;
  provider.n_kernels = static_cast<uint32_t>(kernels.size());
  provider.kernels = kernels.data();
  return &provider;
}

}  // namespace
}  // namespace cuda_mutants
}  // namespace qcts

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  if (const std::string_view name = qcts::mutants::unknown_fault(); !name.empty()) {
    std::fprintf(stderr, "QCTS_MUTANT: no mutant '%s'\n", std::string(name).c_str());
    return nullptr;
  }
  static const qcts_provider* const provider = qcts::cuda_mutants::make_provider();
  return host_abi_version >= QCTS_ABI_VERSION ? provider : nullptr;
}
