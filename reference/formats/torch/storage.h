// SPDX-License-Identifier: BSD-3-Clause
// Parses the persistent ids that name storages, finds the storages' bytes, and handles byte order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/torch/zip.h"

namespace qcts {

// A view in a persistent id (legacy format before torch 0.4).
// The view is a window onto the storage, in elements, with its own key.
struct StorageView {
  Text key;
  int64_t offset_elems = 0;
  int64_t numel = 0;
};

// A persistent id as torch.save writes it: ("storage", class, key, location, numel).
// In the legacy format, None or the view follows.
struct StorageId {
  std::optional<DType> dtype;  // nullopt for UntypedStorage, whose numel counts bytes
  Text key;
  Text location;
  uint64_t bytes = 0;
  std::optional<StorageView> view;
};

// Parses a persistent id of `parts` parts (torch/serialization.py, 2.13: persistent_load).
// Throws Refused (StorageRef, TensorBounds, Overflow).
StorageId storage_id_of(const pickle::Ref& node, size_t parts);

// Fills object.storages, storage_dtypes and storage_index from the persistent ids in object.root.
// `find` is called once per key, and returns the storage's bytes or throws Refused.
// `owner` keeps the bytes alive.
using FindStorage = std::function<std::span<const std::byte>(const StorageId&, const pickle::Ref&)>;
void bind_storages(TorchObject& object, const TorchOptions& options, std::shared_ptr<const void> owner,
                   const FindStorage& find);

// Binds the storages of an archive, which are the records below data/.
void resolve_storages(TorchZip& zip, const TorchOptions& options);
// Returns the storage classes that only TorchScript names: "torch.UInt16Storage" and others.
std::vector<std::string> script_storage_globals();

// Copies the storages of a big-endian writer to the heap and swaps their elements.
// Untyped storages are swapped by the dtypes of their tensors.
// The dtypes must agree on one width (otherwise ByteOrder). Typed storages are swapped only if `typed`.
void swap_big_endian(TorchObject& object, bool typed = true);
// Returns the path from the root to the first use of storage `key`, as "linear1.weight.qdata".
// Returns an empty string if the storage is unused.
std::string path_to_storage(const TorchObject& object, const std::string& key);

// Returns true if `text` is one to twenty decimal digits, as in storage keys and device indices.
bool all_digits(std::string_view text);

}  // namespace qcts
