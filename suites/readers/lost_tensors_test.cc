// SPDX-License-Identifier: BSD-3-Clause
// A file whose metadata lists its tensors says which one was lost: whatever is removed is named, but for the
// one of a pair that config.json ties (in a single file: an output embedding).
#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include <unistd.h>

#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "reference/dialects/checkpoint.h"
#include "reference/dialects/names/model_names.h"
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

std::vector<std::string> names_of(const NamedTensor& tensor) {
  return tensor.in_memory.empty() ? std::vector<std::string>{tensor.name} : tensor.in_memory;
}

// May the tensor be missing? Then another with its values is there, by what config.json ties or, of a file
// alone, as models usually do; or transformers never saves it.
bool may_be_missing(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<std::string> all, lost;
  std::set<std::string> stored;
  for (const NamedTensor& tensor : checkpoint.tensors)
    for (const std::string& in_memory : names_of(tensor)) {
      all.push_back(in_memory);
      if (tensor.name == name)
        lost.push_back(in_memory);
      else
        stored.insert(in_memory);
    }
  const bool alone = checkpoint.config.is_null();
  const ModelNames model(checkpoint.config);
  const TiedTwins twins(alone ? usual_ties(lost, std::vector(stored.begin(), stored.end())) : model.tied(all),
                        stored);
  return std::ranges::all_of(lost, [&](const std::string& in_memory) {
    return twins.twin_of(in_memory) != nullptr || (!alone && model.is_never_saved(in_memory));
  });
}

// Returns the findings, or why the file is refused; empty if it is read without any.
std::string what_is_found(const fs::path& path) {
  std::string text;
  try {
    for (const CheckpointFinding& finding : open_checkpoint(path).findings)
      text += finding.tensor + ": " + finding.text + "\n";
  } catch (const Refused& refused) {
    text = refused.what();
  }
  return text;
}

class LostTensors : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  // Returns the number of tensors that were removed, each in turn and at most `max`.
  size_t remove_each(const Checkpoint& checkpoint, const std::string& id, size_t max = 200) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const bool is_folder = checkpoint.format == Format::directory;
    if (!checkpoint.config.is_null()) std::ofstream(folder_ / "config.json") << checkpoint.config;
    const fs::path path =
        is_folder ? folder_ : folder_ / fs::path(checkpoint.safetensors[0]->file->path()).filename();
    write_without(checkpoint, {}, folder_);
    EXPECT_TRUE(open_checkpoint(path).findings.empty()) << id;
    auto entries = entries_by_tensor(checkpoint);
    std::vector<const NamedTensor*> drawn;
    for (const NamedTensor& tensor : checkpoint.tensors) drawn.push_back(&tensor);
    std::ranges::shuffle(drawn, std::mt19937(7));
    drawn.resize(std::min(drawn.size(), max));
    for (const NamedTensor* tensor : drawn) {
      write_without(checkpoint, entries[tensor->name], folder_);
      const std::string found = what_is_found(path);
      EXPECT_EQ(found.empty(), may_be_missing(checkpoint, tensor->name)) << id << " without " << tensor->name;
      std::vector<std::string> names = names_of(*tensor);
      names.push_back(tensor->name);
      const auto is_said = [&](const std::string& name) { return found.find(name) != found.npos; };
      EXPECT_TRUE(found.empty() || std::ranges::any_of(names, is_said)) << tensor->name << ": " << found;
    }
    return drawn.size();
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
    if (checkpoint.safetensors.size() != 1) continue;
    const Checkpoint alone = open_checkpoint(checkpoint.safetensors[0]->file->path());
    removed += remove_each(alone, golden.id + ", the file alone");
  }
  EXPECT_GT(goldens, 40u);
  EXPECT_GT(removed, 200u);
}

}  // namespace
}  // namespace qcts
