// SPDX-License-Identifier: BSD-3-Clause
// Decodes GGUFQuantizedTensor, a prototype of torchao 0.10 to 0.18.
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/decoders/decoder.h"

namespace qcts {
namespace {

Recognized recognize_gguf_proto(const NamedTensor& tensor) {
  const bool blocks_of_32 = tensor.attributes.value("n_blocks_per_superblock", Json()) == Json(8);
  return tensor.type == "GGUFQuantizedTensor" && blocks_of_32 ? Recognized{"gguf_proto", "plain"}
                                                              : Recognized{};
}

}  // namespace

extern const Decoder kDecoder_gguf_proto = {recognize_gguf_proto};

}  // namespace qcts
