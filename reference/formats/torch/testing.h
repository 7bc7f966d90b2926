// SPDX-License-Identifier: BSD-3-Clause
// Helpers of tests that need an archive. Only *_test.cc files include this header.
#pragma once

#include "reference/formats/testing.h"
#include "reference/formats/torch/zip.h"

namespace qcts::testing {

// Returns {"x": [1, 1], "y": [2, 2, 2]} as torch.save writes it to a buffer.
inline Bytes small_archive() {
  const Tensor x = float_tensor({2}, {1, 1}), y = float_tensor({3}, {2, 2, 2});
  pickle::Ref root = pickle::dict();
  root->pairs = {{pickle::string("x"), tensor_node(x, "0")}, {pickle::string("y"), tensor_node(y, "1")}};
  return write_torch_zip("archive", root, {x.storage, y.storage});
}

}  // namespace qcts::testing
