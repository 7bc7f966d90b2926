// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/crc32.h"

#include <algorithm>
#include <utility>

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
  while (!bytes.empty()) {  // zlib takes 32-bit lengths
    const size_t count = std::min<size_t>(bytes.size(), size_t{1} << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count));
    bytes = bytes.subspan(count);
  }
  return static_cast<uint32_t>(crc);
#endif
}

Crc32Ahead::Crc32Ahead(std::vector<std::span<const std::byte>> records)
    : records_(std::move(records)), crcs_(records_.size()) {
  constexpr size_t kWorthThreadBytes = 8u << 20;  // below it, starting a thread costs more than it saves
  size_t total = 0;
  for (const auto& record : records_) total += record.size();
  for (auto& crc : crcs_) crc = kPending;
  if (total < kWorthThreadBytes) return;
  helper_ = std::jthread([this](const std::stop_token& stop) {
    for (size_t i = 0; i < records_.size() && !stop.stop_requested(); ++i) {
      crcs_[i] = crc32_of(records_[i]);
      crcs_[i].notify_all();
    }
  });
}

uint32_t Crc32Ahead::of(size_t index) {
  if (!helper_.joinable()) return crc32_of(records_[index]);
  crcs_[index].wait(kPending);
  return static_cast<uint32_t>(crcs_[index].load());
}

}  // namespace qcts
