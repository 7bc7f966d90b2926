// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/directory_kinds.h"

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
    if (ending == ".safetensors" || ending == ".bin" || ending == ".pt" || ending == ".pth") return true;
  }
  return false;
}

}  // namespace

std::string why_no_checkpoint(const fs::path& directory) {
  const Listing held(directory);
  if (held.files.contains(".metadata") || !held.file_ending_in({".distcp"}).empty())
    return std::string(kDistributedCheckpoint);
  if (held.folders.contains("snapshots") && held.folders.contains("blobs"))
    return "a repository of the hub's cache: name the folder of a revision, snapshots/" + [&] {
      const Listing revisions(directory / "snapshots");
      return revisions.folders.empty() ? std::string("REVISION") : *revisions.folders.begin();
    }();
  if (const std::string name = held.folder_beginning({"global_step"}); !name.empty())
    return "a DeepSpeed checkpoint (" + name + "): make one file of it with its zero_to_fp32.py";
  if (const std::string name = held.folder_beginning({"mp_rank_", "iter_"}); !name.empty())
    return "a Megatron checkpoint (" + name + "): name one of its files";
  if (!held.file_ending_in({"saved_model.pb"}).empty())
    return "a TensorFlow SavedModel, which is not read here";
  if (held.files.contains("_METADATA") || held.files.contains("manifest.ocdbt"))
    return "an Orbax checkpoint of JAX, which is not read here";
  if (const std::string name =
          held.file_ending_in({".gguf", ".onnx", ".h5", ".msgpack", ".npz", ".tflite", ".nemo"});
      !name.empty())
    return "its weights are " + name + ", a format that is not read here";
  for (const std::string& name : held.folders)
    if (holds_weights(directory / name))
      return "no weights in the folder itself, but in " + name + ": name that folder" +
             (held.files.contains("model_index.json") ? " (a pipeline of diffusers holds several)" : "");
  if (held.files.empty() && held.folders.empty()) return "the directory is empty";
  return "no .safetensors, .bin, .pt or .pth in the directory";
}

}  // namespace qcts
