// Shared by the torch_*.cc files only.
#pragma once

#include <functional>
#include <optional>
#include <string>
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

// The tensor that a call of _rebuild_tensor, _v2 or _v3 with these arguments makes; nullopt for a lazily
// conjugated or negated one.
std::optional<Tensor> rebuild_plain(const TorchObject& object, std::string_view function,
                                    const pickle::Refs& args, uint64_t max_dims);
// A tuple of integers, or a torch.Size of one.
std::vector<int64_t> dims_of(const pickle::Ref& node, uint64_t max_dims);
std::optional<DType> dtype_of_global(const pickle::Ref& node);
// What torch.save writes for the hooks of a tensor or parameter: an empty OrderedDict, or None.
bool is_empty_hooks(const pickle::Ref& node);

// Every call of a torch rebuild function in the graph against its schema.
void check_tensors(const TorchObject& object, const Limits& limits);
// The rebuild functions that make no plain tensor: sparse, quantized, nested, meta and wrapper tensors.
void check_special_tensor(const TorchObject& object, std::string_view function, const pickle::Refs& args,
                          const Limits& limits, uint64_t offset);
// "_rebuild_tensor_v2" for the global that names it, as part of its text; empty for anything that is no
// rebuild function of torch.
std::string_view rebuild_function(const pickle::Ref& callable);

// The pickle of `root`, or `stored` where that spells the same graph in another pickler's way.
std::vector<std::byte> pickle_or_stored(const pickle::Ref& root, std::span<const std::byte> stored,
                                        const Limits& limits, bool& kept);

// One to twenty decimal digits, as storage keys and device indices are written.
bool all_digits(std::string_view text);

}  // namespace qcts
