// SPDX-License-Identifier: BSD-3-Clause
// GGUF files as checkpoints. A quantized tensor has the name of ggml's type as its class, and its dequantized
// weight is float32. Parts of a split model say so in split.no, split.count and split.tensors.count
// (llama.cpp, tools/gguf-split); each is named NAME-00001-of-00003.gguf.
#include <set>

#include "reference/dialects/blocks/blocks.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/directory/directory_files.h"
#include "reference/formats/io/byte_io.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

std::string file_name_of(const Gguf& file) { return fs::path(file.file->path()).filename().string(); }

// Returns a key's integer; nullopt if the file has no such key.
std::optional<int64_t> split_number(const Gguf& file, std::string_view key) {
  const GgufValue* value = find_gguf_value(file, key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = gguf_integer(*value);
  if (!number || *number < 0)
    refuse(RefusalClass::GgufHeader,
           file_name_of(file) + ": " + std::string(key) + " is " + gguf_value_text(*value) + ", not a count");
  return number;
}

int64_t parts_of(const Gguf& file) { return split_number(file, "split.count").value_or(1); }

void require_number(const Gguf& file, std::string_view key, int64_t want) {
  const std::optional<int64_t> number = split_number(file, key);
  if (number == want) return;
  refuse(RefusalClass::GgufHeader, file_name_of(file) + ": " + std::string(key) + " is " +
                                       (number ? std::to_string(*number) : "not there") + ", not " +
                                       std::to_string(want));
}

// Checks that the files are all parts of one model, in order.
void check_parts(const std::vector<std::shared_ptr<const Gguf>>& files) {
  const auto count = static_cast<int64_t>(files.size());
  if (count == 1) {
    const int64_t parts = parts_of(*files[0]);
    if (parts < 2) return;
    refuse(RefusalClass::StorageRef,
           file_name_of(*files[0]) + " is one of " + std::to_string(parts) +
               " parts, by its split.count: the others are missing, or not named "
               "NAME-00001-of-" +
               std::string(5 - std::min<size_t>(5, std::to_string(parts).size()), '0') +
               std::to_string(parts) + ".gguf");
  }
  int64_t tensors = 0;
  for (const auto& file : files) tensors += static_cast<int64_t>(file->entries.size());
  for (int64_t i = 0; i < count; ++i) {
    const Gguf& file = *files[static_cast<size_t>(i)];
    require_number(file, "split.count", count);
    require_number(file, "split.no", i);
    if (split_number(file, "split.tensors.count")) require_number(file, "split.tensors.count", tensors);
  }
}

NamedTensor named_tensor(const GgufEntry& entry) {
  NamedTensor tensor;
  tensor.name = entry.name;
  tensor.shape = entry.shape;
  if (entry.type->dtype) {
    tensor.type = "Tensor";
    tensor.dtype = *entry.type->dtype;
    tensor.payload.push_back({"data", entry.tensor});
    return tensor;
  }
  tensor.type = std::string(entry.type->name);
  tensor.dtype = DType::float32;
  tensor.blocks = entry.type;
  tensor.payload.push_back({"blocks", entry.tensor});
  if (!can_decode_blocks(*entry.type)) tensor.foreign = entry.type->name;
  return tensor;
}

void note_stray_bytes(Checkpoint& checkpoint) {
  uint64_t places = 0, first = 0;
  for (const auto& file : checkpoint.ggufs)
    for (const GgufStray& stray : file->stray)
      if (places++ == 0) first = stray.offset;
  if (places > 0)
    checkpoint.warnings.push_back("padding that is not zero, at byte " + std::to_string(first) +
                                  (places > 1 ? " and " + std::to_string(places - 1) + " more places" : "") +
                                  ": resave keeps it");
}

void report_not_read(Checkpoint& checkpoint) {
  const NamedTensor* first = nullptr;
  size_t count = 0;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (!tensor.foreign.empty() && count++ == 0) first = &tensor;
  if (first == nullptr) return;
  std::string text = first->name + " is of type " + first->type + ", which qcts cannot read";
  if (count > 1) text += ", " + std::to_string(count) + " tensors in all";
  checkpoint.findings.push_back({CheckpointFinding::Kind::foreign, first->name, std::move(text)});
}

void fill_from_ggufs(Checkpoint& checkpoint, const OpenOptions& options) {
  if (!options.dialect.empty())
    refuse(RefusalClass::SubclassSchema, "a GGUF file cannot use dialect " + options.dialect);
  checkpoint.dialect = "gguf";
  ReadBudget budget = ReadBudget::none();
  std::set<std::string_view> held;
  for (const auto& file : checkpoint.ggufs) {
    budget.join(file->budget);
    checkpoint.file_bytes += file->file->bytes().size();
    for (const GgufEntry& entry : file->entries) {
      if (checkpoint.ggufs.size() > 1 && !held.insert(entry.name).second)
        refuse(RefusalClass::DuplicateEntry,
               entry.name + " in two parts, one of them " + file_name_of(*file));
      checkpoint.tensors.push_back(named_tensor(entry));
      budget.take_bytes(heap_bytes_of(checkpoint.tensors.back()));
    }
  }
  note_stray_bytes(checkpoint);
  report_not_read(checkpoint);
}

std::shared_ptr<const Gguf> read_part(std::shared_ptr<const MappedFile> file, const OpenOptions& options) {
  return std::make_shared<const Gguf>(read_gguf(std::move(file), {.limits = options.limits}));
}

Checkpoint gguf_checkpoint(const std::shared_ptr<const Gguf>& first) {
  Checkpoint checkpoint;
  checkpoint.format = Format::gguf;
  checkpoint.path = first->file->path();
  checkpoint.ggufs.push_back(first);
  return checkpoint;
}

// One part of several that is read by itself, as a file in memory or by its name.
Checkpoint lone_part(const std::shared_ptr<const Gguf>& file, const OpenOptions& options) {
  Checkpoint checkpoint = gguf_checkpoint(file);
  const Gguf& part = *file;
  if (const int64_t parts = parts_of(part); parts > 1)
    checkpoint.warnings.push_back(
        "it is part " + std::to_string(split_number(part, "split.no").value_or(0) + 1) + " of " +
        std::to_string(parts) + ": pass the first part, or the folder, to read them all");
  fill_from_ggufs(checkpoint, options);
  return checkpoint;
}

}  // namespace

bool begins_with_gguf(std::span<const std::byte> bytes) { return as_text(bytes).starts_with("GGUF"); }

void read_gguf_parts(Checkpoint& checkpoint, const std::vector<fs::path>& paths, const OpenOptions& options) {
  for (const fs::path& path : paths) {
    const auto file = MappedFile::open(path);
    try {
      refuse_foreign_file(*file);
      checkpoint.ggufs.push_back(read_part(file, options));
    } catch (const Refused& refused) {
      Refusal refusal = refused.refusal();
      refusal.detail = path.filename().string() + ": " + refusal.detail;
      throw Refused(std::move(refusal));
    }
  }
  check_parts(checkpoint.ggufs);
  fill_from_ggufs(checkpoint, options);
}

Checkpoint read_gguf_checkpoint(std::shared_ptr<const MappedFile> file, const OpenOptions& options) {
  return lone_part(read_part(std::move(file), options), options);
}

Checkpoint open_parts(std::shared_ptr<const MappedFile> file, const OpenOptions& options) {
  if (!begins_with_gguf(file->bytes())) return read_checkpoint(std::move(file), options);
  const fs::path path = file->path();
  const auto first = read_part(file, options);
  const bool is_first = parts_of(*first) > 1 && split_number(*first, "split.no").value_or(0) == 0;
  if (!is_first) return lone_part(first, options);
  std::vector<fs::path> paths;
  for (const std::string& name : names_of_set(path.filename().string())) {
    paths.push_back(path.parent_path() / name);
    if (!fs::exists(paths.back()))
      refuse(RefusalClass::StorageRef,
             path.filename().string() + " is one of several parts: " + name + " is not there");
  }
  if (paths.empty()) paths.push_back(path);  // check_parts says what its name should be
  Checkpoint checkpoint = gguf_checkpoint(first);
  checkpoint.ggufs.clear();
  read_gguf_parts(checkpoint, paths, options);
  return checkpoint;
}

}  // namespace qcts
