// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cstring>

#include "reference/formats/gguf/cursor.h"
#include "reference/formats/gguf/gguf.h"
#include "reference/formats/io/name_order.h"

namespace qcts {
namespace {

constexpr std::string_view kMagic = "GGUF", kAlignmentKey = "general.alignment";
constexpr uint64_t kLeastPairBytes = 13, kLeastDescriptionBytes = 24, kDefaultAlignment = 32;
// Memory per pair and per entry in growing lists, with the entry's storage and its control block.
constexpr uint64_t kPairBytes = 2 * sizeof(GgufPair), kGgufEntryBytes = 2 * sizeof(GgufEntry) + 160;
constexpr uint64_t kMaxDims = 4, kGgufDimBytes = 40;

void check_version(GgufCursor& cursor, Gguf& file) {
  file.version = cursor.number<uint32_t>("the version");
  if (file.version == 2 || file.version == 3) return;
  if (file.version != 0 && (file.version & 0xFFFF) == 0)
    refuse(RefusalClass::ByteOrder,
           "a big-endian GGUF file, which qcts cannot read: convert it with gguf-convert-endian", 4);
  const bool first = file.version == 1;
  refuse(RefusalClass::Version,
         "GGUF version " + std::to_string(file.version) +
             (first ? ", which llama.cpp no longer reads either: convert the model again"
                    : "; only versions 2 and 3 are supported"),
         4);
}

// Returns a count for which the rest of the file has room, at `least` bytes each.
uint64_t count_of(GgufCursor& cursor, const char* what, uint64_t limit, uint64_t least) {
  const uint64_t begin = cursor.at();
  const auto count = cursor.number<uint64_t>("a count");
  if (count > limit)
    refuse(RefusalClass::LimitExceeded,
           "the file has " + std::to_string(count) + " " + what + ", more than the limit of " +
               std::to_string(limit),
           begin);
  if (count > cursor.left() / least)
    refuse(RefusalClass::Truncated,
           "the file has no room for its " + std::to_string(count) + " " + what +
               ": was the copy or download complete?",
           begin);
  return count;
}

template <class Item, class NameOf>
void require_unique(const std::vector<Item>& items, const char* what, NameOf name_of) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(name_of(item));
  sort_by_name(names, [](std::string_view name) { return name; });
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end())
    refuse(RefusalClass::DuplicateEntry, std::string(what) + " " + std::string(*twice) + " appears twice");
}

uint64_t alignment_of(const Gguf& file) {
  const GgufValue* value = find_gguf_value(file, kAlignmentKey);
  if (value == nullptr) return kDefaultAlignment;
  const std::string key(kAlignmentKey);
  if (value->type != GgufValueType::uint32)
    refuse(RefusalClass::GgufHeader,
           key + " is of type " + std::string(gguf_value_type_name(value->type)) + ", not uint32");
  if (value->bits < 8 || !std::has_single_bit(value->bits))
    refuse(RefusalClass::GgufHeader,
           key + " is " + std::to_string(value->bits) + ", which is not a power of two of at least 8");
  return value->bits;
}

// Reads the dimensions, fastest first in the file, and returns them row-major.
std::vector<int64_t> shape_of(GgufCursor& cursor, const std::string& name) {
  const uint64_t begin = cursor.at();
  const auto dims = cursor.number<uint32_t>("a number of dimensions");
  if (dims > kMaxDims)
    refuse(RefusalClass::GgufHeader,
           "tensor " + name + " has " + std::to_string(dims) + " dimensions, more than the 4 of the format",
           begin);
  std::vector<int64_t> shape(dims);
  for (size_t d = dims; d-- > 0;) {
    const uint64_t at = cursor.at();
    const auto size = cursor.number<uint64_t>("a dimension");
    if (size > INT64_MAX)
      refuse(RefusalClass::Overflow, "tensor " + name + ": a dimension does not fit in 63 bits", at);
    shape[d] = static_cast<int64_t>(size);
  }
  return shape;
}

// Returns a tensor without a storage: elements, or rows of blocks.
Tensor tensor_of(const GgufEntry& entry, uint64_t at) {
  const GgufType& type = *entry.type;
  Tensor tensor;
  tensor.shape = entry.shape;
  tensor.dtype = type.dtype.value_or(DType::uint8);
  if (!type.dtype) {
    const int64_t row = entry.shape.empty() ? 1 : entry.shape.back();
    if (row % type.block_elements != 0)
      refuse(RefusalClass::GgufHeader,
             "tensor " + entry.name + ": rows of " + std::to_string(row) +
                 " elements are not a whole number of blocks of " + std::to_string(type.block_elements) +
                 ", the block size of " + std::string(type.name),
             at);
    if (__builtin_mul_overflow(row / type.block_elements, int64_t{type.block_bytes}, &tensor.shape.back()))
      refuse(RefusalClass::Overflow, "tensor " + entry.name + ": a row's bytes do not fit in 63 bits", at);
  }
  try {
    numel_of(entry.shape);
    bytes_of(tensor.dtype, tensor.shape);
    tensor.stride = contiguous_stride(tensor.shape);
  } catch (const Refused& refused) {
    refuse(refused.refusal().cls, "tensor " + entry.name + ": " + refused.refusal().detail, at);
  }
  return tensor;
}

GgufEntry read_description(GgufCursor& cursor, uint64_t& offset) {
  GgufEntry entry;
  entry.name = cursor.name("a tensor's name");
  entry.shape = shape_of(cursor, entry.name);
  const uint64_t at = cursor.at();
  const auto id = cursor.number<uint32_t>("a type");
  entry.type = find_gguf_type(id);
  if (entry.type == nullptr)
    refuse(RefusalClass::Dtype, "tensor " + entry.name + " is of " + unknown_gguf_type(id), at);
  offset = cursor.number<uint64_t>("an offset");
  entry.tensor = tensor_of(entry, at);
  return entry;
}

uint64_t aligned(uint64_t at, uint64_t alignment) { return (at + alignment - 1) / alignment * alignment; }

// Places the tensors in the data: each begins where the one before it ends, aligned, as ggml requires.
class DataLayout {
 public:
  DataLayout(Gguf& file, const std::vector<uint64_t>& offsets)
      : file_(file), offsets_(offsets), all_(file.file->bytes()) {}

  void place(uint64_t header_end) {
    const uint64_t begin = aligned(header_end, file_.alignment);
    file_.data_offset = std::min<uint64_t>(begin, all_.size());
    data_bytes_ = all_.size() - file_.data_offset;
    if (file_.entries.empty()) return end_at(header_end, begin);
    note_padding(header_end, file_.data_offset);
    uint64_t due = 0, end = 0;
    for (size_t i = 0; i < file_.entries.size(); ++i) {
      GgufEntry& entry = file_.entries[i];
      const uint64_t bytes = bytes_of(entry.tensor.dtype, entry.tensor.shape);
      require_offset(entry, offsets_[i], due, i == 0 ? nullptr : &file_.entries[i - 1]);
      if (begin > all_.size() || due > data_bytes_ || bytes > data_bytes_ - due)
        refuse_cut(entry, due, bytes);
      note_padding(file_.data_offset + end, file_.data_offset + due);
      entry.tensor.storage = storage_of(entry, due, bytes);
      end = due + bytes;
      due = aligned(end, file_.alignment);
    }
    end_at(file_.data_offset + end, file_.data_offset + due);
  }

 private:
  void require_offset(const GgufEntry& entry, uint64_t offset, uint64_t due, const GgufEntry* before) const {
    if (offset == due) return;
    std::string text = "tensor " + entry.name + " begins at " + std::to_string(offset) + " of the data";
    if (offset % file_.alignment != 0)
      text += ", which is not a multiple of the alignment " + std::to_string(file_.alignment);
    else if (offset < due && before != nullptr)
      text += ", before the end of " + before->name + " at " + std::to_string(due) + ", given its type " +
              std::string(before->type->name) + " and its shape";
    else
      text += " where " + std::to_string(due) + " is due";
    refuse(RefusalClass::GgufLayout, text,
           std::min<uint64_t>(file_.data_offset + std::min(offset, data_bytes_), all_.size()));
  }

  [[noreturn]] void refuse_cut(const GgufEntry& entry, uint64_t due, uint64_t bytes) const {
    refuse(RefusalClass::Truncated,
           "tensor " + entry.name + " has " + std::to_string(bytes) + " bytes at " + std::to_string(due) +
               " of the data, which has " + std::to_string(data_bytes_) +
               ": was the copy or download complete?",
           all_.size());
  }

  std::shared_ptr<const Storage> storage_of(const GgufEntry& entry, uint64_t at, uint64_t bytes) const {
    auto storage = std::make_shared<Storage>();
    storage->bytes = all_.subspan(file_.data_offset + at, bytes);
    storage->key = entry.name;
    storage->location = "cpu";
    storage->owner = file_.file;
    return storage;
  }

  // The padding after the last tensor may be missing or cut, as writers differ there.
  void end_at(uint64_t end, uint64_t padded) {
    if (all_.size() > padded)
      refuse(RefusalClass::TrailingData,
             "bytes follow the last tensor and its padding: " + std::to_string(all_.size() - padded), padded);
    file_.end_padding_bytes = all_.size() - end;
    note_padding(end, all_.size());
  }

  void note_padding(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    file_.padding_bytes += end - begin;
    bool zeros = true;
    constexpr uint64_t kPiece = 4096;
    for (uint64_t at = begin; at < end && zeros; at += kPiece)
      zeros = std::ranges::all_of(window_(at, std::min(kPiece, end - at)),
                                  [](std::byte byte) { return byte == std::byte{0}; });
    if (zeros) return;
    file_.budget.take_bytes(2 * sizeof(GgufStray));
    file_.stray.push_back({begin, all_.subspan(begin, end - begin)});
  }

  Gguf& file_;
  const std::vector<uint64_t>& offsets_;
  std::span<const std::byte> all_;
  PreadWindow window_{*file_.file};
  uint64_t data_bytes_ = 0;
};

void read_pairs(GgufCursor& cursor, uint64_t count, Gguf& file) {
  const uint64_t begin = cursor.at();
  for (uint64_t i = 0; i < count; ++i) {
    GgufPair pair;
    pair.key = cursor.name("a key");
    pair.value = cursor.value(pair.key);
    file.budget.take_bytes(kPairBytes + text_block_bytes(pair.key.size()));
    file.metadata.push_back(std::move(pair));
  }
  file.metadata_bytes = cursor.at() - begin;
  require_unique(file.metadata, "the key", [](const GgufPair& pair) { return std::string_view(pair.key); });
}

std::vector<uint64_t> read_descriptions(GgufCursor& cursor, uint64_t count, Gguf& file) {
  std::vector<uint64_t> offsets;
  const uint64_t begin = cursor.at();
  for (uint64_t i = 0; i < count; ++i) {
    GgufEntry entry = read_description(cursor, offsets.emplace_back());
    const uint64_t described = cursor.at() - begin;
    file.budget.grant_bytes(gguf_granted_bytes(described) - gguf_granted_bytes(file.description_bytes));
    file.description_bytes = described;
    file.budget.take_bytes(kGgufEntryBytes + kGgufDimBytes * entry.shape.size() +
                           2 * text_block_bytes(entry.name.size()));
    file.entries.push_back(std::move(entry));
  }
  require_unique(file.entries, "tensor", [](const GgufEntry& entry) { return std::string_view(entry.name); });
  return offsets;
}

}  // namespace

Gguf read_gguf(std::shared_ptr<const MappedFile> mapped, const GgufOptions& options) {
  Gguf file;
  file.file = std::move(mapped);
  const auto bytes = file.file->bytes();
  GgufCursor cursor(bytes, options.limits);
  if (!as_text(bytes).starts_with(kMagic))
    refuse(RefusalClass::NotArchive, "the file does not begin with GGUF", 0);
  cursor.take(kMagic.size(), "the first word");
  check_version(cursor, file);
  file.budget = ReadBudget(0, bytes.size());
  const uint64_t tensors = count_of(cursor, "tensors", options.limits.tensors, kLeastDescriptionBytes);
  const uint64_t pairs = count_of(cursor, "pairs of metadata", options.limits.gguf_pairs, kLeastPairBytes);
  read_pairs(cursor, pairs, file);
  file.alignment = alignment_of(file);
  const std::vector<uint64_t> offsets = read_descriptions(cursor, tensors, file);
  DataLayout(file, offsets).place(cursor.at());
  return file;
}

}  // namespace qcts
