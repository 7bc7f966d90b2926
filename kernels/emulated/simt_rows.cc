// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/emulated/simt_rows.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/abi/problem.h"
#include "kernels/cuda/capability.h"
#include "kernels/cuda/failure.h"
#include "kernels/emulated/fake_device.h"
#include "kernels/emulated/simt.h"

namespace qcts::simt {
namespace {

constexpr size_t kReasonBytes = 1536;
thread_local char reason[kReasonBytes] = "";
bool has_checks = false;

uint64_t plane_bytes(const qcts_plane& plane) {
  uint64_t bytes =
      std::max(dtype_bytes(plane.dtype), 1u);  // two float4 share a byte, which counts as one element
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
    if (p.device != 0) add("device_status", p.device_status, sizeof(qcts_device_status), true);
  }
  void add(const char* name, const void* first, uint64_t bytes, bool writable) {
    if (first != nullptr)
      list_.push_back({name, static_cast<const uint8_t*>(first), 1, bytes, bytes, writable});
  }
  std::vector<Buffer> list() && { return std::move(list_); }

 private:
  void add_rows(const char* name, const void* first, int64_t rows, int64_t row_bytes, int64_t stride_bytes,
                bool writable) {
    if (first != nullptr)
      list_.push_back({name, static_cast<const uint8_t*>(first), static_cast<uint64_t>(rows),
                       static_cast<uint64_t>(row_bytes),
                       static_cast<uint64_t>(rows > 1 ? stride_bytes : row_bytes), writable});
  }
  std::vector<Buffer> list_;
};

// The runs of one problem follow schedules 0, 1, 2 and so on. Another problem begins at 0, so that a case
// that is run again meets the same schedules.
uint32_t next_schedule(const qcts_kernel& source, const qcts_problem& p) {
  using Problem = std::array<int64_t, 6>;
  static Problem last = {};
  static uint32_t number = 0;
  if (const char* chosen = std::getenv("QCTS_SCHEDULE")) return static_cast<uint32_t>(std::atoi(chosen));
  const Problem now = {reinterpret_cast<intptr_t>(&source), p.m, p.n, p.k, p.group, p.threads};
  number = now == last ? number + 1 : 0;
  last = now;
  return number;
}

Architecture architecture_of(const qcts_kernel& source, const qcts_problem& p) {
  constexpr uint32_t kHopper = 90;
  const bool is_hopper =
      std::strcmp(source.variant, "sm90a") == 0 || (p.device != 0 && p.device_info->capability >= kHopper);
  return is_hopper ? Architecture::hopper : Architecture::ampere;
}

// Calls call(), which launches kernels of the source. Only one call runs at a time.
template <class Call>
qcts_status execute(const qcts_kernel& source, const qcts_problem& p, Buffers buffers, const Call& call) {
  std::unique_lock lock(executor_mutex());
  const uint32_t number = next_schedule(source, p) % kSchedules;
  Settings settings{schedule(number), architecture_of(source, p), std::move(buffers).list(), has_checks,
                    has_checks && std::getenv("QCTS_COUNT_ACCESSES") != nullptr};
  qcts_status status = QCTS_OK;
  if (p.device != 0) {
    lock.unlock();
    status = enqueue_launches(p.stream, std::move(settings), call);
  } else {
    configure(std::move(settings));
    status = call();
  }
  if (status != QCTS_FAILED) return status;
  char text[kReasonBytes - 64] = "";
  source.failure(text, sizeof text);
  std::snprintf(reason, sizeof reason, "%s (schedule %u)", text, number);
  return status;
}

}  // namespace

qcts_status run_row(const qcts_kernel& source, const qcts_problem& p) {
  return execute(source, p, Buffers(p), [&] { return source.run(&p); });
}

qcts_status prepare_row(const qcts_kernel& source, const qcts_problem& p, void* prepared) {
  Buffers buffers(p);
  buffers.add("prepared", prepared, source.prepared_bytes(&p), true);
  return execute(source, p, std::move(buffers), [&] { return source.prepare(&p, prepared); });
}

std::mutex& executor_mutex() {
  static std::mutex mutex;
  return mutex;
}

const char* executor_refusal(const char* variant, const qcts_problem& problem) {
  if (problem.device == 0) return nullptr;
  if (!has_fake_device()) return "runs on the fake device only (QCTS_CUDA_DRIVER=libqcts_fakecuda.so)";
  return capability_refusal(variant, problem);
}

void failure_of_row(char* why, size_t why_size) { std::snprintf(why, why_size, "%s", reason); }

void check_rows() { has_checks = true; }

}  // namespace qcts::simt
