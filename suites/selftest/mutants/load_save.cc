// SPDX-License-Identifier: BSD-3-Clause
// load_save of the provider "mutant": a checkpoint, or a folder of them, read strictly and written again byte
// for byte, with the faults f_*.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>

#include "reference/comparison/content.h"
#include "reference/dialects/checkpoint.h"
#include "reference/formats/io/mapped_file.h"
#include "suites/selftest/mutants/faults.h"
#include "suites/selftest/mutants/file_faults.h"
#include "suites/selftest/mutants/value_faults.h"

namespace qcts::mutants {
namespace {

using enum Fault;
namespace fs = std::filesystem;

std::vector<std::byte> saved_safetensors(Safetensors file, const Checkpoint& checkpoint) {
  FileFaults faults;
  faults.strike(file, checkpoint);
  return rebuild_safetensors(file);
}

std::vector<std::byte> saved_zip(TorchZip zip, const Checkpoint& checkpoint) {
  FileFaults faults;
  faults.strike(zip, checkpoint);
  return rebuild_torch_zip(zip);
}

std::vector<std::byte> saved_legacy(TorchLegacy legacy) {
  FileFaults faults;
  faults.strike(legacy);
  return rebuild_torch_legacy(legacy);
}

// A container that this provider does not write.
struct NotOurs {};

std::vector<std::byte> whole(const MappedFile& file) { return {file.bytes().begin(), file.bytes().end()}; }

OpenOptions options() {
  OpenOptions options;
  if (planted(f_reads_bad_crc)) options.crc = CrcPolicy::skip;
  options.allow = {std::string(kKeptModule) + "." + std::string(kKeptClass)};
  return options;
}

struct SavedFile {
  fs::path path;  // where it was read from
  std::vector<std::byte> bytes;
};

// The weight files; only one if the checkpoint is a file.
std::vector<SavedFile> saved(const Checkpoint& checkpoint) {
  std::vector<std::byte> elements;  // a file counts as loaded once all of them were read
  for (const NamedTensor& named : checkpoint.tensors)
    for (const InnerTensor& inner : named.payload) row_major_view(inner.tensor, elements);
  std::vector<SavedFile> files;
  for (const auto& zip : checkpoint.zips) files.push_back({zip->file->path(), saved_zip(*zip, checkpoint)});
  for (const auto& legacy : checkpoint.legacies)
    files.push_back({legacy->file->path(), saved_legacy(*legacy)});
  for (const auto& file : checkpoint.safetensors)
    files.push_back({file->file->path(), saved_safetensors(*file, checkpoint)});
  if (files.empty()) throw NotOurs();
  if (planted(f_last_byte_lost)) files.back().bytes.pop_back();
  return files;
}

// A file next to the weights; nullopt: it is not written. The index says how the weights are cut into files.
std::optional<std::vector<std::byte>> saved_beside(const BesideFile& file) {
  std::vector<std::byte> bytes = whole(*file.file);
  if (file.name.ends_with(".index.json")) return bytes;
  if (planted(f_beside_file_lost) && file.name != "config.json") return std::nullopt;
  const auto digit = std::find_if(bytes.rbegin(), bytes.rend(), [](std::byte value) {
    return value >= std::byte{'0'} && value <= std::byte{'9'};
  });
  if (planted(f_beside_number_changed) && digit != bytes.rend()) *digit ^= std::byte{1};
  return bytes;
}

void save_folder(const fs::path& input, const fs::path& output) {
  const Checkpoint checkpoint = open_checkpoint(input, options());
  std::vector<SavedFile> files = saved(checkpoint);
  for (const BesideFile& file : files_beside(checkpoint))
    if (std::optional<std::vector<std::byte>> bytes = saved_beside(file))
      files.push_back({input / file.name, std::move(*bytes)});
  for (const SavedFile& file : files) {
    const fs::path target = output / file.path.lexically_relative(input);
    fs::create_directories(target.parent_path());
    write_file_atomically(target, file.bytes);
  }
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
  if (planted(f_refuses_everything)) return refused(output_path, why, why_size, "NotArchive: refused");
  if (fs::is_directory(input_path)) {
    save_folder(input_path, output_path);
    return QCTS_OK;
  }
  const auto file = MappedFile::open(input_path);
  std::vector<std::byte> bytes;
  try {
    bytes = planted(f_trusts_everything) ? whole(*file) : saved(read_checkpoint(file, options())).at(0).bytes;
  } catch (const Refused& refusal) {
    if (!is_forgiven(refusal.refusal())) return refused(output_path, why, why_size, refusal.what());
    bytes = whole(*file);
  }
  write_file_atomically(output_path, bytes);
  return QCTS_OK;
} catch (const NotOurs&) {
  std::snprintf(why, why_size, "not a TorchScript program");
  return QCTS_UNSUPPORTED;
} catch (const std::exception& error) {
  return refused(output_path, why, why_size, error.what());
}

}  // namespace qcts::mutants
