// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/directory/directory_kinds.h"

#include <algorithm>
#include <set>

namespace qcts {
namespace {

namespace fs = std::filesystem;

struct Listing {
  std::set<std::string> files, folders;

  explicit Listing(const fs::path& directory) {
    for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
      std::error_code error;
      (entry.is_directory(error) ? folders : files).insert(entry.path().filename().string());
    }
  }
  std::string file_ending_in(std::initializer_list<std::string_view> endings) const {
    for (const std::string& name : files)
      if (std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); }))
        return name;
    return "";
  }
  std::string folder_beginning(std::initializer_list<std::string_view> begins) const {
    for (const std::string& name : folders)
      if (std::ranges::any_of(begins, [&](std::string_view begin) { return name.starts_with(begin); }))
        return name;
    return "";
  }
};

bool holds_weights(const fs::path& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".safetensors" || ending == ".bin" || ending == ".pt" || ending == ".pth" ||
        ending == ".gguf")
      return true;
  }
  return false;
}

bool is_distributed(const Listing& held) {
  return held.files.contains(".metadata") || !held.file_ending_in({".distcp"}).empty();
}

std::string unreadable_in(const Listing& held) {
  return held.file_ending_in({".onnx", ".h5", ".msgpack", ".npz", ".tflite", ".nemo", ".mlmodel", ".pte",
                              ".engine", ".ckpt.index", "openvino_model.xml", ".ncnn.param", ".mnn"});
}

// Says that a folder below holds a distributed checkpoint, weights, or a format that is not read.
std::string why_below(const fs::path& directory, const Listing& held) {
  constexpr size_t kMaxFolders = 64;
  size_t looked_at = 0;
  for (const std::string& name : held.folders) {
    if (++looked_at > kMaxFolders) break;
    const Listing below(directory / name);
    if (is_distributed(below)) return name + " is " + std::string(kDistributedCheckpoint);
    if (holds_weights(directory / name))
      return "no weights in the folder itself, but in " + name + ": pass that folder" +
             (held.files.contains("model_index.json") ? " (a diffusers pipeline holds several)" : "");
    for (const std::string& deeper : below.folders)
      if (holds_weights(directory / name / deeper))
        return "no weights in the folder itself, but in " + name + "/" + deeper + ": pass that folder";
  }
  for (const std::string& name : held.folders)
    if (const std::string file = unreadable_in(Listing(directory / name)); !file.empty())
      return "its weights are " + name + "/" + file + ", a format that qcts cannot read";
  return "";
}

}  // namespace

std::string why_distributed(const fs::path& directory) {
  return is_distributed(Listing(directory)) ? std::string(kDistributedCheckpoint) : "";
}

std::string why_parts(const std::vector<std::string>& names) {
  const auto begin_with = [&](std::string_view begin) {
    return std::ranges::count_if(names, [&](const std::string& name) { return name.starts_with(begin); });
  };
  const auto one_of = [&](std::string_view begin) {
    return *std::ranges::find_if(names, [&](const std::string& name) { return name.starts_with(begin); }) +
           " is one rank's part";
  };
  if (begin_with("zero_pp_rank_") + begin_with("bf16_zero_pp_rank_") + begin_with("fp16_zero_pp_rank_") > 0)
    return "a step of a DeepSpeed checkpoint, whose weights are split between ranks: make one file from it "
           "with zero_to_fp32.py";
  if (begin_with("consolidated.") > 1)
    return one_of("consolidated.") + " of a model that was split between several: join them, or pass one";
  if (begin_with("model-rank-") > 1)
    return one_of("model-rank-") +
           " of a vLLM sharded state: pass the checkpoint that it was made from, or one part";
  if (begin_with("rank") > 1)
    return one_of("rank") +
           ", as TensorRT-LLM writes them: pass the checkpoint that it was made from, or one part";
  if (begin_with("mp_rank_") > 1) return one_of("mp_rank_") + ": join them, or pass one";
  return "";
}

std::string why_no_checkpoint(const fs::path& directory) {
  const Listing held(directory);
  if (is_distributed(held)) return std::string(kDistributedCheckpoint);
  if (held.folders.contains("snapshots") && held.folders.contains("blobs"))
    return "a repository in the hub's cache: pass the folder of a revision, snapshots/" + [&] {
      const Listing revisions(directory / "snapshots");
      return revisions.folders.empty() ? std::string("REVISION") : *revisions.folders.begin();
    }();
  if (const std::string name = held.folder_beginning({"global_step"}); !name.empty())
    return "a DeepSpeed checkpoint (" + name + "): make one file from it with its zero_to_fp32.py";
  if (const std::string name = held.folder_beginning({"mp_rank_", "iter_"}); !name.empty())
    return "a Megatron checkpoint (" + name + "): pass one of its files";
  if (!held.file_ending_in({"saved_model.pb"}).empty())
    return "a TensorFlow SavedModel, which qcts cannot read";
  if (held.files.contains("_METADATA") || held.files.contains("manifest.ocdbt"))
    return "a JAX Orbax checkpoint, which qcts cannot read";
  if (held.files.contains("Manifest.json") && held.folders.contains("Data"))
    return "a Core ML package, which qcts cannot read: pass the checkpoint that it was made from";
  if (held.files.contains(".snapshot_metadata")) return "a torchsnapshot snapshot, which qcts cannot read";
  if (held.folders.contains("blobs") && held.folders.contains("manifests"))
    return "an Ollama store: pass the largest file in its blobs, which is the model's GGUF file";
  if (const std::string name = unreadable_in(held); !name.empty())
    return "its weights are " + name + ", a format that qcts cannot read";
  if (const std::string name = held.file_ending_in({".incomplete", ".aria2", ".part", ".crdownload"});
      !name.empty())
    return name + " is an unfinished download: fetch it again";
  if (const std::string why = why_below(directory, held); !why.empty()) return why;
  if (held.files.empty() && held.folders.empty()) return "the directory is empty";
  return "no .safetensors, .bin, .pt, .pth or .gguf in the directory";
}

void note_unnamed(const std::string& index, const std::vector<Shard>& shards,
                  std::vector<std::string>& notes) {
  const std::vector<std::string> all = names_of_set(shards[0].name);
  std::vector<std::string> unnamed;
  for (const std::string& name : all)
    if (std::ranges::find(shards, name, &Shard::name) == shards.end()) unnamed.push_back(name);
  if (unnamed.empty() || all.size() - unnamed.size() != shards.size()) return;
  notes.push_back(
      index + " names " + std::to_string(shards.size()) + " of the " + std::to_string(all.size()) +
      " shards that " + shards[0].name + " is one of: tensors of " + unnamed[0] +
      (unnamed.size() > 1 ? " and " + std::to_string(unnamed.size() - 1) + " more" : "") + " are missing");
}

}  // namespace qcts
