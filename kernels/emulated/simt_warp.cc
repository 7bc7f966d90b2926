// SPDX-License-Identifier: BSD-3-Clause
// Functions that the lanes of a warp call together. A lane waits until all lanes of the mask have called. The
// last one computes for all.
#include <cstring>

#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_checks.h"
#include "kernels/emulated/simt_matrix.h"

namespace qcts::simt {
namespace {

struct Lanes {
  const char* what;
  uint32_t mask = 0, arrived = 0;  // mask 0: not in use
  uint32_t detail;                 // equal in all lanes
  void* of[kLanes];                // the argument of each lane
};
using Compute = void (*)(Lanes&);

// Lanes of one warp may call in several groups at once, but each lane waits in only one of them.
constexpr uint32_t kGroups = kLanes;
Lanes calls[kMaxThreads / kLanes][kGroups];
uint32_t n_calls[kMaxThreads / kLanes];  // groups in use so far

Lanes& join(const char* what, uint32_t mask, uint32_t detail) {
  const uint32_t lane = place.thread % kLanes, warp = place.thread / kLanes;
  if ((mask >> lane & 1) == 0) fault("calls %s with mask 0x%08x, which lacks its lane", what, mask);
  // Masks may overlap: lanes that have left one group may wait for all lanes while others still wait in their
  // own group. It is a fault if this lane waits for a lane that waits for this one elsewhere.
  Lanes* free = nullptr;
  for (uint32_t i = 0; i < n_calls[warp]; ++i) {
    Lanes& call = calls[warp][i];
    if (call.mask == 0) {
      free = &call;
    } else if ((call.mask >> lane & 1) != 0 && (call.arrived & mask) != 0) {
      if (call.mask != mask || call.detail != detail || std::strcmp(call.what, what) != 0)
        fault("calls %s with mask 0x%08x while lanes 0x%08x of its warp wait in %s with mask 0x%08x%s", what,
              mask, call.arrived, call.what, call.mask, call.detail != detail ? " and other parameters" : "");
      return call;
    }
  }
  if (free == nullptr) free = &calls[warp][n_calls[warp]++];
  *free = {what, mask, 0, detail, {}};
  return *free;
}

void together(const char* what, uint32_t mask, uint32_t detail, void* argument, Compute compute) {
  const uint32_t lane = place.thread % kLanes, first_thread = place.thread - lane;
  Lanes& call = join(what, mask, detail);
  call.of[lane] = argument;
  call.arrived |= 1u << lane;
  if (call.arrived != call.mask) return wait_for(what);
  if (compute != nullptr) compute(call);
  const uint32_t others = call.mask & ~(1u << lane);
  call.mask = 0;
  for (uint32_t i = 0; i < kLanes; ++i)
    if (others >> i & 1) wake(first_thread + i);
}

struct Shuffled {
  uint32_t value, from, result;
};
void compute_shuffle(Lanes& lanes) {
  for (uint32_t i = 0; i < kLanes; ++i) {
    if ((lanes.mask >> i & 1) == 0) continue;
    auto& own = *static_cast<Shuffled*>(lanes.of[i]);
    const uint32_t from = own.from % kLanes;
    if ((lanes.mask >> from & 1) == 0)
      fault("lane %u of its warp reads lane %u, which is not in the mask 0x%08x", i, from, lanes.mask);
    own.result = static_cast<Shuffled*>(lanes.of[from])->value;
  }
}

struct Vote {
  bool value;
  uint32_t result;
};
void compute_ballot(Lanes& lanes) {
  uint32_t votes = 0;
  for (uint32_t i = 0; i < kLanes; ++i)
    if ((lanes.mask >> i & 1) != 0 && static_cast<Vote*>(lanes.of[i])->value) votes |= 1u << i;
  for (uint32_t i = 0; i < kLanes; ++i)
    if ((lanes.mask >> i & 1) != 0) static_cast<Vote*>(lanes.of[i])->result = votes;
}

struct Rows {
  uint32_t* words;
  const void* row;
};
constexpr uint32_t kTransposed = 8;

// The rows of matrix i are at the addresses that lane 8 * i and the next seven lanes pass.
void compute_load_matrices(Lanes& lanes) {
  const uint32_t count = lanes.detail & ~kTransposed;
  uint16_t matrix[8][8];
  const uint32_t caller = place.thread, first_thread = caller - caller % kLanes;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t row = 0; row < 8; ++row) {
      const void* from = static_cast<Rows*>(lanes.of[8 * i + row])->row;
      place.thread = first_thread + 8 * i + row;
      check_access(Space::shared, from, 16, Use::read);
      note_access(Space::shared, from, 16, Use::read, Kind::ordinary, nullptr);
      std::memcpy(matrix[row], from, 16);
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t row = lane / 4, pair = 2 * (lane % 4);
      const uint16_t low = lanes.detail & kTransposed ? matrix[pair][row] : matrix[row][pair],
                     high = lanes.detail & kTransposed ? matrix[pair + 1][row] : matrix[row][pair + 1];
      static_cast<Rows*>(lanes.of[lane])->words[i] = low | static_cast<uint32_t>(high) << 16;
    }
  }
  place.thread = caller;
}

template <class Sum, void (*kMultiply)(const Fragments<Sum>&)>
void compute_product(Lanes& lanes) {
  Fragments<Sum> all;
  for (uint32_t i = 0; i < kLanes; ++i) all.of[i] = *static_cast<Fragment<Sum>*>(lanes.of[i]);
  kMultiply(all);
}

template <class Sum, void (*kMultiply)(const Fragments<Sum>&)>
void multiply(const char* what, Sum* d, const uint32_t* a, const uint32_t* b) {
  Fragment<Sum> own = {d, a, b};
  together(what, ~0u, 0, &own, compute_product<Sum, kMultiply>);
}

using ComputeAll = void (*)(void* const*);
struct Passed {
  void* argument;
  ComputeAll compute;
};
void compute_all(Lanes& lanes) {
  void* arguments[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) arguments[i] = static_cast<Passed*>(lanes.of[i])->argument;
  static_cast<Passed*>(lanes.of[0])->compute(arguments);
}

}  // namespace

void all_lanes(const char* what, uint32_t detail, void* argument, ComputeAll compute) {
  Passed own = {argument, compute};
  together(what, ~0u, detail, &own, compute_all);
}

void begin_warps() { std::memset(n_calls, 0, sizeof n_calls); }

void sync_warp(uint32_t mask) {
  together("sync_warp()", mask, 0, nullptr,
           [](Lanes& lanes) { pass_warp_barrier(place.thread / kLanes, lanes.mask); });
}

uint32_t shuffle(uint32_t mask, uint32_t value, uint32_t from) {
  Shuffled own = {value, from, 0};
  together("shuffle()", mask, 0, &own, compute_shuffle);
  return own.result;
}

uint32_t ballot(uint32_t mask, bool value) {
  Vote own = {value, 0};
  together("ballot()", mask, 0, &own, compute_ballot);
  return own.result;
}

void load_matrices(uint32_t* words, const void* row, uint32_t count, bool transposed) {
  Rows own = {words, row};
  together("load_matrices()", ~0u, count | (transposed ? kTransposed : 0), &own, compute_load_matrices);
}

void multiply_bf16(float* d, const uint32_t* a, const uint32_t* b) {
  multiply<float, multiply_bf16_tile>("multiply_bf16()", d, a, b);
}
void multiply_f16(float* d, const uint32_t* a, const uint32_t* b) {
  multiply<float, multiply_f16_tile>("multiply_f16()", d, a, b);
}
void multiply_s8(int32_t* d, const uint32_t* a, const uint32_t* b) {
  multiply<int32_t, multiply_s8_tile>("multiply_s8()", d, a, b);
}

}  // namespace qcts::simt
