// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/refusal.h"
#include "reference/formats/torch/legacy.h"
#include "reference/formats/zip/directory.h"
#include "suites/fuzz/targets.h"

namespace qcts::fuzz {
namespace {

namespace fs = std::filesystem;

bool is_zip(Input bytes) { return as_text(bytes).starts_with("PK\3\4"); }

Input pickle_in(Input archive) {
  try {
    for (const ZipEntry& entry : read_zip_directory(archive, {}, true).entries)
      if (entry.name.ends_with("/data.pkl")) return archive.subspan(entry.data_offset, entry.size);
  } catch (const Refused&) {
  }
  return {};
}

Input seed_in(Input file, const fs::path& path, SeedKind kind) {
  switch (kind) {
    case SeedKind::files:
      return file;
    case SeedKind::archives:
      return is_zip(file) ? file : Input();
    case SeedKind::pickles:
      return is_zip(file) ? pickle_in(file) : Input();
    case SeedKind::legacies:
      return begins_with_pickle(file) && path.extension() != ".safetensors" ? file : Input();
    case SeedKind::safetensors_files:
      return path.extension() == ".safetensors" ? file : Input();
    case SeedKind::gguf_files:
      return path.extension() == ".gguf" ? file : Input();
  }
  return {};
}

}  // namespace

std::vector<Seed> seeds_of(const Target& target, const std::vector<fs::path>& folders) {
  std::vector<fs::path> paths;
  for (const fs::path& folder : folders)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Seed> seeds;
  for (const fs::path& path : paths) {
    const auto file = MappedFile::open(path);
    const Input seed = seed_in(file->bytes(), path, target.seeds);
    if (!seed.empty() && seed.size() <= target.max_bytes)
      seeds.push_back({path.filename().string(), {seed.begin(), seed.end()}});
  }
  return seeds;
}

}  // namespace qcts::fuzz
