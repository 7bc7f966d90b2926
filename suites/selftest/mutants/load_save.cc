// SPDX-License-Identifier: BSD-3-Clause
// load_save of the provider "mutant": a checkpoint read strictly and written again byte for byte, with the
// faults f_*.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <list>

#include "reference/dialects/checkpoint.h"
#include "reference/formats/io/mapped_file.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/file_faults.h"

namespace qcts::mutants {
namespace {

using enum Fault;

std::vector<std::byte> saved_safetensors(Safetensors file) {
  FileFaults faults;
  faults.strike(file);
  return rebuild_safetensors(file);
}

std::vector<std::byte> saved_zip(TorchZip zip, const Checkpoint& checkpoint) {
  FileFaults faults;
  faults.strike(zip, checkpoint);
  return rebuild_torch_zip(zip);
}

// A container that this provider does not write.
struct NotOurs {};

std::vector<std::byte> whole(const MappedFile& file) { return {file.bytes().begin(), file.bytes().end()}; }

std::vector<std::byte> saved(const std::shared_ptr<const MappedFile>& file) {
  OpenOptions options;
  if (planted(f_reads_bad_crc)) options.crc = CrcPolicy::skip;
  const Checkpoint checkpoint = read_checkpoint(file, options);
  if (checkpoint.zips.empty() && checkpoint.safetensors.empty()) throw NotOurs();
  std::vector<std::byte> elements;  // loaded means read to the last one
  for (const NamedTensor& named : checkpoint.tensors)
    for (const InnerTensor& inner : named.payload) row_major_view(inner.tensor, elements);
  std::vector<std::byte> bytes = checkpoint.zips.empty() ? saved_safetensors(*checkpoint.safetensors.at(0))
                                                         : saved_zip(*checkpoint.zips.at(0), checkpoint);
  if (planted(f_last_byte_lost)) bytes.pop_back();
  return bytes;
}

bool is_forgiven(const Refusal& refusal) {
  return planted(f_reads_gaps) &&
         (refusal.cls == RefusalClass::StLayout || refusal.cls == RefusalClass::TrailingData);
}

qcts_status refused(const char* output_path, char* why, size_t why_size, const char* reason) {
  std::snprintf(why, why_size, "%s", reason);
  if (planted(f_half_a_file)) std::ofstream(output_path, std::ios::binary).flush();
  return QCTS_FAILED;
}

}  // namespace

qcts_status load_save(const char* input_path, const char* output_path, char* why, size_t why_size) try {
  if (std::filesystem::is_directory(input_path)) throw NotOurs();
  if (planted(f_refuses_everything)) return refused(output_path, why, why_size, "NotArchive: refused");
  const auto file = MappedFile::open(input_path);
  std::vector<std::byte> bytes;
  try {
    bytes = planted(f_trusts_everything) ? whole(*file) : saved(file);
  } catch (const Refused& refusal) {
    if (!is_forgiven(refusal.refusal())) return refused(output_path, why, why_size, refusal.what());
    bytes = whole(*file);
  }
  write_file_atomically(output_path, bytes);
  return QCTS_OK;
} catch (const NotOurs&) {
  std::snprintf(why, why_size, "only torch zip and safetensors files");
  return QCTS_UNSUPPORTED;
} catch (const std::exception& error) {
  return refused(output_path, why, why_size, error.what());
}

}  // namespace qcts::mutants
