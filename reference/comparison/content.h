// SPDX-License-Identifier: BSD-3-Clause
// Compares everything that two checkpoints hold (E2):
//   - the object graph with its kinds of containers and their order;
//   - every number, string and flag;
//   - every tensor with its view, storage, device and attributes;
//   - the metadata of safetensors and GGUF;
//   - the files next to a folder's tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/comparison/findings.h"
#include "reference/dialects/checkpoint.h"
#include "reference/formats/io/mapped_file.h"

namespace qcts {

// A file in the checkpoint's folder that is not one of the weight files that were read.
struct BesideFile {
  std::string name;  // path below the folder
  std::shared_ptr<const MappedFile> file;
};
// Throws IoError. Throws Refused (LimitExceeded) if there are more than 4096 files.
std::vector<BesideFile> files_beside(const Checkpoint& checkpoint);

struct Content {
  const Checkpoint& checkpoint;
  std::vector<BesideFile> beside;
  std::string cpu_layout;  // assumed for packs that the file does not record; used to name places
};
inline Content content_of(const Checkpoint& checkpoint, std::string cpu_layout = {}) {
  return {checkpoint, files_beside(checkpoint), std::move(cpu_layout)};
}

// Compares two pickles node by node, whatever container holds them.
// Compares safetensors of one dialect entry by entry, and GGUF files likewise.
// Compares a pickle with a safetensors file tensor by tensor, as their dialects read them.
// Compares safetensors of two dialects in the same way.
// Values that one of the formats cannot hold are then listed as not comparable.
// Throws Refused (LimitExceeded).
ContentFindings compare_content(const Content& a, const Content& b);
// Counts everything that is not comparable as a difference.
ContentFindings strictly(ContentFindings findings);

}  // namespace qcts
