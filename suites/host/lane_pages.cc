// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/lane_pages.h"

#include <algorithm>

#include <sys/mman.h>

namespace qcts {
namespace {

bool holds(const std::vector<OpenPages>& list, const OpenPages& pages) {
  return std::ranges::any_of(list, [&](const OpenPages& each) {
    return each.address == pages.address && each.bytes == pages.bytes && each.writable == pages.writable;
  });
}

bool overlaps(const OpenPages& a, const OpenPages& b) {
  return a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

bool overlaps(const std::vector<OpenPages>& list, const OpenPages& pages) {
  return std::ranges::any_of(list, [&](const OpenPages& each) { return overlaps(each, pages); });
}

bool is_writable(const OpenPages& pages, const std::vector<OpenPages>& others) {
  return pages.writable != 0 || std::ranges::any_of(others, [&](const OpenPages& each) {
           return each.writable != 0 && overlaps(each, pages);
         });
}

}  // namespace

void LanePages::open(size_t lane, const HostRequest& request) {
  const std::lock_guard lock(mutex_);
  std::vector<OpenPages>& now = open_[lane];
  const std::vector<OpenPages>& others = open_[1 - lane];
  const std::vector<OpenPages> wanted(request.open, request.open + std::min(request.n_open, kMaxOpenPages));
  for (const OpenPages& pages : now)
    if (!holds(wanted, pages) && !overlaps(others, pages)) protect(pages, PROT_NONE);
  for (const OpenPages& pages : wanted)
    if (!holds(now, pages)) protect(pages, is_writable(pages, others) ? PROT_READ | PROT_WRITE : PROT_READ);
  now = wanted;
}

void LanePages::protect(const OpenPages& pages, int protection) {
  ::mprotect(reinterpret_cast<void*>(pages.address), pages.bytes, protection);
  if (pages.populate == 0 || protection == PROT_NONE || is_populated(pages)) return;
  populated_.push_back(pages);
#ifdef MADV_POPULATE_READ  // since Linux 5.14; it saves an exception for each page
  if (::madvise(reinterpret_cast<void*>(pages.address), pages.bytes,
                pages.writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
    return;
#endif
  constexpr uint64_t kPageBytes = 4096;
  for (uint64_t at = 0; at < pages.bytes; at += kPageBytes)
    static_cast<void>(*reinterpret_cast<const volatile std::byte*>(pages.address + at));
}

bool LanePages::is_populated(const OpenPages& pages) const {
  return std::ranges::any_of(populated_, [&](const OpenPages& each) {
    return each.address <= pages.address && pages.address + pages.bytes <= each.address + each.bytes;
  });
}

}  // namespace qcts
