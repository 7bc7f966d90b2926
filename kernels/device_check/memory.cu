// SPDX-License-Identifier: BSD-3-Clause
// Checks loads, stores, shared memory, atomics, asynchronous copies and places in a launch.
#include "kernels/cuda/copies.h"
#include "kernels/device_check/frame.h"

namespace qcts::device_check {
namespace {

constexpr uint32_t kUnit = 16, kUnitWords = kUnit / kWordBytes;     // the widest access
constexpr uint32_t kWidths = 5, kAllWidths = kWidths * kUnitWords;  // 1, 2, 4, 8 and 16 bytes

// Copies 16 bytes by accesses of type T, which load() and store() make.
template <class T, class Load, class Store>
QCTS_DEVICE void copy_unit(const uint8_t* from, uint8_t* to, const Load& load, const Store& store) {
  QCTS_UNROLL
  for (uint32_t at = 0; at < kUnit; at += sizeof(T)) store(to + at, load(T{}, from + at));
}
// Does the same for each width. The copies are stored one after another.
template <class Load, class Store>
QCTS_DEVICE void copy_by_all_widths(const uint8_t* from, uint8_t* to, const Load& load, const Store& store) {
  copy_unit<uint8_t>(from, to, load, store);
  copy_unit<uint16_t>(from, to + kUnit, load, store);
  copy_unit<uint32_t>(from, to + 2 * kUnit, load, store);
  copy_unit<Words2>(from, to + 3 * kUnit, load, store);
  copy_unit<Words4>(from, to + 4 * kUnit, load, store);
}

struct LoadGlobal {
  template <class T>
  QCTS_DEVICE T operator()(T, const uint8_t* at) const {
    return load_global<T>(at);
  }
};
struct LoadWritten {
  template <class T>
  QCTS_DEVICE T operator()(T, const uint8_t* at) const {
    return load_written<T>(at);
  }
};
struct LoadShared {
  template <class T>
  QCTS_DEVICE T operator()(T, const uint8_t* at) const {
    return load_shared<T>(at);
  }
};
struct StoreGlobal {
  template <class T>
  QCTS_DEVICE void operator()(uint8_t* at, T value) const {
    store_global(at, value);
  }
};

// Copies by load_global() and store_global() of each width.
struct Global {
  static constexpr uint32_t kIn = kUnitWords, kOut = kAllWidths;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out) {
    copy_by_all_widths(in, out, LoadGlobal(), StoreGlobal());
  }
};
struct Stream {
  static constexpr uint32_t kIn = kUnitWords, kOut = kUnitWords;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out) { store_global(out, load_stream(in)); }
};
// Reads the bytes that the thread has just written.
struct Written {
  static constexpr uint32_t kIn = kUnitWords, kOut = kUnitWords + kAllWidths;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out) {
    store_global(out, load_global<Words4>(in));
    copy_by_all_widths(out, out + kUnit, LoadWritten(), StoreGlobal());
  }
};

// Each thread stores 16 bytes by one width, and reads another thread's 16 bytes by all widths.
struct Shared {
  static constexpr uint32_t kThreads = 128, kSharedBytes = kThreads * kUnit;
  static constexpr uint32_t kIn = kThreads * kUnitWords, kOut = kThreads * kAllWidths;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out) {
    const uint32_t thread = thread_index();
    const auto store = [](uint8_t* at, auto value) { store_shared(at, value); };
    const uint8_t* from = in + thread * kUnit;
    uint8_t* own = shared_memory() + thread * kUnit;
    switch (thread % kWidths) {
      case 0:
        copy_unit<uint8_t>(from, own, LoadGlobal(), store);
        break;
      case 1:
        copy_unit<uint16_t>(from, own, LoadGlobal(), store);
        break;
      case 2:
        copy_unit<uint32_t>(from, own, LoadGlobal(), store);
        break;
      case 3:
        copy_unit<Words2>(from, own, LoadGlobal(), store);
        break;
      default:
        copy_unit<Words4>(from, own, LoadGlobal(), store);
    }
    sync_block();
    constexpr uint32_t kAway = 37;
    copy_by_all_widths(shared_memory() + (thread + kAway) % kThreads * kUnit,
                       out + thread * kAllWidths * kWordBytes, LoadShared(), StoreGlobal());
  }
};

// The input has a first value and one value for each lane.
struct Atomics {
  static constexpr uint32_t kIn = 1 + kWarpLanes, kOut = 2, kSharedBytes = 0, kCases = 4;
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t*) {
    if (lane_index() < kOut) store_word(out, lane_index(), load_word(in, 0));
    sync_warp();
    const uint32_t value = load_word(in, 1 + lane_index());
    auto* words = reinterpret_cast<uint32_t*>(out);
    atomic_max(words, value);
    atomic_or(words + 1, value);
  }
};

// cp.async.

// Each lane makes three groups of copies of 16, 8 and 4 bytes, and waits for each group by itself. Bit i of
// the lane's last word says that copy i is valid. If it is not, and kNowhere is set, the address of the copy
// is NULL. Copies of 16 bytes are made by the function that kBy names. copy_async_if() must copy if the
// copy is valid; otherwise the lane stores the zeros itself.
enum class CopyBy : uint8_t { copy_async, once, if_valid };
template <bool kNowhere, CopyBy kBy = CopyBy::copy_async>
struct AsyncCopies {
  static constexpr uint32_t kGroups = 3, kGroupWords = 7, kSlot = 32;
  static constexpr uint32_t kLaneWords = 32, kIn = kWarpLanes * kLaneWords;
  static constexpr uint32_t kOut = kWarpLanes * kGroups * kGroupWords;
  static constexpr uint32_t kSharedBytes = kWarpLanes * kGroups * kSlot, kCases = 4;

  template <int kBytes>
  QCTS_DEVICE static void copy(uint8_t* to, const uint8_t* from, bool valid) {
    const uint8_t* at = valid || !kNowhere ? from : nullptr;
    if constexpr (kBytes != 16 || kBy == CopyBy::copy_async) {
      copy_async<kBytes>(to, at, valid);
    } else if constexpr (kBy == CopyBy::once) {
      copy_async_once(to, at, evict_first(), valid);
    } else {
      if (!valid) store_shared(to, Words4{});
      copy_async_if(valid, to, at, true);
    }
  }
  template <uint32_t kGroup>
  QCTS_DEVICE static void receive(const uint8_t* slots, uint8_t* out) {
    wait_copies<kGroups - 1 - kGroup>();
    QCTS_UNROLL
    for (uint32_t i = 0; i < kGroupWords; ++i)
      store_word(out, kGroup * kGroupWords + i,
                 load_shared<uint32_t>(slots + kGroup * kSlot + i * kWordBytes));
  }
  QCTS_DEVICE static void run(const uint8_t* in, uint8_t* out, uint8_t* shared) {
    const uint8_t* from = in + lane_index() * kLaneWords * kWordBytes;
    uint8_t* slots = shared + lane_index() * kGroups * kSlot;
    const uint32_t valid = load_word(from, kLaneWords - 1);
    QCTS_UNROLL
    for (uint32_t group = 0; group < kGroups; ++group) {
      const uint32_t bits = valid >> 3 * group, at = group * kSlot;
      copy<16>(slots + at, from + at, (bits & 1) != 0);
      copy<8>(slots + at + 16, from + at + 16, (bits & 2) != 0);
      copy<4>(slots + at + 24, from + at + 24, (bits & 4) != 0);
      commit_copies();
    }
    uint8_t* own = out + lane_index() * kGroups * kGroupWords * kWordBytes;
    receive<0>(slots, own);
    receive<1>(slots, own);
    receive<2>(slots, own);
  }
};

// Launches.

constexpr uint32_t kPlaceThreads = 64, kPlaceBlocksY = 3, kPlaceBlocksZ = 2, kPlaceWords = 8;
constexpr uint32_t kPlaceOut = kPlaceBlocksY * kPlaceBlocksZ * kPlaceThreads * kPlaceWords;

__global__ void __launch_bounds__(kPlaceThreads) tell_place(const Cases cases) {
  const uint32_t thread =
      ((block_x() * kPlaceBlocksZ + block_z()) * kPlaceBlocksY + block_y()) * kPlaceThreads + thread_index();
  const uint32_t words[kPlaceWords] = {
      thread_index(), block_threads(), block_x(), block_y(),
      block_z(),      grid_x(),        grid_y(),  lane_index() << 16 | warp_index()};
  QCTS_UNROLL
  for (uint32_t i = 0; i < kPlaceWords; ++i) store_word(cases.out, thread * kPlaceWords + i, words[i]);
}
qcts_status place(const Cases& cases) {
  const Launch at = {.blocks_x = cases.count,
                     .blocks_y = kPlaceBlocksY,
                     .blocks_z = kPlaceBlocksZ,
                     .threads = kPlaceThreads};
  return launch(qcts_problem{}, at, tell_place, cases);
}

// Uses the last words of the maximum shared memory that a block of compute capability 8.6 can have. Before
// that, it launches a kernel that asks for more than any GPU has.
constexpr uint32_t kMostShared = 99 << 10, kTooMuchShared = 1 << 20;
__global__ void __launch_bounds__(kWarpLanes) use_last_words(const Cases cases) {
  uint8_t* last = shared_memory() + kMostShared - kWarpLanes * kWordBytes;
  const uint32_t at = block_x() * kWarpLanes;
  store_shared(last + lane_index() * kWordBytes, load_word(cases.in, at + lane_index()));
  sync_block();
  store_word(cases.out, at + lane_index(), load_shared<uint32_t>(last + (lane_index() ^ 1) * kWordBytes));
}
qcts_status launch_again(const Cases& cases) {
  const qcts_problem problem = {};
  Launch at = {.blocks_x = cases.count, .threads = kWarpLanes, .shared_bytes = kTooMuchShared};
  if (launch(problem, at, use_last_words, cases) != QCTS_FAILED)
    return launch_failed("a launch with %u bytes of shared memory succeeds", at.shared_bytes);
  at.shared_bytes = kMostShared;
  return launch(problem, at, use_last_words, cases);
}

// Inputs.

template <uint32_t kCount>
void fill_words(Random& random, int64_t, uint32_t* in) {
  for (uint32_t i = 0; i < kCount; ++i) in[i] = random.word();
}
void fill_nothing(Random&, int64_t, uint32_t*) {}
// Fills values whose maximum and bitwise or depend on all lanes.
void fill_atomics(Random& random, int64_t, uint32_t* in) {
  const uint32_t shift = random.below(32);
  for (uint32_t i = 0; i < Atomics::kIn; ++i)
    in[i] = random.one_in(2) ? random.word() >> shift : 1u << random.below(32);
}

template <class Body>
Check of_threads(const char* name) {
  return {name, Body::kIn, Body::kOut, fill_words<Body::kIn>, by_thread<Body>};
}
template <class Body>
Check of_warps(const char* name, int64_t cases, void (*fill)(Random&, int64_t, uint32_t*)) {
  return {name, Body::kIn, Body::kOut, fill, by_warp<Body>, cases};
}

}  // namespace

std::vector<Check> QCTS_SIDE::checks_of_memory() {
  Check places = {"place in the launch", 0, kPlaceOut, fill_nothing, place, 5};
  places.whole = true;
  return {
      places,
      {"launch: shared memory", kWarpLanes, kWarpLanes, fill_words<kWarpLanes>, launch_again, 1 << 10},
      of_threads<Global>("load_global, store_global"),
      of_threads<Stream>("load_stream"),
      of_threads<Written>("load_written"),
      {"load_shared, store_shared", Shared::kIn, Shared::kOut, fill_words<Shared::kIn>, by_block<Shared>,
       1 << 12},
      of_warps<Atomics>("atomic_max, atomic_or", 1 << 16, fill_atomics),
      of_warps<AsyncCopies<false>>("copy_async", 1 << 14, fill_words<AsyncCopies<false>::kIn>),
      of_warps<AsyncCopies<true>>("copy_async from NULL if not valid", 1 << 14,
                                  fill_words<AsyncCopies<true>::kIn>),
      of_warps<AsyncCopies<true, CopyBy::once>>("copy_async_once", 1 << 14,
                                                fill_words<AsyncCopies<true>::kIn>),
      of_warps<AsyncCopies<true, CopyBy::if_valid>>("copy_async_if", 1 << 14,
                                                    fill_words<AsyncCopies<true>::kIn>),
  };
}

}  // namespace qcts::device_check
