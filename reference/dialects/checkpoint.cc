// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <tuple>
#include <unordered_set>

#include "reference/dialects/dense.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/directory/dcp_slices.h"
#include "reference/dialects/directory/directory_files.h"
#include "reference/dialects/directory/directory_kinds.h"
#include "reference/dialects/layer_stacks.h"
#include "reference/dialects/not_stored.h"
#include "reference/dialects/torchscript.h"
#include "reference/formats/io/foreign_file.h"
#include "reference/formats/refusal.h"
#include "reference/formats/zip/directory.h"

namespace qcts {

bool begins_with_zip(std::span<const std::byte> bytes) {
  constexpr char kLocalHeader[4] = {'P', 'K', 3, 4};
  return bytes.size() >= 4 && std::memcmp(bytes.data(), kLocalHeader, 4) == 0;
}

bool begins_as_torch_legacy(std::span<const std::byte> bytes) {
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  return begins_with_pickle(bytes) && bytes.size() >= 8 && !std::ranges::all_of(bytes.subspan(4, 4), is_zero);
}

bool has_safetensors_header(std::span<const std::byte> bytes) {
  if (bytes.size() < 9) return false;
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  return length <= bytes.size() - 8 && bytes[8] == std::byte('{');
}

namespace {

// A u64 header length, then '{'; or, for a file too short to tell, what its name says.
bool looks_like_safetensors(std::span<const std::byte> bytes, const std::string& path) {
  return has_safetensors_header(bytes) || (path.ends_with(".safetensors") && !begins_as_torch_legacy(bytes));
}

// A refusal of a zip that torch did not write says what it is.
TorchZip read_named_zip(const std::shared_ptr<const MappedFile>& file, const TorchOptions& options) {
  try {
    return read_torch_zip(file, options);
  } catch (const Refused& refused) {
    Refusal refusal = refused.refusal();
    const bool of_the_archive =
        refusal.cls == RefusalClass::ZipStructure || refusal.cls == RefusalClass::ZipUnsupported ||
        refusal.cls == RefusalClass::Version || refusal.cls == RefusalClass::EntryName;
    const std::string kind = of_the_archive ? foreign_zip(file->bytes()) : "";
    if (!kind.empty()) refusal.detail += "; it is " + kind;
    throw Refused(std::move(refusal));
  }
}

std::string wrong_dialect(const std::string& name, const std::string& type, std::string_view is,
                          const std::string& asked) {
  return name + " (" + type + ") is encoded in dialect " + std::string(is) + ", not in " + asked;
}

void check_dialect_name(const std::string& dialect) {
  if (dialect.empty()) return;
  for (std::string_view known : dialect_names())
    if (known == dialect) return;
  throw std::invalid_argument("no dialect " + dialect);
}

// A FROM that no storage is on is most likely mistyped.
void note_unmatched_maps(Checkpoint& checkpoint,
                         const std::vector<std::pair<std::string, std::string>>& maps) {
  std::vector<const LocationUse*> uses;
  for (const auto& zip : checkpoint.zips) uses.push_back(&zip->locations);
  for (const auto& legacy : checkpoint.legacies) uses.push_back(&legacy->locations);
  if (checkpoint.script)
    uses.insert(uses.end(), {&checkpoint.script->program.locations, &checkpoint.script->constants.locations});
  std::set<std::string> tags;
  for (const LocationUse* use : uses) tags.insert(use->tags.begin(), use->tags.end());
  for (size_t i = 0; i < maps.size(); ++i) {
    const auto matched = [i](const LocationUse* use) { return i < use->matched.size() && use->matched[i]; };
    if (std::ranges::any_of(uses, matched)) continue;
    std::string held;
    for (const std::string& tag : tags) held += (held.empty() ? " (but on " : ", ") + tag;
    checkpoint.warnings.push_back("--map-location " + maps[i].first + "=" + maps[i].second +
                                  " changes nothing: no storage is on " + maps[i].first + held +
                                  (held.empty() ? "" : ")"));
  }
}

// A model that was saved before its weights were loaded holds such tensors.
void note_meta_tensors(Checkpoint& checkpoint) {
  size_t count = 0;
  const NamedTensor* first = nullptr;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (is_meta(tensor) && ++count == 1) first = &tensor;
  if (first == nullptr) return;
  checkpoint.warnings.push_back(
      first->name + (count > 1 ? " and " + std::to_string(count - 1) + " more are tensors" : " is a tensor") +
      " on the meta device, whose elements are in no file");
}

}  // namespace

void refuse_foreign_file(const MappedFile& file) {
  const auto bytes = file.bytes();
  const std::string name = std::filesystem::path(file.path()).filename().string();
  if (name == ".metadata" || name.ends_with(".distcp"))
    refuse(RefusalClass::NotArchive, "it is " + std::string(kDistributedCheckpoint));
  const bool empty_safetensors = bytes.empty() && name.ends_with(".safetensors");
  if (begins_with_zip(bytes) || begins_with_pickle(bytes) || has_safetensors_header(bytes) ||
      begins_with_gguf(bytes) || empty_safetensors)
    return;
  const std::string kind = foreign_file(bytes, file.path());
  if (!kind.empty()) refuse(RefusalClass::NotArchive, "it is " + kind);
}

std::string_view format_name(Format format) {
  switch (format) {
    case Format::torch_zip:
      return "torch_zip";
    case Format::torch_legacy:
      return "torch_legacy";
    case Format::safetensors:
      return "safetensors";
    case Format::directory:
      return "directory";
    case Format::torchscript:
      return "torchscript";
    case Format::gguf:
      return "gguf";
  }
  return "";
}

std::span<const std::string_view> dialect_names() {
  static constexpr std::string_view kNames[] = {
      "plain", "torchao_v1", "torchao_v2", "torchao_safetensors", "torchao_2338", "tinyq"};
  return kNames;
}

TorchOptions torch_options(const OpenOptions& options) {
  TorchOptions result;
  result.limits = options.limits;
  result.crc = options.crc;
  result.lenient = options.lenient;
  result.allow = options.allow;
  result.allow_locations = options.allow_locations;
  result.map_locations = options.map_locations;
  return result;
}

SafetensorsOptions safetensors_options(const OpenOptions& options) {
  return {options.limits, options.lenient};
}

void fill_from_object(Checkpoint& checkpoint, const TorchObject& object, const OpenOptions& options,
                      ReadBudget& budget) {
  budget.join(object.budget);
  if (options.dialect == "torchao_safetensors" || options.dialect == "torchao_2338")
    refuse(RefusalClass::SubclassSchema, "a pickle cannot use dialect " + options.dialect);
  std::set<std::string_view> dialects;
  const std::vector<TensorLeaf> leaves = tensor_leaves(object.root, options.limits, budget);
  checkpoint.tensors.reserve(checkpoint.tensors.size() + leaves.size());
  for (const TensorLeaf& leaf : leaves) {
    const TensorNode parts = decode_tensor_node(leaf.node);
    if (parts.wrapper.empty()) {
      checkpoint.tensors.push_back(read_plain(object, leaf, budget));
      continue;
    }
    if (is_dtensor(parts)) {
      checkpoint.tensors.push_back(read_dtensor(object, leaf, options.lenient, checkpoint.warnings, budget));
      continue;
    }
    const std::string_view by_class = dialect_of_class(parts.cls);
    if (!options.dialect.empty() && options.dialect != by_class && options.dialect != "plain")
      refuse(RefusalClass::SubclassSchema,
             wrong_dialect(leaf.name, parts.cls->text, by_class, options.dialect), leaf.node->offset);
    dialects.insert(by_class);
    checkpoint.tensors.push_back(by_class == "torchao_v1" ? read_torchao_v1(object, leaf, budget)
                                                          : read_torchao_v2(object, leaf, options.lenient,
                                                                            checkpoint.warnings, budget));
  }
  if (dialects.size() > 1)
    checkpoint.warnings.emplace_back(
        "the file has torchao_v1 and torchao_v2 tensors; each is read by its class");
  const bool kept = checkpoint.dialect.starts_with("torchao");
  if (!dialects.empty() && !kept)
    checkpoint.dialect = dialects.contains("torchao_v1") ? "torchao_v1" : *dialects.begin();
}

void fill_from_safetensors(Checkpoint& checkpoint, SafetensorsView& view, const OpenOptions& options) {
  if (options.dialect.starts_with("torchao_v"))
    refuse(RefusalClass::SubclassSchema,
           "safetensors cannot use dialect " + options.dialect + ", which is for pickles");
  const bool may_be_2338 = options.dialect.empty() && has_2338_keys(view);
  if (may_be_2338 || options.dialect == "torchao_2338") {
    std::vector<NamedTensor> tensors = read_torchao_2338(view, options, checkpoint.warnings);
    std::ranges::move(tensors, std::back_inserter(checkpoint.tensors));
    checkpoint.dialect = "torchao_2338";
    return;
  }
  const bool plain = options.dialect == "plain" || options.dialect == "tinyq";
  SafetensorsKeys keys = plain ? SafetensorsKeys::plain : detect_safetensors_keys(view);
  if (keys == SafetensorsKeys::plain && options.dialect == "torchao_safetensors")
    keys = SafetensorsKeys::underscore;
  std::vector<NamedTensor> tensors =
      keys == SafetensorsKeys::plain
          ? read_plain_safetensors(view)
          : read_torchao_safetensors(view, keys, options, checkpoint.config, checkpoint.warnings);
  checkpoint.left_out = std::move(view.left_out);
  if (checkpoint.tensors.empty())
    checkpoint.tensors = std::move(tensors);
  else
    std::ranges::move(tensors, std::back_inserter(checkpoint.tensors));
  if (keys != SafetensorsKeys::plain) checkpoint.dialect = "torchao_safetensors";
  judge_not_stored(checkpoint, options);
}

void read_pickled(Checkpoint& checkpoint, std::shared_ptr<const MappedFile> file, const OpenOptions& options,
                  ReadBudget& budget) {
  if (begins_with_zip(file->bytes())) {
    const auto zip = std::make_shared<const TorchZip>(read_named_zip(file, torch_options(options)));
    checkpoint.zips.push_back(zip);
    return fill_from_object(checkpoint, *zip, options, budget);
  }
  if (!begins_with_pickle(file->bytes()))
    refuse(RefusalClass::NotArchive, "the file is not a torch zip, a torch pickle, safetensors or GGUF", 0);
  const auto legacy =
      std::make_shared<const TorchLegacy>(read_torch_legacy(std::move(file), torch_options(options)));
  checkpoint.legacies.push_back(legacy);
  fill_from_object(checkpoint, *legacy, options, budget);
}

void join_by_keys(Checkpoint& checkpoint, const OpenOptions& options, ReadBudget& budget) {
  const bool asked = options.dialect == "tinyq";
  if (!asked && !options.dialect.empty()) return;
  if (!join_tinyq_layers(checkpoint.tensors, budget)) {
    if (asked) refuse(RefusalClass::SubclassSchema, "no module has tinyq's int8_weights and scales");
    return;
  }
  if (checkpoint.dialect != "plain")
    refuse(RefusalClass::SubclassSchema,
           "two dialects in one checkpoint: " + checkpoint.dialect + " and tinyq");
  checkpoint.dialect = "tinyq";
}

namespace {

bool may_hold_parts(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors, [](const NamedTensor& tensor) {
    return tensor.dtype != DType::float32 && tensor.dtype != DType::float16 &&
           tensor.dtype != DType::bfloat16;
  });
}

// Joins and names the weights that other libraries quantized. A model of only floats needs no configuration.
void read_others(Checkpoint& checkpoint, const OpenOptions& options, ReadBudget& budget) {
  if (!options.dialect.empty()) return;
  std::string why;
  if (may_hold_parts(checkpoint) || !options.config.empty())
    why = join_foreign_parts(checkpoint, quant_config_of_file(checkpoint.path, options), budget);
  name_foreign(checkpoint, "", why, budget);
}

}  // namespace

Checkpoint read_checkpoint(std::shared_ptr<const MappedFile> file, const OpenOptions& options) {
  check_dialect_name(options.dialect);
  Checkpoint checkpoint;
  checkpoint.dialect = "plain";
  checkpoint.path = file->path();
  checkpoint.file_bytes = file->bytes().size();
  refuse_foreign_file(*file);
  if (begins_with_gguf(file->bytes())) return read_gguf_checkpoint(std::move(file), options);
  const bool zip = begins_with_zip(file->bytes());
  if (zip && names_torchscript(file->bytes())) {
    if (options.dialect.starts_with("torchao"))
      refuse(RefusalClass::SubclassSchema, "TorchScript cannot use dialect " + options.dialect);
    checkpoint.format = Format::torchscript;
    checkpoint.script = std::make_shared<const TorchScript>(read_torchscript(file, torch_options(options)));
    checkpoint.tensors = script_tensors(*checkpoint.script, options.limits);
    return checkpoint;
  }
  if (zip || !looks_like_safetensors(file->bytes(), file->path())) {
    checkpoint.format = zip ? Format::torch_zip : Format::torch_legacy;
    ReadBudget budget = ReadBudget::none();
    read_pickled(checkpoint, std::move(file), options, budget);
    note_further(checkpoint);
    join_by_keys(checkpoint, options, budget);
    read_others(checkpoint, options, budget);
    return checkpoint;
  }
  checkpoint.format = Format::safetensors;
  checkpoint.safetensors.push_back(
      std::make_shared<const Safetensors>(read_safetensors(file, safetensors_options(options))));
  refuse_dcp_slices(*checkpoint.safetensors.front(), checkpoint.warnings);
  SafetensorsView view;
  view.budget = checkpoint.safetensors.front()->budget;
  view.entries.reserve(checkpoint.safetensors.front()->entries.size());
  for (const SafetensorsEntry& entry : checkpoint.safetensors.front()->entries)
    view.entries.push_back(&entry);
  view.metadata = checkpoint.safetensors.front()->metadata;
  fill_from_safetensors(checkpoint, view, options);
  join_by_keys(checkpoint, options, view.budget);
  read_others(checkpoint, options, view.budget);
  return checkpoint;
}

Checkpoint open_checkpoint(const std::filesystem::path& path, const OpenOptions& options) {
  check_dialect_name(options.dialect);
  std::error_code error;
  const bool directory = std::filesystem::is_directory(path, error);
  if (!directory) refuse_unfinished(path);
  Checkpoint checkpoint =
      directory ? open_directory(path, options) : open_parts(MappedFile::open(path), options);
  note_unmatched_maps(checkpoint, options.map_locations);
  note_meta_tensors(checkpoint);
  report_lost_layers(checkpoint, options);
  check_scale_bounds(checkpoint, options);
  return checkpoint;
}

void PageRelease::was_read(const NamedTensor& tensor) {
  for (const InnerTensor& inner : tensor.payload) bytes_ += bytes_of(inner.tensor.dtype, inner.tensor.shape);
  release_if_many();
}

void PageRelease::was_read(const Tensor& tensor) {
  bytes_ += bytes_of(tensor.dtype, tensor.shape);
  release_if_many();
}

void PageRelease::release_if_many() {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  if (bytes_ < kBytes) return;
  bytes_ = 0;
  for (const auto& zip : checkpoint_.zips) zip->file->release_pages();
  for (const auto& legacy : checkpoint_.legacies) legacy->file->release_pages();
  for (const auto& file : checkpoint_.safetensors) file->file->release_pages();
  for (const auto& file : checkpoint_.ggufs) file->file->release_pages();
}

uint64_t payload_bytes(const Checkpoint& checkpoint) {
  std::unordered_set<const Storage*> seen;
  uint64_t total = 0;
  for (const NamedTensor& tensor : checkpoint.tensors)
    for (const InnerTensor& inner : tensor.payload)
      if (seen.insert(inner.tensor.storage.get()).second) total += inner.tensor.storage->bytes.size();
  return total;
}

uint64_t dense_bytes(const Checkpoint& checkpoint) {
  using View = std::tuple<const Storage*, int64_t, std::vector<int64_t>, std::vector<int64_t>>;
  std::set<std::vector<View>> seen;
  uint64_t total = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    std::vector<View> views;
    for (const InnerTensor& inner : tensor.payload)
      views.emplace_back(inner.tensor.storage.get(), inner.tensor.offset_elems, inner.tensor.shape,
                         inner.tensor.stride);
    if (views.empty() || seen.insert(std::move(views)).second) total += bytes_of(tensor.dtype, tensor.shape);
  }
  return total;
}

}  // namespace qcts
