// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/output_hash.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "reference/formats/io/sha256.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/choices/other_recipes.h"
#include "reports/verdict.h"

namespace qcts {
namespace {

// Types of less than a byte are compared, and hashed, as bytes.
void normalize_nans(DType dtype, std::span<std::byte> elements) {
  if (!has_float_elements(dtype)) return;
  const uint64_t nan = encode_float(dtype, std::numeric_limits<double>::quiet_NaN());
  const size_t bytes = dtype_bytes(dtype);
  for (size_t at = 0; at + bytes <= elements.size(); at += bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, &elements[at], bytes);
    if (std::isnan(decode_float(dtype, bits))) std::memcpy(&elements[at], &nan, bytes);
  }
}

void append(std::vector<std::byte>& all, DType dtype, std::span<const std::byte> elements) {
  const size_t begin = all.size();
  all.insert(all.end(), elements.begin(), elements.end());
  normalize_nans(dtype, std::span(all).subspan(begin));
}

void append(std::vector<std::byte>& all, const Plane& plane) {
  std::string head = plane.name + " " + std::string(dtype_name(plane.dtype));
  for (const int64_t length : plane.shape) head += " " + std::to_string(length);
  head += "\n";
  const auto text = std::as_bytes(std::span(head));
  all.insert(all.end(), text.begin(), text.end());
  append(all, plane.dtype, plane.bytes);
}

bool is_compared_bitwise(const KernelInput& input) {
  const bool forgives = input.recipe != nullptr && input.recipe->any_non_finite;
  return input.op != Op::linear && !forgives;
}

}  // namespace

std::string output_hash(const qcts_kernel& kernel, const KernelInput& input, const KernelAnswer& answer) {
  if (!is_compared_bitwise(input) && !(kernel.claims & QCTS_CLAIM_DETERMINISTIC)) return "";
  std::vector<std::byte> all;
  if (input.has_y()) append(all, input.y_type(), answer.y);
  for (const Plane& plane : answer.planes) append(all, plane);
  return sha256_hex(all).substr(0, kOutputHashDigits);
}

}  // namespace qcts
