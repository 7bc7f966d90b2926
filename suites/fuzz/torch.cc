// SPDX-License-Identifier: BSD-3-Clause
// The two containers of torch.save, their pickles, and both together.
#include <algorithm>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/legacy.h"
#include "reference/formats/torch/zip.h"
#include "reference/formats/zip/directory.h"
#include "reference/formats/zip/writer.h"
#include "suites/fuzz/targets.h"

namespace qcts::fuzz {
namespace {

constexpr uint64_t kMaxWalkedBytes = 1u << 16;

TorchZipOptions options() {
  TorchZipOptions result;
  result.crc = CrcPolicy::ignore;
  return result;
}

// Visits every tensor.
void use_tensors(const TorchObject& object) {
  pickle::for_each_node(object.root, [&](const pickle::Ref& node) {
    const auto tensor = tensor_of(object, node);
    if (tensor && bytes_of(tensor->dtype, tensor->shape) <= kMaxWalkedBytes) row_major_bytes(*tensor);
  });
}

// Checks that rebuilding the file from the graph gives the same bytes.
void use_archive(const TorchZip& zip) {
  use_tensors(zip);
  if (!std::ranges::equal(rebuild_torch_zip(zip), zip.file->bytes()))
    throw Finding("torch zip: the rebuilt file differs");
}

}  // namespace

bool use_zip(Input input) {
  try {
    const ZipDirectory directory = read_zip_directory(input, {}, false);
    uint64_t end = 0;
    for (const ZipEntry& entry : directory.entries) {
      if (entry.header_offset != end || entry.data_offset > input.size() ||
          entry.size > input.size() - entry.data_offset || entry.record_end > input.size())
        throw Finding("zip: records do not follow each other inside the file");
      end = entry.record_end;
    }
  } catch (const Refused&) {
    return false;
  }
  return true;
}

bool use_pickle(Input input) {
  try {
    const auto once = pickle::write(pickle::read(input));
    if (pickle::write(pickle::read(once)) != once)
      throw Finding("pickle: the written graph reads back differently");
  } catch (const Refused&) {
    return false;
  }
  return true;
}

// Uses the input as data.pkl of an archive whose storages 0 to 5 have 0, 1, 8, 64, 200 and 4096 bytes.
// Mutations cannot break the container, so all of them reach the graph and the tensors.
bool use_torch_graph(Input input) {
  const std::vector<std::byte> zeros(4096);
  VectorSink out(8192);
  ZipWriter writer(out, "archive", 64);
  writer.add("data.pkl", input, 1);
  writer.add("byteorder", as_bytes("little"), 1);
  int key = 0;
  for (const size_t size : {0, 1, 8, 64, 200, 4096})
    writer.add("data/" + std::to_string(key++), Input(zeros).first(size), size == 0 ? 0 : 1);
  writer.add("version", as_bytes("3\n"), 1);
  writer.finish();
  auto file = MappedFile::from_bytes(std::move(out).take());
  try {
    use_archive(read_torch_zip(std::move(file), options()));
  } catch (const Refused&) {
    return false;
  }
  return true;
}

bool use_torch_zip(Input input) {
  try {
    use_archive(read_torch_zip(MappedFile::from_bytes({input.begin(), input.end()}), options()));
  } catch (const Refused&) {
    return false;
  }
  return true;
}

bool use_torch_legacy(Input input) {
  try {
    const TorchLegacy legacy =
        read_torch_legacy(MappedFile::from_bytes({input.begin(), input.end()}), options());
    use_tensors(legacy);
    if (!std::ranges::equal(rebuild_torch_legacy(legacy), input))
      throw Finding("torch legacy: the rebuilt file differs");
  } catch (const Refused&) {
    return false;
  }
  return true;
}

}  // namespace qcts::fuzz
