// SPDX-License-Identifier: BSD-3-Clause
// Provider "cudaclock": the kernels that measure a GPU (README.md).
#include <array>
#include <cstring>
#include <iterator>

#include "kernels/cuda/capability.h"
#include "kernels/cuda/failure.h"
#include "kernels/cudaclock/roofs.h"

namespace {

using namespace qcts::cudaclock;

qcts_status refuse(const char* reason, char* why, size_t why_size) {
  if (reason == nullptr) return QCTS_OK;
  if (why != nullptr && why_size > 0) {
    std::strncpy(why, reason, why_size - 1);
    why[why_size - 1] = '\0';
  }
  return QCTS_UNSUPPORTED;
}

template <bool kNewer>
qcts_status supports_on(const qcts_problem* problem, char* why, size_t why_size) {
  return refuse(problem->device == 0 ? "measures a CUDA device"
                                     : qcts::capability_refusal(kNewer ? "sm90a" : "sm80", *problem),
                why, why_size);
}

struct Roof {
  const char* scheme;
  bool is_newer;  // sm90a
  qcts_status (*run)(const qcts_problem*);
  const char* description;
};
constexpr Roof kRoofs[] = {
    {"roof_empty", false, run_empty_sm80, "does nothing"},
    {"roof_read", false, run_read_sm80, "loads of 16 bytes"},
    {"roof_read", true, run_read_sm90a, "bulk copies of 8 KiB"},
    {"roof_bf16", false, run_bf16_sm80, "mma.sync m16n8k16 in registers"},
    {"roof_bf16", true, run_bf16_sm90a, "wgmma m64n128k16"},
    {"roof_e4m3", true, run_e4m3_sm90a, "wgmma m64n128k32"},
    {"roof_s8", false, run_s8_sm80, "mma.sync m16n8k32 in registers"},
    {"roof_s8", true, run_s8_sm90a, "wgmma m64n128k32"},
};

struct Table {
  std::array<qcts_kernel, std::size(kRoofs)> rows{};
  std::array<const qcts_kernel*, std::size(kRoofs)> kernels{};
  qcts_provider provider{};
  Table() {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Roof& roof = kRoofs[i];
      qcts_kernel& row = rows[i];
      row.struct_size = sizeof row;
      row.op = QCTS_OP_LINEAR;
      row.scheme = roof.scheme;
      row.variant = roof.is_newer ? "sm90a" : "sm80";
      row.description = roof.description;
      row.claims = QCTS_CLAIM_CAPTURABLE;
      row.numerics.struct_size = sizeof row.numerics;
      row.fused_sums.struct_size = sizeof row.fused_sums;
      row.supports = roof.is_newer ? supports_on<true> : supports_on<false>;
      row.run = roof.run;
      row.failure = qcts::last_failure;
      row.align_bytes = 16;
      kernels[i] = &row;
    }
    provider.struct_size = sizeof provider;
    provider.abi_version = QCTS_ABI_VERSION;
    provider.name = "cudaclock";
    provider.version = "nvcc";
    provider.n_kernels = static_cast<uint32_t>(kernels.size());
    provider.kernels = kernels.data();
  }
};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  static const Table table;
  return host_abi_version >= QCTS_ABI_VERSION ? &table.provider : nullptr;
}
