// SPDX-License-Identifier: BSD-3-Clause
// Compares two object graphs node by node.
// Compares everything that a pickle holds, except for the keys under which a container keeps its storages.
// Different spellings that load as the same value are equal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/comparison/findings.h"
#include "reference/formats/torch/object.h"

namespace qcts {

// Describes the element of a tensor at `index`: "group 3, column 17" or "element 17".
using ElementPlace = std::function<std::string(const Tensor& tensor, uint64_t index)>;

// Finds the first element in row-major order that differs between two tensors of one dtype and shape.
// Returns false if all elements are equal.
// NaNs with different payloads differ, and so do zeros with different signs.
bool compare_elements(const std::string& path, const Tensor& a, const Tensor& b, const ElementPlace& place,
                      ContentDifferences& out);

// Each side is the object of one file, or the objects of all shards of a folder, whose mappings are merged.
using TorchObjects = std::vector<const TorchObject*>;
void compare_graphs(const TorchObjects& a, const TorchObjects& b, const std::string& path,
                    const ElementPlace& place, ContentFindings& out);

}  // namespace qcts
