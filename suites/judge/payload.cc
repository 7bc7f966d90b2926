// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/payload.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "reference/dialects/encoders/encode.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/sha256.h"
#include "suites/judge/expected/compare.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

std::string text_of(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (const int64_t number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "]";
}

// Records the first field that differs, as "name: field".
class Differ {
 public:
  bool field(const std::string& where, const std::string& want, const std::string& got) {
    if (!found && want != got) found = Mismatch{where, want, got, 1, 1};
    return !found;
  }

  std::optional<Mismatch> found;
};

// Numbers storages by first appearance, so that sharing can be compared without names.
class Sharing {
 public:
  std::string number(const Tensor& tensor) {
    const auto [entry, fresh] = numbers_.try_emplace(tensor.storage.get(), numbers_.size());
    return "storage " + std::to_string(entry->second) + (fresh ? " (first)" : " (shared)");
  }

 private:
  std::map<const Storage*, size_t> numbers_;
};

// Returns "group 3, column 17" if the scheme can tell, the flat index otherwise.
std::string element_place(const NamedTensor& named, const InnerTensor& inner, uint64_t index) {
  const Scheme* scheme = find_scheme(named.scheme);
  const std::string plain = "element " + std::to_string(index);
  if (scheme == nullptr || !named.layout || named.shape.size() != 2) return plain;
  const WeightShape shape{named.dtype, named.shape[0], named.shape[1]};
  if (scheme->refusal(shape, *named.layout)) return plain;
  const std::string plane = inner.name.substr(inner.name.rfind('.') + 1);
  const std::string place =
      scheme->place(shape, *named.layout, plane, index * dtype_bits(inner.tensor.dtype) / 8);
  return place.empty() ? plain : place;
}

void compare_elements(const NamedTensor& named, const InnerTensor& want, const InnerTensor& got,
                      Differ& differ) {
  std::vector<std::byte> want_scratch, got_scratch;
  const auto want_bytes = row_major_view(want.tensor, want_scratch),
             got_bytes = row_major_view(got.tensor, got_scratch);
  if (want_bytes.size() == got_bytes.size() &&
      (want_bytes.empty() || std::memcmp(want_bytes.data(), got_bytes.data(), want_bytes.size()) == 0))
    return;
  // Compares bytes: an elementwise comparison treats all NaNs as equal, and a file must preserve which one it
  // holds.
  const Comparison bytes = compare_bitwise(DType::uint8, want_bytes, got_bytes);
  const uint64_t element_bytes = std::max<uint64_t>(1, dtype_bits(want.tensor.dtype) / 8);
  const uint64_t index = bytes.first / element_bytes;
  differ.found =
      Mismatch{named.name + " " + want.name + ": " + element_place(named, want, index),
               describe_element(want.tensor.dtype, want_bytes, index),
               describe_element(want.tensor.dtype, got_bytes, index), bytes.differing, bytes.total};
}

void compare_inner(const NamedTensor& named, const InnerTensor& want, const InnerTensor& got,
                   Sharing& want_sharing, Sharing& got_sharing, Differ& differ) {
  const std::string where = named.name + " " + want.name;
  if (!differ.field(where + ": name", want.name, got.name)) return;
  if (!differ.field(where + ": dtype", std::string(dtype_name(want.tensor.dtype)),
                    std::string(dtype_name(got.tensor.dtype))))
    return;
  if (!differ.field(where + ": shape", text_of(want.tensor.shape), text_of(got.tensor.shape))) return;
  if (!differ.field(where + ": stride", text_of(want.tensor.stride), text_of(got.tensor.stride))) return;
  if (!differ.field(where + ": offset", std::to_string(want.tensor.offset_elems),
                    std::to_string(got.tensor.offset_elems)))
    return;
  if (!differ.field(where + ": storage", want_sharing.number(want.tensor), got_sharing.number(got.tensor)))
    return;
  compare_elements(named, want, got, differ);
}

void compare_named(const NamedTensor& want, const NamedTensor& got, Sharing& want_sharing,
                   Sharing& got_sharing, Differ& differ) {
  const std::string& name = want.name;
  if (!differ.field("name of a tensor", want.name, got.name)) return;
  if (!differ.field(name + ": type", want.type, got.type)) return;
  if (!differ.field(name + ": scheme", want.scheme, got.scheme)) return;
  if (!differ.field(name + ": layout", layout_name(want.layout), layout_name(got.layout))) return;
  if (!differ.field(name + ": shape", text_of(want.shape), text_of(got.shape))) return;
  if (!differ.field(name + ": dtype", std::string(dtype_name(want.dtype)),
                    std::string(dtype_name(got.dtype))))
    return;
  if (!differ.field(name + ": attributes", want.attributes.dump(), got.attributes.dump())) return;
  if (!differ.field(name + ": inner tensors", std::to_string(want.payload.size()),
                    std::to_string(got.payload.size())))
    return;
  for (size_t i = 0; i < want.payload.size() && !differ.found; ++i)
    compare_inner(want, want.payload[i], got.payload[i], want_sharing, got_sharing, differ);
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
  Differ differ;
  Sharing want_sharing, got_sharing;
  differ.field("dialect", want.dialect, got.dialect);
  if (!differ.found)
    differ.field("number of tensors", std::to_string(want.tensors.size()),
                 std::to_string(got.tensors.size()));
  for (size_t i = 0; i < want.tensors.size() && !differ.found; ++i)
    compare_named(want.tensors[i], got.tensors[i], want_sharing, got_sharing, differ);
  return differ.found;
}

std::vector<WrittenFile> rebuild_files(const Checkpoint& checkpoint) {
  std::vector<WrittenFile> files;
  for (const auto& zip : checkpoint.zips) {
    RebuildNotes notes;
    WrittenFile file{zip->file->path(), rebuild_torch_zip(*zip, &notes)};
    if (notes.kept_file) file.taken_over = "the container";
    if (notes.kept_pickle) file.taken_over = "data.pkl";
    files.push_back(std::move(file));
  }
  for (const auto& legacy : checkpoint.legacies) {
    RebuildNotes notes;
    WrittenFile file{legacy->file->path(), rebuild_torch_legacy(*legacy, &notes)};
    if (notes.kept_pickle) file.taken_over = "the pickles";
    files.push_back(std::move(file));
  }
  for (const auto& file : checkpoint.safetensors)
    files.push_back({file->file->path(), rebuild_safetensors(*file)});
  return files;
}

std::vector<WrittenFile> rewrite_files(const Checkpoint& checkpoint) {
  std::vector<WrittenFile> files;
  for (const auto& zip : checkpoint.zips) {
    const std::string prefix = zip->prefix == "archive" ? "rewritten" : "archive";
    files.push_back({zip->file->path(), write_torch_zip(prefix, zip->root, zip->storages)});
  }
  for (const auto& legacy : checkpoint.legacies) {
    const EditedZip moved = replace_tensors(*legacy, {});
    files.push_back({legacy->file->path(), write_torch_zip("archive", moved.root, moved.storages)});
  }
  for (const auto& file : checkpoint.safetensors) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const SafetensorsEntry& entry : file->entries) tensors.emplace_back(entry.name, entry.tensor);
    files.push_back(
        {file->file->path(), write_safetensors(tensors, file->metadata, SafetensorsOrder::as_given)});
  }
  return files;
}

Checkpoint save_and_open(const Checkpoint& checkpoint, const std::vector<WrittenFile>& files,
                         const fs::path& folder, const OpenOptions& options) {
  fs::create_directories(folder);
  const bool is_directory = checkpoint.format == Format::directory;
  if (is_directory)
    for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint.path))
      if (entry.is_regular_file())
        fs::copy_file(entry.path(), folder / entry.path().filename(), fs::copy_options::overwrite_existing);
  fs::path written;
  for (const WrittenFile& file : files) {
    const fs::path beneath = file.path.lexically_relative(checkpoint.path);
    written = folder / (is_directory && !beneath.empty() ? beneath : file.path.filename());
    fs::create_directories(written.parent_path());
    write_file_atomically(written, file.bytes);
  }
  return open_checkpoint(is_directory ? folder : written, options);
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
      // Copy the whole storage, so that strides, offsets and sharing stay as they are, and flip a bit in the
      // last element's byte.
      auto block = std::make_shared<std::vector<std::byte>>(tensor.storage->bytes.begin(),
                                                            tensor.storage->bytes.end());
      int64_t last = tensor.offset_elems;
      for (size_t d = 0; d < tensor.shape.size(); ++d) last += (tensor.shape[d] - 1) * tensor.stride[d];
      (*block)[static_cast<size_t>(last) * dtype_bits(tensor.dtype) / 8] ^= std::byte{1};
      auto storage = std::make_shared<Storage>(*tensor.storage);
      storage->bytes = *block;
      storage->owner = block;
      const Storage* before = tensor.storage.get();
      for (NamedTensor& other : checkpoint.tensors)
        for (InnerTensor& part : other.payload)
          if (part.tensor.storage.get() == before) part.tensor.storage = storage;
      return checkpoint;
    }
  }
  return std::nullopt;
}

}  // namespace qcts
