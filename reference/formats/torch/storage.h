// SPDX-License-Identifier: BSD-3-Clause
// Storages: the persistent ids that name them, their bytes, and the order of these.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/torch/zip.h"

namespace qcts {

// Of the legacy format, before torch 0.4: a window of the storage with a key of its own, in elements.
struct StorageView {
  Text key;
  int64_t offset_elems = 0;
  int64_t numel = 0;
};

// A persistent id as torch.save writes it: ("storage", class, key, location, numel), and in the legacy format
// a sixth part, None or the view.
struct StorageId {
  std::optional<DType> dtype;  // nullopt for UntypedStorage, whose numel counts bytes
  Text key;
  Text location;
  uint64_t bytes = 0;
  std::optional<StorageView> view;
};

// Throws StorageRef, TensorBounds or Overflow when `node` is no such id of so many parts.
// torch/serialization.py, 2.13: persistent_load.
StorageId storage_id_of(const pickle::Ref& node, size_t parts);

// Fills object.storages, storage_dtypes and storage_index from the persistent ids in object.root. `find`
// gives a storage's bytes, or refuses; it is asked once a key. `owner` keeps them alive.
using FindStorage = std::function<std::span<const std::byte>(const StorageId&, const pickle::Ref&)>;
void bind_storages(TorchObject& object, const TorchOptions& options, std::shared_ptr<const void> owner,
                   const FindStorage& find);

// The same for an archive, whose storages are the records below data/.
void resolve_storages(TorchZip& zip, const TorchOptions& options);
// "torch.UInt16Storage", ...: storage classes that TorchScript names and torch.save does not.
std::vector<std::string> script_storage_globals();

// Swaps the elements that a big-endian machine wrote into heap copies: those of untyped storages by the dtype
// of the tensors over them, which has to be one width a storage (else ByteOrder), and, where `typed`, those
// of typed ones.
void swap_big_endian(TorchObject& object, bool typed = true);
// "linear1.weight.qdata": the keys that lead from the root to the first use of storage `key`; empty when
// nothing does.
std::string path_to_storage(const TorchObject& object, const std::string& key);

// One to twenty decimal digits, as storage keys and device indices are written.
bool all_digits(std::string_view text);

}  // namespace qcts
