#include "reference/formats/crc32.h"

#include <algorithm>

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

}  // namespace qcts
