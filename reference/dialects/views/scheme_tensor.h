// SPDX-License-Identifier: BSD-3-Clause
// A named tensor in the terms of its scheme.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/dialects/classes/named_tensor.h"
#include "reference/schemes/scheme.h"

namespace qcts {

// A quantized tensor in scheme terms: its planes in the layout of the file. A plane that an older torchao
// stored otherwise with the same meaning is converted: scales of Int8Tensor in the logical dtype become
// float32, an absent zero_point zeros (0.15).
struct SchemeTensor {
  const Scheme* scheme = nullptr;
  Layout layout;                  // the packing that the planes are in
  DType dtype = DType::bfloat16;  // logical
  int64_t n = 0, k = 0;           // of the logical weight [n, k]; of more dimensions, all but k are rows
  Planes planes;
  Policy activation;
  Planes policy_planes{};  // Scheme::policy_specs
  // Bytes that the file has beyond those planes (negative: fewer), where an older producer stored one in
  // another type.
  int64_t stored_otherwise_bytes = 0;
};

// nullopt for a plain tensor or an unknown scheme. Refuses SubclassSchema when the file cannot tell the
// layout and the hint is none of the scheme's. `layout_hint` names the CPU pack where the file cannot tell
// ("cpu_avx512", "cpu_avx2", "cpu_default").
std::optional<SchemeTensor> scheme_tensor(const NamedTensor& tensor, std::string_view layout_hint = "");

}  // namespace qcts
