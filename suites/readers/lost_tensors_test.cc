// SPDX-License-Identifier: BSD-3-Clause
// A file whose metadata lists its tensors says which one was lost: whatever is removed is found, but for the
// one of a tied pair that config.json ties (of a file alone: an output embedding).
#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include <unistd.h>

#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "reference/dialects/checkpoint.h"
#include "reference/formats/refusal.h"
#include "suites/base/paths.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

// The entries of all shards that belong to each tensor.
std::map<std::string, std::vector<std::string>> entries_by_tensor(const Checkpoint& checkpoint) {
  std::map<const Storage*, std::string> owners;
  for (const NamedTensor& tensor : checkpoint.tensors)
    for (const InnerTensor& inner : tensor.payload) owners[inner.tensor.storage.get()] = tensor.name;
  std::map<std::string, std::vector<std::string>> found;
  for (const auto& file : checkpoint.safetensors)
    for (const SafetensorsEntry& entry : file->entries)
      found[owners.at(entry.tensor.storage.get())].push_back(entry.name);
  return found;
}

void write_without(const Checkpoint& checkpoint, const std::vector<std::string>& lost,
                   const fs::path& folder) {
  for (const auto& file : checkpoint.safetensors) {
    std::vector<std::pair<std::string, Tensor>> kept;
    for (const SafetensorsEntry& entry : file->entries)
      if (std::ranges::find(lost, entry.name) == lost.end()) kept.emplace_back(entry.name, entry.tensor);
    const std::vector<std::byte> bytes = write_safetensors(kept, file->metadata);
    std::ofstream out(folder / fs::path(file->file->path()).filename(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

// May the tensor be missing? Then the other one of the pair is there, with the same values.
bool is_tied(const Checkpoint& checkpoint, const std::string& name) {
  const bool alone = checkpoint.config.is_null();
  if (!alone && checkpoint.config.value("tie_word_embeddings", nlohmann::ordered_json()) != true)
    return false;
  const auto has = [&](std::string_view end) {
    return std::ranges::any_of(checkpoint.tensors,
                               [&](const NamedTensor& tensor) { return tensor.name.ends_with(end); });
  };
  if (!has("lm_head.weight") || !has("embed_tokens.weight")) return false;
  return name.ends_with("lm_head.weight") || (!alone && name.ends_with("embed_tokens.weight"));
}

// Returns whether the file is refused, or read with a finding.
bool is_found(const fs::path& path) {
  try {
    return !open_checkpoint(path).findings.empty();
  } catch (const Refused&) {
    return true;
  }
}

class LostTensors : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  // Returns the number of tensors that were removed, each in turn.
  size_t remove_each(const Checkpoint& checkpoint, const std::string& id) {
    constexpr size_t kMaxRemoved = 200;
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const bool is_folder = checkpoint.format == Format::directory;
    if (!checkpoint.config.is_null()) std::ofstream(folder_ / "config.json") << checkpoint.config;
    const fs::path path =
        is_folder ? folder_ : folder_ / fs::path(checkpoint.safetensors[0]->file->path()).filename();
    write_without(checkpoint, {}, folder_);
    EXPECT_TRUE(open_checkpoint(path).findings.empty()) << id;
    auto all = entries_by_tensor(checkpoint);
    std::vector<std::string> names;
    for (const auto& [name, entries] : all) names.push_back(name);
    std::ranges::shuffle(names, std::mt19937(7));
    names.resize(std::min(names.size(), kMaxRemoved));
    for (const std::string& name : names) {
      write_without(checkpoint, all[name], folder_);
      EXPECT_NE(is_found(path), is_tied(checkpoint, name)) << id << " without " << name;
    }
    return names.size();
  }

 private:
  const fs::path folder_ = fs::path(::testing::TempDir()) / ("lost_" + std::to_string(::getpid()));
};

TEST_F(LostTensors, EachIsFoundInEveryGoldenThatListsItsTensors) {
  size_t goldens = 0, removed = 0;
  for (const Golden& golden : load_fixtures(fixtures_folder(), Files::known).goldens) {
    const bool may_list = golden.file.extension() == ".safetensors" || fs::is_directory(golden.file);
    if (!may_list) continue;
    const Checkpoint checkpoint = open_checkpoint(golden.file);
    if (checkpoint.dialect != "torchao_safetensors") continue;
    ++goldens;
    removed += remove_each(checkpoint, golden.id);
    if (checkpoint.format != Format::directory) continue;
    for (const auto& file : checkpoint.safetensors)  // each file of a folder, alone
      if (const Checkpoint alone = open_checkpoint(file->file->path()); checkpoint.safetensors.size() == 1)
        removed += remove_each(alone, golden.id + ", the file alone");
  }
  EXPECT_GT(goldens, 40u);
  EXPECT_GT(removed, 200u);
}

}  // namespace
}  // namespace qcts
