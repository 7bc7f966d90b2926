// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/torch/legacy.h"
#include "reference/formats/torch/writer.h"

namespace qcts {
namespace {

void put_pickle(const TorchLegacy& legacy, const LegacyPickle& part, const pickle::Ref& root, ByteSink& out,
                RebuildNotes& notes) {
  const auto stored = legacy.file->bytes().subspan(part.begin, part.end - part.begin);
  out.write(pickle_or_stored(root, stored, legacy.limits, notes.kept_pickle));
}

}  // namespace

void rebuild_torch_legacy(const TorchLegacy& legacy, ByteSink& out, RebuildNotes* notes_out) {
  RebuildNotes notes;
  // Copies the magic number, the only integer of more than 64 bits; the reader has checked it.
  out.write(legacy.file->bytes().first(15));
  put_pickle(legacy, legacy.protocol, legacy.protocol.root, out, notes);
  put_pickle(legacy, legacy.sys_info, legacy.sys_info.root, out, notes);
  put_pickle(legacy, legacy.object, legacy.root, out, notes);
  put_pickle(legacy, legacy.keys, legacy.keys.root, out, notes);
  for (const LegacyRecord& record : legacy.records) {
    std::vector<std::byte> count;
    append_le<uint64_t>(count, record.bytes.size() / record.element_bytes);
    out.write(count);
    out.write(record.bytes);
  }
  if (notes_out != nullptr) *notes_out = notes;
}

std::vector<std::byte> rebuild_torch_legacy(const TorchLegacy& legacy, RebuildNotes* notes) {
  VectorSink out(legacy.file->bytes().size());
  rebuild_torch_legacy(legacy, out, notes);
  return std::move(out).take();
}

}  // namespace qcts
