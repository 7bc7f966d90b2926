// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/emulated/simt_counts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/emulated/simt_checks.h"

namespace qcts::simt {
namespace {

constexpr uint64_t kSectorBytes = 32;
constexpr uint32_t kBanks = 32, kBankBytes = 4;

struct OneAccess {
  uint32_t lane;
  uint64_t at;  // address, or offset in shared memory
};
struct WarpAccess {
  Space space;
  Use use;
  uint32_t bytes;
  std::vector<OneAccess> lanes;
};
// The warp, the place in the code, and how often the lane has been there.
using Key = std::tuple<uint32_t, const void*, uint32_t>;
struct Counter {
  std::map<Key, WarpAccess> open;                               // of this block
  std::map<std::pair<uint32_t, const void*>, uint32_t> visits;  // by thread and place in the code
  AccessCounts total;
};
Counter counter;

void count_sectors(const WarpAccess& access) {
  std::vector<uint64_t> sectors, words;
  for (const OneAccess& each : access.lanes) {
    sectors.push_back(each.at / kSectorBytes);
    if ((each.at + access.bytes - 1) / kSectorBytes != sectors.back())
      sectors.push_back((each.at + access.bytes - 1) / kSectorBytes);
    words.push_back(each.at);
  }
  const auto distinct = [](std::vector<uint64_t>& values) {
    std::ranges::sort(values);
    return static_cast<uint64_t>(std::ranges::unique(values).begin() - values.begin());
  };
  const uint64_t ideal = (distinct(words) * access.bytes + kSectorBytes - 1) / kSectorBytes;
  if (access.use == Use::write) {
    counter.total.sectors_written += distinct(sectors);
    counter.total.ideal_sectors_written += ideal;
  } else {
    counter.total.sectors_read += distinct(sectors);
    counter.total.ideal_sectors_read += ideal;
  }
}

// A warp's access is done in parts of as many lanes as move 128 bytes. In a part, each bank gives one word a
// turn. Lanes that want the same word share it.
void count_turns(const WarpAccess& access) {
  const uint32_t lanes_of_part = std::min(kLanes, kBanks * kBankBytes / access.bytes);
  for (uint32_t part = 0; part < kLanes; part += lanes_of_part) {
    std::vector<uint64_t> words[kBanks];
    bool any = false;
    for (const OneAccess& each : access.lanes) {
      if (each.lane / lanes_of_part != part / lanes_of_part) continue;
      any = true;
      for (uint64_t word = each.at / kBankBytes; word <= (each.at + access.bytes - 1) / kBankBytes; ++word) {
        std::vector<uint64_t>& of_bank = words[word % kBanks];
        if (std::ranges::find(of_bank, word) == of_bank.end()) of_bank.push_back(word);
      }
    }
    if (!any) continue;
    size_t most = 0;
    for (const std::vector<uint64_t>& of_bank : words) most = std::max(most, of_bank.size());
    counter.total.turns += most;
    ++counter.total.ideal_turns;
  }
}

}  // namespace

void count_access(Space space, const void* at, uint32_t bytes, Use use, const void* site) {
  const uint32_t visit = counter.visits[{place.thread, site}]++;
  WarpAccess& access = counter.open[{place.thread / kLanes, site, visit}];
  access.space = space;
  access.use = use;
  access.bytes = bytes;
  const auto address = reinterpret_cast<uint64_t>(at);
  access.lanes.push_back({place.thread % kLanes, space == Space::shared
                                                     ? address - reinterpret_cast<uint64_t>(shared_memory())
                                                     : address});
}

void finish_counts() {
  for (const auto& [key, access] : counter.open)
    if (access.space == Space::global)
      count_sectors(access);
    else
      count_turns(access);
  counter.open.clear();
  counter.visits.clear();
}

void clear_counts() { counter = {}; }
AccessCounts access_counts() { return counter.total; }

}  // namespace qcts::simt
