// SPDX-License-Identifier: BSD-3-Clause
// Converts a named tensor to the planes of its scheme.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/dialects/classes/named_tensor.h"
#include "reference/schemes/scheme.h"

namespace qcts {

// A quantized tensor as planes of its scheme, in the file's layout.
// Planes that an older torchao stored in another form are converted.
// Int8Tensor's scales in the logical dtype become float32.
// An absent zero_point becomes zeros (torchao 0.15).
struct SchemeTensor {
  const Scheme* scheme = nullptr;
  Layout layout;                  // the packing that the planes are in
  DType dtype = DType::bfloat16;  // logical
  int64_t n = 0, k = 0;           // the logical weight is [n, k]; all dimensions but k count as rows
  Planes planes;
  Policy activation = {};
  Planes policy_planes{};  // planes in the order of Scheme::policy_specs
  // Bytes of the file minus bytes of the planes, if an older producer stored a plane in another type.
  int64_t stored_otherwise_bytes = 0;
  std::string_view dialect{};  // the word of write_dialects() under which to write the tensor, or empty
};

// Converts a tensor. Returns nullopt for a plain tensor or an unknown scheme.
// `layout_hint` names the CPU pack if the file does not record it: "cpu_avx512", "cpu_avx2" or "cpu_default".
// Throws Refused (SubclassSchema) if the layout is unknown and the scheme lacks the hinted one.
std::optional<SchemeTensor> scheme_tensor(const NamedTensor& tensor, std::string_view layout_hint = "");

}  // namespace qcts
