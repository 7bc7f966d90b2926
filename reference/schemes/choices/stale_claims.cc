// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "reference/schemes/choices/choices.h"

namespace qcts {
namespace {

constexpr std::array<StaleClaim, 3> kClaims = {{
    {"claim_no_torchao_needed",
     "load_state_dict(assign=True) of a quantized state dict: \"No dependency on torchao is needed\"",
     "torchao's documentation, serialization",
     "torch.load(weights_only=True) of torch 2.13.0 refuses every file with a torchao class until torchao is "
     "imported",
     "fixtures/readers.json: reader torch 2.13.0 alone"},
    {"claim_transformers_no_safetensors",
     "torchao \"only work with huggingface non-safetensor serialization\"; "
     "save_pretrained(safe_serialization=False)",
     "transformers' documentation, TorchAO",
     "transformers 5.23.0 writes safetensors and ignores safe_serialization=False",
     "goldens transformers_5_23_0/*"},
    {"claim_w8a16_is_lossless_enough", "W8A16 keeps 16-bit activations with int8 weights for bfloat16 models",
     "TinyQ's tutorial, quantization methods",
     "in bfloat16 the unclamped code 128 wraps: 14 dB of SQNR where float16 has 45",
     "golden tinyq_006b7b9/w8a16/toy_bfloat16"},
}};

}  // namespace

std::span<const StaleClaim> stale_claims() { return kClaims; }

}  // namespace qcts
