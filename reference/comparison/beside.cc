// SPDX-License-Identifier: BSD-3-Clause
// Compares the files next to a folder's tensors: config.json, the tokenizer's files, the index of its shards.
#include <algorithm>
#include <map>
#include <set>

#include "reference/comparison/content_parts.h"
#include "reference/comparison/json_values.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 4096;
constexpr uint64_t kMaxJsonBytes = 256u << 20;

std::set<std::string> weight_files(const Checkpoint& checkpoint) {
  std::set<std::string> paths;
  for (const auto& zip : checkpoint.zips)
    paths.insert(fs::path(zip->file->path()).lexically_normal().string());
  for (const auto& legacy : checkpoint.legacies)
    paths.insert(fs::path(legacy->file->path()).lexically_normal().string());
  for (const auto& file : checkpoint.safetensors)
    paths.insert(fs::path(file->file->path()).lexically_normal().string());
  for (const auto& file : checkpoint.ggufs)
    paths.insert(fs::path(file->file->path()).lexically_normal().string());
  return paths;
}

std::string_view text_of_file(const BesideFile& file) {
  const auto bytes = file.file->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string bytes_words(const BesideFile& file) {
  return "a file of " + std::to_string(file.file->bytes().size()) + " bytes";
}

void compare_file(const BesideFile& a, const BesideFile& b, ContentFindings& out) {
  const std::string_view x = text_of_file(a), y = text_of_file(b);
  if (x == y) return;
  if (a.name.ends_with(".json") && x.size() <= kMaxJsonBytes && y.size() <= kMaxJsonBytes) {
    // Which shard holds which tensor is the container's choice.
    if (!a.name.ends_with(".index.json"))
      return compare_json_texts(a.name, std::string(x), std::string(y), out);
    return out.spelling.add({a.name, "", bytes_words(a), bytes_words(b)});
  }
  const auto at = static_cast<size_t>(std::ranges::mismatch(x, y).in1 - x.begin());
  const auto byte = [&](std::string_view text) {
    return at < text.size() ? std::to_string(static_cast<unsigned char>(text[at]))
                            : std::string("end of file");
  };
  out.different.add({a.name, "byte " + std::to_string(at), byte(x), byte(y)});
}

}  // namespace

std::vector<BesideFile> files_beside(const Checkpoint& checkpoint) {
  std::vector<BesideFile> files;
  if (checkpoint.format != Format::directory) return files;
  const std::set<std::string> weights = weight_files(checkpoint);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(checkpoint.path)) {
    const std::string path = entry.path().lexically_normal().string();
    if (!entry.is_regular_file() || weights.contains(path)) continue;
    if (files.size() == kMaxFiles)
      refuse(RefusalClass::LimitExceeded,
             checkpoint.path.string() + " holds more than " + std::to_string(kMaxFiles) + " files");
    files.push_back(
        {entry.path().lexically_relative(checkpoint.path).string(), MappedFile::open(entry.path())});
  }
  std::ranges::sort(files, {}, &BesideFile::name);
  return files;
}

void compare_beside(const Content& a, const Content& b, ContentFindings& out) {
  const bool folders = a.checkpoint.format == Format::directory && b.checkpoint.format == Format::directory;
  std::map<std::string_view, const BesideFile*> others;
  for (const BesideFile& file : b.beside) others.emplace(file.name, &file);
  const auto alone = [&](const BesideFile& file, bool left) {
    const std::string words = bytes_words(file), none = folders ? "absent" : "a single file";
    const bool index = file.name.ends_with(".index.json");
    (index     ? out.spelling
     : folders ? out.different
               : out.not_comparable)
        .add({file.name, "", left ? words : none, left ? none : words});
  };
  for (const BesideFile& file : a.beside) {
    const auto other = others.find(file.name);
    if (other == others.end()) {
      alone(file, true);
      continue;
    }
    compare_file(file, *other->second, out);
    others.erase(other);
  }
  for (const auto& [name, file] : others) alone(*file, false);
}

}  // namespace qcts
