// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cuda_mutants/instructions.h"

#include <cstring>
#include <vector>

#include "kernels/abi/problem.h"
#include "suites/selftest/cuda_mutants/kernels.h"
#include "suites/selftest/mutants/faults.h"

namespace qcts::cuda_mutants {
namespace {

using mutants::Fault;
using mutants::planted;
using enum mutants::Fault;

const qcts_problem* running = nullptr;

// The state of each thread of the block.
constexpr uint32_t kMaxThreads = 1024, kWarpLanes = 32;
uint32_t syncs[kMaxThreads];
bool postponed[kMaxThreads];  // its wait for wgmma is postponed

constexpr int64_t kTileColumns = 64;
constexpr uint32_t kTileThreads = 128, kMaxGridY = 65535;

// Returns how many of the `tiles` tiles of 64 columns the fault launches.
int64_t launched_tiles(int64_t tiles) {
  if (planted(g_whole_tiles_only)) return running->n / kTileColumns;
  return planted(g_width_of_three_tiles) && tiles % 3 == 0 ? tiles - 1 : tiles;
}

// A plane of the weight. `index` is the element of the plane that begins at or before the address `at`.
struct Element {
  const uint8_t* plane;
  int64_t bytes, index;
  const uint8_t* at(int64_t other, int64_t offset) const { return plane + other * bytes + offset; }
};
bool find_element(const uint8_t* at, const char* name, int64_t bytes, int64_t count, Element& found) {
  const auto* plane = static_cast<const uint8_t*>(plane_data(running->planes, running->n_planes, name));
  if (plane == nullptr || at < plane || at >= plane + count * bytes) return false;
  found = {plane, bytes, (at - plane) / bytes};
  return true;
}

// Returns the address at which the fault reads the scale of (group, n) of int4, or nullptr if it takes a 0.
// Scales are [groups, n].
const uint8_t* misread_scale(const Element& of, int64_t offset) {
  const int64_t n = of.index % running->n, group = of.index / running->n;
  const int64_t size = running->group, groups = running->k / size;
  if (planted(g_group_of_tile) && running->m == 1)
    return of.at(group * size / kTileColumns * (kTileColumns / size) * running->n + n, offset);
  if (planted(g_scales_end_at_group_size) && group >= size) return nullptr;
  if (planted(g_scales_by_column) && running->m > 1) return of.at(n * groups + group, offset);
  return of.at(of.index, offset);
}

// Returns the index in a row of x at which a GEMM with these stages (kernels/sm80/gemm_block.h) stops adding.
// It does not add the rest of k from there on.
int64_t end_of_whole_rounds() {
  const qcts_problem& p = *running;
  const bool has_nibbles = scheme_params(p).element_dtype == QCTS_F4_E2M1_X2;
  const int64_t tile = has_nibbles ? 128 : 64, stages = p.m <= 16 ? 5 : 3, whole = p.k / tile;
  const bool lost = p.m > 4 && whole > 0 && whole % stages == 0;
  return lost ? whole * tile : p.k;
}

// Returns the address that the kernel reads instead of `address`, or nullptr if it takes a 0.
const void* misread(const void* address) {
  if (running == nullptr) return address;
  const auto* at = static_cast<const uint8_t*>(address);
  const qcts_problem& p = *running;
  Element found;
  if (planted(g_group_of_tile) || planted(g_scales_end_at_group_size) || planted(g_scales_by_column)) {
    const int64_t count = p.n * p.k / p.group, bytes = dtype_bytes(p.w_dtype);
    if (find_element(at, "scale_and_zero", 2 * bytes, count, found) ||
        find_element(at, "scale", bytes, count, found) || find_element(at, "zero_point", bytes, count, found))
      return misread_scale(found, (at - found.plane) % found.bytes);
  }
  if (planted(g_tiles_of_other_lanes) && is_tile_packed(p.layout)) {
    const int64_t tiles = (p.n + 7) / 8 * ((p.k + 1023) / 1024 * 8);
    if (find_element(at, "qdata", 16, 32 * tiles, found))
      return found.at(found.index ^ 1, (at - found.plane) % 16);
  }
  if (planted(g_pitch_of_four_bytes) && find_element(at, "qdata", 1, p.n * p.k, found))
    return found.at(found.index / p.k * ((p.k + 3) / 4 * 4) + found.index % p.k, 0);
  if (planted(g_tail_after_whole_rounds)) {
    const auto* x = static_cast<const uint8_t*>(p.x);
    if (at >= x && at < x + p.m * p.ldx_bytes &&
        (at - x) % p.ldx_bytes >= end_of_whole_rounds() * dtype_bytes(p.x_dtype))
      return nullptr;
  }
  return at;
}

float with_13_bits(float sum) {
  constexpr uint32_t kLost = (1u << (23 - 13)) - 1;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, sum) & ~kLost);
}
float in_f16(float sum) { return qcts::simt::f16_to_f32(qcts::simt::f32_to_f16(sum)); }

void change_sums(float* d) {
  for (int i = 0; i < 4; ++i) {
    if (planted(g_sums_keep_13_bits)) d[i] = with_13_bits(d[i]);
    if (planted(g_sums_in_f16)) d[i] = in_f16(d[i]);
  }
}

}  // namespace

qcts_status run_changed(const qcts_problem& problem, qcts_status (*run)(const qcts_problem*)) {
  qcts_problem changed = problem;
  if (planted(g_x_rows_touch)) changed.ldx_bytes = problem.k * dtype_bytes(problem.x_dtype);
  std::vector<qcts_plane> planes(problem.planes, problem.planes + problem.n_planes);
  for (qcts_plane& plane : planes)
    if (planted(g_box_base_rounded) && same_text(plane.name, "qdata"))
      plane.data = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(plane.data) / 16 * 16);
  changed.planes = planes.data();
  running = &problem;
  const qcts_status status = run(&changed);
  running = nullptr;
  return status;
}

}  // namespace qcts::cuda_mutants

namespace qcts::device::simt {

using namespace cuda_mutants;
using enum mutants::Fault;
using mutants::planted;

const char* launch(const uint32_t (&grid)[3], uint32_t threads, uint32_t shared_bytes, void (*body)(void*),
                   void* context) {
  const qcts_problem& p = *running;
  if (planted(g_rows_on_grid_y) && p.n > kMaxGridY) return nullptr;
  uint32_t blocks[3] = {grid[0], grid[1], grid[2]};
  const int64_t tiles = (p.n + kTileColumns - 1) / kTileColumns;
  if (p.op == QCTS_OP_LINEAR && threads == kTileThreads && shared_bytes > 0 && grid[0] % tiles == 0)
    blocks[0] = static_cast<uint32_t>(grid[0] / tiles * launched_tiles(tiles));
  if (blocks[0] == 0) return nullptr;
  std::memset(syncs, 0, sizeof syncs);
  std::memset(postponed, 0, sizeof postponed);
  return qcts::simt::launch(blocks, threads, shared_bytes, body, context);
}

void load(Space space, const void* at, void* value, uint32_t bytes) {
  const void* from = space == Space::global ? misread(at) : at;
  if (from == nullptr)
    std::memset(value, 0, bytes);
  else
    qcts::simt::load(space, from, value, bytes);
}

void sync_block() {
  if (!planted(g_no_loop_barrier)) qcts::simt::sync_block();
}

void sync_warp(uint32_t mask) {
  if (planted(g_no_warp_sync)) return;
  // The first call of a tile is between filling the stage and storing from it. The second one is before the
  // stage is filled again.
  if (planted(g_stage_filled_again) && ++syncs[place.thread] % 2 == 0) return;
  qcts::simt::sync_warp(mask);
}

void copy_async(void* shared, const void* from, uint32_t bytes, bool valid) {
  const void* changed = valid ? misread(from) : from;
  qcts::simt::copy_async(shared, changed, bytes,
                         (valid && changed != nullptr) || planted(g_left_out_copy_reads));
}

void wait_copies(uint32_t unfinished) {
  // The last wait of a kernel stays, because a thread that ends with copies under way is another fault.
  qcts::simt::wait_copies(unfinished > 0 && planted(g_copies_awaited_late) ? unfinished + 1 : unfinished);
}

void fence_async() {
  if (!planted(g_no_async_fence)) qcts::simt::fence_async();
}

// The warp that fetches is the last one.
void wait_barrier(uint64_t* barrier, uint32_t parity) {
  const bool fetches = place.thread >= place.threads - kWarpLanes;
  if (!fetches || !planted(g_slot_not_awaited)) qcts::simt::wait_barrier(barrier, parity);
}

// Lane 0 of a warp releases a stage after the wait. With the fault, it releases the stage first, and the
// other lanes wait for lane 0.
void wgmma_wait(uint32_t unfinished) {
  if (planted(g_slot_released_early) && place.thread % kWarpLanes == 0)
    postponed[place.thread] = true;
  else
    qcts::simt::wgmma_wait(unfinished);
}
void arrive(uint64_t* barrier, uint32_t expected_bytes) {
  qcts::simt::arrive(barrier, expected_bytes);
  if (!postponed[place.thread]) return;
  postponed[place.thread] = false;
  qcts::simt::wgmma_wait(0);
}

void copy_box(void* shared, const TensorMap& map, int32_t column, int32_t row, uint64_t* barrier) {
  qcts::simt::copy_box(shared, map, planted(g_box_column_frozen) ? 0 : column, row, barrier);
}

void multiply_bf16(float* d, const uint32_t* a, const uint32_t* b) {
  qcts::simt::multiply_bf16(d, a, b);
  change_sums(d);
}
void multiply_f16(float* d, const uint32_t* a, const uint32_t* b) {
  qcts::simt::multiply_f16(d, a, b);
  change_sums(d);
}

}  // namespace qcts::device::simt
