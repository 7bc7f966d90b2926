// SPDX-License-Identifier: BSD-3-Clause
// Two object graphs, node against node. Everything that a pickle holds is compared unless it is named here:
// the keys under which a container keeps its storages, and spellings that load as the same value.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/comparison/findings.h"
#include "reference/formats/torch/object.h"

namespace qcts {

// Says which of a tensor's elements stands at `index`: "group 3, column 17", "element 17".
using ElementPlace = std::function<std::string(const Tensor& tensor, uint64_t index)>;

// The first element of two tensors of one dtype and shape that differs, in row-major order; false where none
// does. NaNs of other payloads and zeros of other signs differ.
bool compare_elements(const std::string& path, const Tensor& a, const Tensor& b, const ElementPlace& place,
                      ContentDifferences& out);

// Each side the object of one file, or those of all shards of a folder: then their mappings are one.
using TorchObjects = std::vector<const TorchObject*>;
void compare_graphs(const TorchObjects& a, const TorchObjects& b, const std::string& path,
                    const ElementPlace& place, ContentFindings& out);

}  // namespace qcts
