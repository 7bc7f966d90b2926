#include "reference/formats/crc32.h"

#include <algorithm>
#include <atomic>
#include <thread>

#ifdef QCTS_HAVE_ISAL
#include <isa-l/crc.h>
#else
#include <zlib.h>
#endif

namespace qcts {

uint32_t crc32_of(std::span<const std::byte> bytes) {
#ifdef QCTS_HAVE_ISAL
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
#else
  uLong crc = 0;
  while (!bytes.empty()) {  // zlib counts in 32 bits
    const size_t count = std::min<size_t>(bytes.size(), size_t{1} << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count));
    bytes = bytes.subspan(count);
  }
  return static_cast<uint32_t>(crc);
#endif
}

std::vector<uint32_t> crc32_of_each(std::span<const std::span<const std::byte>> records) {
  constexpr size_t kWorthThreadsBytes = 8u << 20;  // below it, starting threads costs more than they save
  size_t total = 0;
  for (const auto& record : records) total += record.size();
  std::vector<uint32_t> crcs(records.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < records.size(); i = next++) crcs[i] = crc32_of(records[i]);
  };
  std::vector<std::jthread> helpers;
  const unsigned threads = total < kWorthThreadsBytes ? 1 : std::thread::hardware_concurrency();
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  return crcs;
}

}  // namespace qcts
