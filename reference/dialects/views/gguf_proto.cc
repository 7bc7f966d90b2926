// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.10 to 0.18: GGUFQuantizedTensor, a prototype.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/views/view.h"

namespace qcts {
namespace {

Recognized recognize_gguf_proto(const NamedTensor& tensor) {
  const bool blocks_of_32 = tensor.attributes.value("n_blocks_per_superblock", Json()) == Json(8);
  return tensor.type == "GGUFQuantizedTensor" && blocks_of_32 ? Recognized{"gguf_proto", "plain"}
                                                              : Recognized{};
}

}  // namespace

extern const View kView_gguf_proto = {recognize_gguf_proto};

}  // namespace qcts
