// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/optim_states.h"

#include <cstring>
#include <vector>

#include "reference/dialects/classes/affine.h"
#include "reference/dialects/classes/schema.h"

namespace qcts {
namespace {

// One code per element: a float8 value, or an index into `qmap`, of which two may be in a byte, the high half
// first.
std::optional<std::vector<double>> code_values(const NamedTensor& tensor, const Tensor& codes) {
  if (tensor.type == "OptimStateFp8") {
    if (codes.dtype != DType::float8_e4m3fn) return std::nullopt;
    return numbers_of(codes);
  }
  const bool halves = tensor.type == "OptimState4bit";
  const Tensor* qmap = find_payload(tensor, "qmap");
  if (qmap == nullptr || qmap->dtype != DType::float32 || qmap->numel() != (halves ? 16 : 256) ||
      codes.dtype != DType::uint8)
    return std::nullopt;
  const std::vector<double> map = numbers_of(*qmap);
  std::vector<std::byte> scratch;
  std::vector<double> values;
  for (const std::byte byte : row_major_view(codes, scratch)) {
    const auto code = std::to_integer<size_t>(byte);
    if (halves) values.push_back(map[code >> 4]);
    values.push_back(map[halves ? code & 15 : code]);
  }
  return values;
}

}  // namespace

std::optional<Tensor> dense_of_optim_state(const NamedTensor& tensor) {
  if (!tensor.type.starts_with("OptimState")) return std::nullopt;
  const Tensor *codes = find_payload(tensor, "codes"), *scale = find_payload(tensor, "scale");
  if (codes == nullptr || scale == nullptr || scale->dtype != DType::float32 || scale->numel() == 0)
    return std::nullopt;
  const auto values = code_values(tensor, *codes);
  const auto count = static_cast<size_t>(numel_of(tensor.shape));
  const std::vector<double> scales = numbers_of(*scale);
  if (!values || values->size() != count || count % scales.size() != 0) return std::nullopt;
  const size_t block = count / scales.size();
  std::vector<std::byte> bytes(4 * count);
  for (size_t i = 0; i < count; ++i) {
    const auto value =
        static_cast<float>((*values)[i] * scales[i / block]);  // the product is exact in double
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return make_tensor(DType::float32, tensor.shape, std::move(bytes), tensor.name);
}

}  // namespace qcts
