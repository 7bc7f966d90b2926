// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "reference/schemes/choices/choices.h"

namespace qcts {
namespace {

constexpr std::string_view kNoMap =
    "no index map is published: the compressed layout is cuSPARSELt's own and may change with its version; "
    "what PyTorch "
    "found out of it (ATen's MetadataCuSparseLt) is for 16-bit elements";
constexpr std::string_view kNoMapEvidence =
    "NVIDIA/CUDALibrarySamples issues 167 and 95; a CPU has no aten::_cslt_compress (torch 2.13.0, run)";
constexpr std::string_view kTwoMaps =
    "two index maps of its metadata are published, and differ: blocks of 128 x 64 one below the other, and "
    "strips of 64 rows; a file does not tell for which card it was compressed";
constexpr std::string_view kTwoMapsEvidence =
    "ATen's MetadataCuSparseLt (aten/src/ATen/native/sparse/cuda/SparseSemiStructuredTile.cu), torchao's "
    "MetadataCusparseLt16bits (torchao/csrc/cuda/sparse24_sm90)";
constexpr std::array<KeptLayout, 2> kKept = {
    {{"SemiSparseLayout", "int8 weights, 2:4 sparse, below LinearActivationQuantizedTensor",
      "torchao 0.5.0 to 0.16.0 on a GPU (int8 dynamic activations)", kNoMap, kNoMapEvidence},
     {"SparseSemiStructuredTensorCUSPARSELT", "16-bit and 8-bit weights, 2:4 sparse, not quantized",
      "torch's to_sparse_semi_structured, torchao's SemiSparseWeightConfig on a GPU with cuSPARSELt",
      kTwoMaps, kTwoMapsEvidence}}};

}  // namespace

std::span<const KeptLayout> kept_layouts() { return kKept; }

}  // namespace qcts
