// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/files/payload.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "reference/comparison/content.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/sha256.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

using pickle::Kind;
using pickle::Ref;

template <typename Object>
void replace_in(std::shared_ptr<const Object>& object, const Storage* before,
                const std::shared_ptr<const Storage>& after) {
  const auto is_array = [&](const auto& array) { return array.second.storage.get() == before; };
  if (std::ranges::find(object->storages, before, &std::shared_ptr<const Storage>::get) ==
          object->storages.end() &&
      std::ranges::none_of(object->arrays, is_array))
    return;
  auto copy = std::make_shared<Object>(*object);
  for (auto& storage : copy->storages)
    if (storage.get() == before) storage = after;
  for (auto& array : copy->arrays)
    if (is_array(array)) array.second.storage = after;
  object = std::move(copy);
}

void replace_in_script(std::shared_ptr<const TorchScript>& script, const Storage* before,
                       const std::shared_ptr<const Storage>& after) {
  if (!script) return;
  auto copy = std::make_shared<TorchScript>(*script);
  for (TorchZip* part : {&copy->program, &copy->constants})
    for (auto& storage : part->storages)
      if (storage.get() == before) storage = after;
  script = std::move(copy);
}

void replace_storage(Checkpoint& checkpoint, const Storage* before,
                     const std::shared_ptr<const Storage>& after) {
  for (NamedTensor& named : checkpoint.tensors)
    for (InnerTensor& inner : named.payload)
      if (inner.tensor.storage.get() == before) inner.tensor.storage = after;
  for (auto& zip : checkpoint.zips) replace_in(zip, before, after);
  for (auto& legacy : checkpoint.legacies) replace_in(legacy, before, after);
  replace_in_script(checkpoint.script, before, after);
  for (auto& file : checkpoint.safetensors) {
    auto copy = std::make_shared<Safetensors>(*file);
    for (SafetensorsEntry& entry : copy->entries)
      if (entry.tensor.storage.get() == before) entry.tensor.storage = after;
    file = std::move(copy);
  }
  for (auto& file : checkpoint.ggufs) {
    auto copy = std::make_shared<Gguf>(*file);
    for (GgufEntry& entry : copy->entries)
      if (entry.tensor.storage.get() == before) entry.tensor.storage = after;
    file = std::move(copy);
  }
}

// Is it a numpy array in the pickle, as older versions of torch saved tensors of XLA devices? Its bytes and
// its device are values of the graph.
bool is_array(const Checkpoint& checkpoint, const Storage* storage) {
  const auto has_array = [&](const auto& object) {
    return std::ranges::any_of(object->arrays,
                               [&](const auto& array) { return array.second.storage.get() == storage; });
  };
  return std::ranges::any_of(checkpoint.zips, has_array) ||
         std::ranges::any_of(checkpoint.legacies, has_array);
}

// A copy of a graph in which the last number, string or flag in a container is another. One node may stand
// for all equal values of a file, so it is the place that counts.
class ChangedValue {
 public:
  // nullptr: there is no such value.
  Ref of(const Ref& root) {
    find(root);
    return holder_ == nullptr ? Ref() : copy(root);
  }

 private:
  static bool is_scalar(const Ref& node) {
    return node->kind == Kind::boolean || node->kind == Kind::integer || node->kind == Kind::real ||
           node->kind == Kind::string;
  }
  static bool is_container(const Ref& node) {
    return node->kind == Kind::dict || node->kind == Kind::list || node->kind == Kind::tuple ||
           pickle::is_call(node, "collections", "OrderedDict");
  }

  void find(const Ref& node) {
    if (!is_container(node) || !seen_.insert(node.get()).second) return;
    const auto look = [&](const Ref& value, size_t slot) {
      if (is_scalar(value)) holder_ = node.get(), slot_ = slot;
      find(value);
    };
    for (size_t i = 0; i < node->pairs.size(); ++i) look(node->pairs[i].second, i);
    if (node->kind != Kind::call)
      for (size_t i = 0; i < node->items.size(); ++i) look(node->items[i], i);
  }

  Ref copy(const Ref& node) {
    if (!node) return node;
    if (const auto known = copies_.find(node.get()); known != copies_.end()) return known->second;
    const Ref fresh = pickle::copy_of(*node);
    for (Ref& item : fresh->items) item = copy(item);
    for (auto& [key, value] : fresh->pairs) value = copy(value);
    fresh->state = copy(node->state);
    if (node.get() == holder_) {
      Ref& value = fresh->pairs.empty() ? fresh->items[slot_] : fresh->pairs[slot_].second;
      value = changed(*value);
    }
    return copies_[node.get()] = fresh;
  }

  static Ref changed(const pickle::Node& value) {
    const Ref fresh = pickle::copy_of(value);
    if (value.kind == Kind::boolean) fresh->boolean = !value.boolean;
    if (value.kind == Kind::string) fresh->text = value.text.str() + "'";
    if (value.kind == Kind::integer || value.kind == Kind::real) fresh->integer ^= 1;
    return fresh;
  }

  const pickle::Node* holder_ = nullptr;
  size_t slot_ = 0;
  std::unordered_set<const pickle::Node*> seen_;
  std::unordered_map<const pickle::Node*, Ref> copies_;
};

template <typename Object>
bool change_value(std::vector<std::shared_ptr<const Object>>& objects) {
  if (objects.empty()) return false;
  auto copy = std::make_shared<Object>(*objects.back());
  const Ref root = ChangedValue().of(copy->root);
  if (!root) return false;
  copy->root = root;
  objects.back() = std::move(copy);
  return true;
}

}  // namespace

std::optional<Mismatch> compare_files(const std::string& name, std::span<const std::byte> want,
                                      std::span<const std::byte> got) {
  const size_t common = std::min(want.size(), got.size());
  uint64_t differing = std::max(want.size(), got.size()) - common;
  size_t first = common;
  for (size_t i = common; i-- > 0;)
    if (want[i] != got[i]) ++differing, first = i;
  if (differing == 0) return std::nullopt;
  const auto byte_at = [&](std::span<const std::byte> bytes) {
    return first < bytes.size() ? "byte " + std::to_string(std::to_integer<int>(bytes[first]))
                                : "the end of the file";
  };
  return Mismatch{name + ": byte " + std::to_string(first), byte_at(want), byte_at(got), differing,
                  std::max(want.size(), got.size())};
}

std::optional<Mismatch> compare_payload(const Checkpoint& want, const Checkpoint& got) {
  ContentFindings found = compare_content(content_of(want), content_of(got));
  // Two programs differ if their answers differ.
  if (!want.script || !got.script) found = strictly(std::move(found));
  if (found.different.empty()) return std::nullopt;
  const ContentDifference& first = found.different.kept().front();
  return Mismatch{first.where(), first.a, first.b, first.count, first.total};
}

void rebuild_files(const Checkpoint& checkpoint, const FileVisit& visit) {
  for (const auto& zip : checkpoint.zips) {
    RebuildNotes notes;
    WrittenFile file{zip->file->path(), rebuild_torch_zip(*zip, &notes)};
    if (notes.kept_file) file.taken_over = "the container";
    if (notes.kept_pickle) file.taken_over = "data.pkl";
    visit(std::move(file));
    zip->file->release_pages();
  }
  for (const auto& legacy : checkpoint.legacies) {
    RebuildNotes notes;
    WrittenFile file{legacy->file->path(), rebuild_torch_legacy(*legacy, &notes)};
    if (notes.kept_pickle) file.taken_over = "the pickles";
    visit(std::move(file));
    legacy->file->release_pages();
  }
  for (const auto& file : checkpoint.safetensors) {
    visit({file->file->path(), rebuild_safetensors(*file)});
    file->file->release_pages();
  }
  for (const auto& file : checkpoint.ggufs) {
    visit({file->file->path(), rebuild_gguf(*file)});
    file->file->release_pages();
  }
}

namespace {

void rewrite_files(const Checkpoint& checkpoint, const FileVisit& visit) {
  for (const auto& zip : checkpoint.zips) {
    const std::string prefix = zip->prefix == "archive" ? "rewritten" : "archive";
    visit({zip->file->path(), write_torch_zip(prefix, zip->root, zip->storages)});
    zip->file->release_pages();
  }
  for (const auto& legacy : checkpoint.legacies) {
    const EditedZip moved = replace_tensors(*legacy, {});
    visit({legacy->file->path(), write_torch_zip("archive", moved.root, moved.storages)});
    legacy->file->release_pages();
  }
  for (const auto& file : checkpoint.safetensors) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const SafetensorsEntry& entry : file->entries) tensors.emplace_back(entry.name, entry.tensor);
    visit({file->file->path(), write_safetensors(tensors, file->metadata, SafetensorsOrder::as_given)});
    file->file->release_pages();
  }
  for (const auto& file : checkpoint.ggufs) {
    Gguf fresh = *file;
    fresh.stray.clear();
    visit({file->file->path(), rebuild_gguf(fresh)});
    file->file->release_pages();
  }
}

}  // namespace

Checkpoint rewrite_and_open(const Checkpoint& checkpoint, const fs::path& folder,
                            const OpenOptions& options) {
  fs::create_directories(folder);
  const bool is_directory = checkpoint.format == Format::directory;
  for (const BesideFile& file : files_beside(checkpoint)) {
    fs::create_directories((folder / file.name).parent_path());
    fs::copy_file(checkpoint.path / file.name, folder / file.name, fs::copy_options::overwrite_existing);
  }
  if (!is_directory && options.config.empty())
    for (const fs::path& config : configs_beside(checkpoint.path))
      fs::copy_file(config, folder / config.filename(), fs::copy_options::overwrite_existing);
  fs::path first;  // of a split model, it stands for all
  rewrite_files(checkpoint, [&](const WrittenFile& file) {
    const fs::path below = file.path.lexically_relative(checkpoint.path);
    const fs::path written = folder / (is_directory && !below.empty() ? below : file.path.filename());
    fs::create_directories(written.parent_path());
    write_file_atomically(written, file.bytes);
    if (first.empty()) first = written;
  });
  return open_checkpoint(is_directory ? folder : first, options);
}

std::string payload_digest(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> hashes;
  std::vector<std::byte> scratch;
  for (const NamedTensor& named : checkpoint.tensors)
    for (const InnerTensor& inner : named.payload)
      hashes[named.name + "." + inner.name] = sha256_hex(row_major_view(inner.tensor, scratch));
  std::string joined;
  for (const auto& [name, hash] : hashes) joined += name + '\0' + hash + '\n';
  return sha256_hex(std::as_bytes(std::span(joined)));
}

std::optional<Checkpoint> with_flipped_bit(Checkpoint checkpoint) {
  for (auto named = checkpoint.tensors.rbegin(); named != checkpoint.tensors.rend(); ++named) {
    for (auto inner = named->payload.rbegin(); inner != named->payload.rend(); ++inner) {
      Tensor& tensor = inner->tensor;
      if (tensor.numel() == 0 || !tensor.storage || tensor.storage->bytes.empty()) continue;
      if (is_array(checkpoint, tensor.storage.get())) continue;
      // The whole storage copied, so that strides, offsets and sharing stay as they are; the bit is in the
      // last element's byte.
      auto block = std::make_shared<std::vector<std::byte>>(tensor.storage->bytes.begin(),
                                                            tensor.storage->bytes.end());
      int64_t last = tensor.offset_elems;
      for (size_t d = 0; d < tensor.shape.size(); ++d) last += (tensor.shape[d] - 1) * tensor.stride[d];
      (*block)[static_cast<size_t>(last) * dtype_bits(tensor.dtype) / 8] ^= std::byte{1};
      const auto storage = std::make_shared<Storage>(*tensor.storage);
      storage->bytes = *block;
      storage->owner = block;
      replace_storage(checkpoint, tensor.storage.get(), storage);
      return checkpoint;
    }
  }
  return std::nullopt;
}

std::optional<Checkpoint> with_moved_device(Checkpoint checkpoint) {
  for (const NamedTensor& named : checkpoint.tensors) {
    if (named.payload.empty() || !checkpoint.safetensors.empty() || !checkpoint.ggufs.empty()) continue;
    const std::shared_ptr<const Storage> before = named.payload.back().tensor.storage;
    if (is_array(checkpoint, before.get())) continue;
    const auto after = std::make_shared<Storage>(*before);
    after->location = before->location.str() + "'";
    replace_storage(checkpoint, before.get(), after);
    return checkpoint;
  }
  return std::nullopt;
}

std::optional<Checkpoint> with_changed_value(Checkpoint checkpoint) {
  if (change_value(checkpoint.zips) || change_value(checkpoint.legacies)) return checkpoint;
  if (!checkpoint.ggufs.empty()) {
    auto changed = std::make_shared<Gguf>(*checkpoint.ggufs.back());
    changed->metadata.push_back({"changed", {.type = GgufValueType::boolean, .bits = 1}});
    checkpoint.ggufs.back() = std::move(changed);
    return checkpoint;
  }
  if (checkpoint.safetensors.empty()) return std::nullopt;
  auto copy = std::make_shared<Safetensors>(*checkpoint.safetensors.back());
  copy->metadata.emplace_back("changed", "'");
  checkpoint.safetensors.back() = std::move(copy);
  return checkpoint;
}

}  // namespace qcts
