// SPDX-License-Identifier: BSD-3-Clause
// Provider "cudaemu": the device kernels of kernels.inc, run by the executor. Each run of a problem follows
// the next schedule; QCTS_SCHEDULE=0 .. 3 in the environment chooses one for all.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_checks.h"
#include "kernels/families/entry.h"
#include "kernels/machine/machine.h"

namespace qcts {

// Replaces machine.cc in this library: the executor has every feature.
const char* missing_feature(const char*) { return nullptr; }

}  // namespace qcts

namespace {

using qcts::dtype_bytes;
namespace simt = qcts::simt;

#define QCTS_DEVICE_KERNEL(op, scheme, variant) &qcts_kernel_##op##_##scheme##_##variant,
const qcts_kernel* const kSources[] = {
#include "kernels/kernels.inc"
};
constexpr size_t kCount = std::size(kSources);

// The library for tests, which also checks for races and counts sectors (simt_checks.h).
#if defined(QCTS_CHECKED)
constexpr bool kChecked = true;
#else
constexpr bool kChecked = false;
#endif

constexpr size_t kReasonBytes = 1536;
thread_local char reason[kReasonBytes] = "";

uint64_t plane_bytes(const qcts_plane& plane) {
  uint64_t bytes = std::max(dtype_bytes(plane.dtype), 1u);  // two float4 share a byte, which is their element
  for (uint32_t d = 0; d < plane.ndim; ++d) bytes *= static_cast<uint64_t>(plane.shape[d]);
  return bytes;
}

class Buffers {
 public:
  explicit Buffers(const qcts_problem& p) {
    for (uint32_t i = 0; i < p.n_planes; ++i)
      add(p.planes[i].name, p.planes[i].data, plane_bytes(p.planes[i]), false);
    for (uint32_t i = 0; i < p.n_out_planes; ++i)
      add(p.out_planes[i].name, p.out_planes[i].data, plane_bytes(p.out_planes[i]), true);
    const bool of_weight = p.op == QCTS_OP_QUANTIZE || p.op == QCTS_OP_DEQUANTIZE;
    add_rows("x", p.x, of_weight ? p.n : p.m, p.k * dtype_bytes(of_weight ? p.w_dtype : p.x_dtype),
             p.ldx_bytes, false);
    add_rows("y", p.y, of_weight ? p.n : p.m,
             of_weight ? p.k * dtype_bytes(p.w_dtype) : p.n * dtype_bytes(p.y_dtype), p.ldy_bytes, true);
    add("bias", p.bias, static_cast<uint64_t>(p.n) * dtype_bytes(p.bias_dtype), false);
    add("prepared", p.prepared, p.prepared_bytes, false);
    add("workspace", p.workspace, p.workspace_bytes, true);
  }
  void add(const char* name, const void* first, uint64_t bytes, bool writable) {
    if (first != nullptr)
      list_.push_back({name, static_cast<const uint8_t*>(first), 1, bytes, bytes, writable});
  }
  std::vector<simt::Buffer> list() && { return std::move(list_); }

 private:
  void add_rows(const char* name, const void* first, int64_t rows, int64_t row_bytes, int64_t stride_bytes,
                bool writable) {
    if (first != nullptr)
      list_.push_back({name, static_cast<const uint8_t*>(first), static_cast<uint64_t>(rows),
                       static_cast<uint64_t>(row_bytes),
                       static_cast<uint64_t>(rows > 1 ? stride_bytes : row_bytes), writable});
  }
  std::vector<simt::Buffer> list_;
};

// The runs of one problem follow schedule 0, 1, 2, ...; another problem begins at 0, so that a case that is
// run again meets the same schedules.
uint32_t next_schedule(size_t kernel, const qcts_problem& p) {
  static std::array<int64_t, 6> last = {};
  static uint32_t number = 0;
  if (const char* chosen = std::getenv("QCTS_SCHEDULE")) return static_cast<uint32_t>(std::atoi(chosen));
  const std::array<int64_t, 6> now = {static_cast<int64_t>(kernel), p.m, p.n, p.k, p.group, p.threads};
  number = now == last ? number + 1 : 0;
  last = now;
  return number;
}

// Calls call(source) in the executor, one launch at a time.
template <class Call>
qcts_status execute(size_t kernel, const qcts_problem& p, Buffers buffers, const Call& call) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const qcts_kernel& source = *kSources[kernel];
  const uint32_t number = next_schedule(kernel, p) % simt::kSchedules;
  simt::configure(
      {simt::schedule(number),
       std::strcmp(source.variant, "sm90a") == 0 ? simt::Architecture::hopper : simt::Architecture::ampere,
       std::move(buffers).list(), kChecked, kChecked && std::getenv("QCTS_COUNT_ACCESSES") != nullptr});
  const qcts_status status = call(source);
  if (status != QCTS_FAILED) return status;
  char text[kReasonBytes - 64] = "";
  source.failure(text, sizeof text);
  std::snprintf(reason, sizeof reason, "%s (schedule %u)", text, number);
  return status;
}

template <size_t kKernel>
qcts_status run_numbered(const qcts_problem* p) {
  return execute(kKernel, *p, Buffers(*p), [p](const qcts_kernel& source) { return source.run(p); });
}
template <size_t kKernel>
qcts_status prepare_numbered(const qcts_problem* p, void* prepared) {
  Buffers buffers(*p);
  const qcts_kernel& source = *kSources[kKernel];
  buffers.add("prepared", prepared, source.prepared_bytes(p), true);
  return execute(kKernel, *p, std::move(buffers),
                 [=](const qcts_kernel& kernel) { return kernel.prepare(p, prepared); });
}

struct Tables {
  std::array<std::string, kCount> descriptions;
  std::array<qcts_kernel, kCount> kernels = {};
  std::array<const qcts_kernel*, kCount> pointers = {};
  qcts_provider provider = {};

  Tables() {
    add(std::make_index_sequence<kCount>());
    provider.struct_size = sizeof provider;
    provider.abi_version = QCTS_ABI_VERSION;
    provider.name = kChecked ? "cudachecked" : "cudaemu";
    provider.version = "executor";
    provider.n_kernels = static_cast<uint32_t>(kCount);
    provider.kernels = pointers.data();
  }

 private:
  template <size_t... kIndex>
  void add(std::index_sequence<kIndex...>) {
    (add_one<kIndex>(), ...);
  }
  template <size_t kIndex>
  void add_one() {
    const qcts_kernel& source = *kSources[kIndex];
    qcts_kernel& kernel = kernels[kIndex] = source;
    descriptions[kIndex] = std::string("emulated GPU: ") + source.description;
    kernel.description = descriptions[kIndex].c_str();
    kernel.claims |= QCTS_CLAIM_EMULATED | QCTS_CLAIM_SCHEDULES;
    kernel.run = run_numbered<kIndex>;
    if (source.prepare != nullptr) kernel.prepare = prepare_numbered<kIndex>;
    kernel.failure = [](char* why, size_t why_size) { std::snprintf(why, why_size, "%s", reason); };
    pointers[kIndex] = &kernel;
  }
};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  static const Tables tables;
  return host_abi_version >= QCTS_ABI_VERSION ? &tables.provider : nullptr;
}

#if defined(QCTS_CHECKED)
// What the last run asked of memory, in the order of simt::AccessCounts; 0 unless QCTS_COUNT_ACCESSES is set.
extern "C" QCTS_EXPORT void qcts_cudachecked_counts(uint64_t counts[6]) {
  const simt::AccessCounts of = simt::access_counts();
  const uint64_t values[] = {of.sectors_read,    of.ideal_sectors_read,
                             of.sectors_written, of.ideal_sectors_written,
                             of.turns,           of.ideal_turns};
  std::copy(std::begin(values), std::end(values), counts);
}
#endif
