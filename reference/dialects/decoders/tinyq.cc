// SPDX-License-Identifier: BSD-3-Clause
// Decodes W8A32LinearLayer and W8A16LinearLayer of TinyQ 006b7b9, as joined by ../tinyq.cc.
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

Recognized recognize_tinyq(const NamedTensor& tensor) {
  if (tensor.type == "W8A32LinearLayer") return {"tinyq_w8a32", "plain"};
  if (tensor.type == "W8A16LinearLayer") return {"tinyq_w8a16", "plain"};
  return {};
}

// A single row's scale may have no dimension; a reloaded model has floating zero points.
std::optional<Plane> convert_tinyq(const NamedTensor&, const Tensor* part, const PlaneSpec& spec) {
  if (!part || part->numel() != numel_of(spec.shape)) return std::nullopt;
  Plane plane = {spec.name, spec.dtype, spec.shape, row_major_bytes(*part)};
  if (part->dtype == spec.dtype) return plane;
  if (spec.name != "zero_points" || !is_float(part->dtype)) return std::nullopt;
  std::vector<std::byte> integers(spec.bytes());
  for (int64_t i = 0; i < part->numel(); ++i)
    if (load_float(part->dtype, plane.bytes, static_cast<size_t>(i)) != 0) return std::nullopt;
  plane.bytes = std::move(integers);
  return plane;
}

}  // namespace

extern const Decoder kDecoder_tinyq = {recognize_tinyq, nullptr, convert_tinyq};

}  // namespace qcts
