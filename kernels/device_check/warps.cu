// SPDX-License-Identifier: BSD-3-Clause
// Checks functions that lanes call together, and ldmatrix. Each warp has one case.
#include "kernels/cuda/matrix.h"
#include "kernels/device_check/frame.h"

namespace qcts::device_check {
namespace {

// Returns the mask of this lane's group. The lanes of the mask in word 0 and the other lanes call separately.
QCTS_DEVICE uint32_t own_group(const uint8_t* in) {
  const uint32_t mask = load_word(in, 0);
  return (mask >> lane_index() & 1) != 0 ? mask : ~mask;
}

// The input is a mask and, for each lane, a value and the lane that it reads. That lane is in the reader's
// own group.
struct Shuffle {
  static constexpr uint32_t kIn = 1 + 2 * kWarpLanes, kOut = kWarpLanes, kSharedBytes = 0, kCases = 4;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t*) {
    const uint32_t lane = lane_index(), mask = load_word(in, 0), value = load_word(in, 1 + lane),
                   from = load_word(in, 1 + kWarpLanes + lane);
    uint32_t got;
    if ((mask >> lane & 1) != 0)
      got = shuffle(value, from, mask);
    else
      got = shuffle(value, from, ~mask);
    store_word(out, lane, got);
  }
};
// The input is the change of the lane number, and a value for each lane. Values are passed as words and as
// floats.
struct ShuffleXor {
  static constexpr uint32_t kIn = 1 + kWarpLanes, kOut = 2 * kWarpLanes, kSharedBytes = 0, kCases = 4;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t*) {
    const uint32_t lane = lane_index(), with = load_word(in, 0), value = load_word(in, 1 + lane);
    store_word(out, lane, shuffle_xor(value, with));
    store_word(out, kWarpLanes + lane, bits_of(shuffle_xor(float_of(value), with)));
  }
};
// The input is a mask, and a word whose bits the lanes pass.
struct Ballot {
  static constexpr uint32_t kIn = 2, kOut = kWarpLanes, kSharedBytes = 0, kCases = 4;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t*) {
    const uint32_t lane = lane_index(), mask = load_word(in, 0);
    const bool value = (load_word(in, 1) >> lane & 1) != 0;
    uint32_t got;
    if ((mask >> lane & 1) != 0)
      got = ballot(value, mask);
    else
      got = ballot(value, ~mask);
    store_word(out, lane, got);
  }
};
// The input is a mask and values. The values pass through shared memory to the next lane of the group.
struct SyncWarp {
  static constexpr uint32_t kIn = 1 + kWarpLanes, kOut = kWarpLanes, kSharedBytes = kWarpLanes * kWordBytes,
                            kCases = 4;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t* shared) {
    const uint32_t lane = lane_index(), group = own_group(in);
    store_shared(shared + lane * kWordBytes, load_word(in, 1 + lane));
    sync_warp(group);
    uint32_t next = (lane + 1) % kWarpLanes;
    while ((group >> next & 1) == 0) next = (next + 1) % kWarpLanes;
    store_word(out, lane, load_shared<uint32_t>(shared + next * kWordBytes));
  }
};

// The input is rows of 16 bytes and, for each lane, the row that it names.
template <int kCount, bool kTransposed>
struct LoadMatrices {
  static constexpr uint32_t kRows = 64, kRowBytes = 16, kRowWords = kRows * kRowBytes / kWordBytes;
  static constexpr uint32_t kIn = kRowWords + kWarpLanes, kOut = kCount * kWarpLanes;
  static constexpr uint32_t kSharedBytes = kRows * kRowBytes, kCases = 4;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t* shared) {
    for (uint32_t word = lane_index(); word < kRowWords; word += kWarpLanes)
      store_shared(shared + word * kWordBytes, load_word(in, word));
    sync_warp();
    uint32_t words[kCount];
    load_matrices<kCount, kTransposed>(words, shared + load_word(in, kRowWords + lane_index()) * kRowBytes);
    QCTS_UNROLL
    for (uint32_t i = 0; i < kCount; ++i) store_word(out, i * kWarpLanes + lane_index(), words[i]);
  }
};

// Inputs.

// Returns all lanes, some of them at random, or a run of lanes.
uint32_t any_mask(Random& random) {
  switch (random.below(4)) {
    case 0:
      return kAllLanes;
    case 1:
      return kAllLanes >> random.below(kWarpLanes);
    default:
      return random.word() | 1u << random.below(kWarpLanes);
  }
}
void fill_shuffle(Random& random, int64_t, uint32_t* in) {
  const uint32_t mask = in[0] = any_mask(random);
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    in[1 + lane] = random.word();
    const uint32_t group = (mask >> lane & 1) != 0 ? mask : ~mask;
    uint32_t from = random.below(kWarpLanes);
    while ((group >> from & 1) == 0) from = (from + 1) % kWarpLanes;
    in[1 + kWarpLanes + lane] = from;
  }
}
void fill_shuffle_xor(Random& random, int64_t, uint32_t* in) {
  in[0] = random.below(kWarpLanes);
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
    in[1 + lane] = random.one_in(4) ? any_float(random) : random.word();
}
void fill_masked(Random& random, int64_t, uint32_t* in) {
  in[0] = any_mask(random);
  for (uint32_t i = 1; i < SyncWarp::kIn; ++i) in[i] = random.word();
}
void fill_ballot(Random& random, int64_t, uint32_t* in) {
  in[0] = any_mask(random);
  in[1] = random.word();
}
template <class Body>
void fill_rows(Random& random, int64_t, uint32_t* in) {
  const bool in_order = random.one_in(4);
  for (uint32_t i = 0; i < Body::kRowWords; ++i) in[i] = random.word();
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
    in[Body::kRowWords + lane] = in_order ? lane : random.below(Body::kRows);
}

template <class Body>
Check of_warps(const char* name, void (*fill)(Random&, int64_t, uint32_t*)) {
  return {name, Body::kIn, Body::kOut, fill, by_warp<Body>, 1 << 16};
}
template <int kCount, bool kTransposed>
Check of_matrices() {
  using Body = LoadMatrices<kCount, kTransposed>;
  Check check = of_warps<Body>("", fill_rows<Body>);
  check.name = "load_matrices<" + std::to_string(kCount) + (kTransposed ? ", true>" : ">");
  return check;
}

}  // namespace

std::vector<Check> QCTS_SIDE::checks_of_warps() {
  return {
      of_warps<Shuffle>("shuffle", fill_shuffle),
      of_warps<ShuffleXor>("shuffle_xor", fill_shuffle_xor),
      of_warps<Ballot>("ballot", fill_ballot),
      of_warps<SyncWarp>("sync_warp", fill_masked),
      of_matrices<1, false>(),
      of_matrices<2, false>(),
      of_matrices<4, false>(),
      of_matrices<1, true>(),
      of_matrices<2, true>(),
      of_matrices<4, true>(),
  };
}

}  // namespace qcts::device_check
