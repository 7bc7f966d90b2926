// SPDX-License-Identifier: BSD-3-Clause
// Faults of a checkpoint writer. They are applied to the parsed file before it is written.
#pragma once

#include <list>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts::mutants {

// Owns the bytes that replace a part of a file. This object must outlive the write.
class FileFaults {
 public:
  void strike(Safetensors& file, const Checkpoint& checkpoint);
  void strike(TorchZip& zip, const Checkpoint& checkpoint);
  void strike(TorchLegacy& legacy);

 private:
  std::span<const std::byte> keep(std::vector<std::byte> bytes);
  void replace_entry(SafetensorsEntry& entry, std::vector<std::byte> bytes);
  void replace_storage(TorchZip& zip, const std::string& key, std::vector<std::byte> bytes);
  void strike_values(TorchZip& zip);
  void strike_packing(TorchZip& zip, const Checkpoint& checkpoint);
  void break_ties(TorchZip& zip);
  void untie(TorchZip& zip);
  void add_records(TorchZip& zip, const std::vector<ZipRecord>& records);
  void lose_strides(TorchZip& zip);

  std::list<std::vector<std::byte>> kept_;
};

}  // namespace qcts::mutants
