// SPDX-License-Identifier: BSD-3-Clause
// Two checkpoints compared by all that they hold (E2): the object graph with its kinds of containers and
// their order, every number, string and flag, every tensor with its view, its storage, its device and what
// hangs on it, the metadata of safetensors, and the files beside a folder's tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/comparison/findings.h"
#include "reference/dialects/checkpoint.h"
#include "reference/formats/io/mapped_file.h"

namespace qcts {

// A file of a folder that is no weight file that was read.
struct BesideFile {
  std::string name;  // below the folder
  std::shared_ptr<const MappedFile> file;
};
// Throws IoError; refuses LimitExceeded where there are more than 4096.
std::vector<BesideFile> files_beside(const Checkpoint& checkpoint);

struct Content {
  const Checkpoint& checkpoint;
  std::vector<BesideFile> beside;
  std::string cpu_layout;  // of packs that do not say it, for the names of places
};
inline Content content_of(const Checkpoint& checkpoint, std::string cpu_layout = {}) {
  return {checkpoint, files_beside(checkpoint), std::move(cpu_layout)};
}

// Pickles are compared node by node, whatever containers hold them; safetensors of one dialect entry by
// entry; a pickle with safetensors, and safetensors of two dialects, tensor by tensor as their dialects read
// them. Then what one of the two has no place for is listed as not comparable. Refuses LimitExceeded.
ContentFindings compare_content(const Content& a, const Content& b);
// What is not comparable counts as a difference.
ContentFindings strictly(ContentFindings findings);

}  // namespace qcts
