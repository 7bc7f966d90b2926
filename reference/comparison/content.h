// SPDX-License-Identifier: BSD-3-Clause
// Compares everything that two checkpoints hold (E2): the object graph with its kinds of containers and their
// order; every number, string and flag; every tensor with its view, storage, device and attributes; the
// metadata of safetensors; and the files next to a folder's tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/comparison/findings.h"
#include "reference/dialects/checkpoint.h"
#include "reference/formats/io/mapped_file.h"

namespace qcts {

// A file of a folder other than the weight files that were read.
struct BesideFile {
  std::string name;  // below the folder
  std::shared_ptr<const MappedFile> file;
};
// Throws IoError; throws Refused (LimitExceeded) if there are more than 4096.
std::vector<BesideFile> files_beside(const Checkpoint& checkpoint);

struct Content {
  const Checkpoint& checkpoint;
  std::vector<BesideFile> beside;
  std::string cpu_layout;  // assumed for packs that do not record it; used to name places
};
inline Content content_of(const Checkpoint& checkpoint, std::string cpu_layout = {}) {
  return {checkpoint, files_beside(checkpoint), std::move(cpu_layout)};
}

// Two pickles are compared node by node, whatever container holds them; safetensors of one dialect, entry by
// entry. A pickle and a safetensors file, or safetensors of two dialects, are compared tensor by tensor, as
// their dialects read them; what one of the formats cannot hold is then listed as not comparable. Refuses
// LimitExceeded.
ContentFindings compare_content(const Content& a, const Content& b);
// Moves everything that is not comparable to the differences.
ContentFindings strictly(ContentFindings findings);

}  // namespace qcts
