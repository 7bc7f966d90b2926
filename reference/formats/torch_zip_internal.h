// Shared by the torch_zip_*.cc files only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/formats/torch_zip.h"

namespace qcts {

// A persistent id as torch.save writes it: ("storage", class, key, location, numel).
struct StorageId {
  std::optional<DType> dtype;  // nullopt for UntypedStorage, whose numel counts bytes
  std::string key;
  std::string location;
  uint64_t bytes = 0;
};

// Throws StorageRef or Overflow when `node` is no such id. torch/serialization.py, 2.13: persistent_load.
StorageId storage_id_of(const pickle::Ref& node);

// "torch.UInt16Storage", ...: storage classes that TorchScript names and torch.save does not.
std::vector<std::string> script_storage_globals();

// Fills zip.storages and zip.storage_index from the persistent ids in zip.root.
void resolve_storages(TorchZip& zip, const TorchZipOptions& options);
// Swaps the elements of big-endian storages into heap copies.
void swap_big_endian(TorchZip& zip);
// "linear1.weight.qdata": the keys that lead from the root to the first use of storage `key`; empty when
// nothing does.
std::string path_to_storage(const pickle::Ref& root, const std::string& key);

// The tensor that a call of _rebuild_tensor, _v2 or _v3 with these arguments makes; nullopt for a lazily
// conjugated or negated one.
std::optional<Tensor> rebuild_plain(const TorchZip& zip, const std::string& function,
                                    const std::vector<pickle::Ref>& args, uint64_t max_dims);
// A tuple of integers, or a torch.Size of one.
std::vector<int64_t> dims_of(const pickle::Ref& node, uint64_t max_dims);
std::optional<DType> dtype_of_global(const pickle::Ref& node);
// What torch.save writes for the hooks of a tensor or parameter: an empty OrderedDict, or None.
bool is_empty_hooks(const pickle::Ref& node);

// Every call of a torch rebuild function in the graph against its schema.
void check_tensors(const TorchZip& zip, const Limits& limits);
// The rebuild functions that make no plain tensor: sparse, quantized, nested, meta and wrapper tensors.
void check_special_tensor(const TorchZip& zip, const std::string& function,
                          const std::vector<pickle::Ref>& args, const Limits& limits, uint64_t offset);

}  // namespace qcts
