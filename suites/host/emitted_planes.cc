// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/emitted_planes.h"

#include <algorithm>
#include <cstring>

#include "suites/host/message.h"

namespace qcts {
namespace {

uint64_t padded_to_line(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

void take_emitted_plane(void* context, const qcts_plane* plane) noexcept {
  EmittedPlanes& emitted = *static_cast<EmittedPlanes*>(context);
  qcts_plane known{};
  std::memcpy(&known, plane, std::min<size_t>(plane->struct_size, sizeof known));
  const uint64_t data = bytes_of_plane(known), left = emitted.room - emitted.used;
  const uint64_t need = data > left ? UINT64_MAX : padded_to_line(sizeof known) + padded_to_line(data);
  if (emitted.is_full || need > left) {
    emitted.is_full = true;
    return;
  }
  std::byte* const place = emitted.place + emitted.used;
  std::memcpy(place, &known, sizeof known);
  if (data != 0) std::memcpy(place + padded_to_line(sizeof known), known.data, data);
  emitted.used += need;
}

}  // namespace qcts
