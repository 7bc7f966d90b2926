// SPDX-License-Identifier: BSD-3-Clause
// Sources: torchao 0.7 to 0.18.0, prototype/mx_formats/mx_tensor.py (to_dtype), nvfp4_tensor.py (dequantize,
// get_hp_scales) and kernels.py (unpack_uint4, triton_pack_uint6_kernel; custom_cast.py up to 0.11).
#include "reference/dialects/classes/block_floats.h"

#include <algorithm>

#include "reference/dialects/classes/lookup.h"
#include "reference/dialects/classes/schema.h"
#include "reference/numerics/block_scales.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// Attributes had a leading underscore until 0.15.
Json either_attribute(const NamedTensor& tensor, const std::string& name) {
  const Json today = attribute_at(tensor, name);
  return today.is_null() ? attribute_at(tensor, "_" + name) : today;
}

bool is_transposed(const NamedTensor& tensor, const Tensor& qdata) {
  const size_t dims = qdata.shape.size();
  if (dims < 2 || qdata.stride[dims - 2] >= qdata.stride[dims - 1]) return false;
  // MXTensor asks is_contiguous(), which a single row or column always is.
  return tensor.type != "MXTensor" || !qdata.is_contiguous();
}

// Returns the values of the stored scales in the order of the blocks; empty when their number is wrong.
std::vector<float> scales_of(const BlockFloats& floats) {
  if (floats.scale->numel() != stored_scales(floats)) return {};
  Tensor stored = *floats.scale;
  // Until 0.14 t() left the scales as they were.
  const size_t dims = stored.shape.size();
  if (floats.transposed && dims >= 2 && stored.stride[dims - 2] < stored.stride[dims - 1])
    swap_last_axes(stored);
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(stored, scratch);
  // e8m0 had no separate type until 0.9.
  const DType dtype = stored.dtype == DType::uint8 ? DType::float8_e8m0fnu : stored.dtype;
  const int64_t in_row = floats.shape.empty() ? 1 : floats.shape.back() / floats.block;
  std::vector<float> scales(static_cast<size_t>(floats.blocks()));
  for (int64_t i = 0; i < floats.blocks(); ++i) {
    const int64_t at = floats.swizzled ? swizzled_offset(in_row, i / in_row, i % in_row) : i;
    scales[static_cast<size_t>(i)] = static_cast<float>(load_float(dtype, bytes, static_cast<size_t>(at)));
  }
  return scales;
}

// Multiplies by the outer scale: one number, or one for each expert.
bool apply_outer_scale(const BlockFloats& floats, DType dtype, std::vector<float>& scales) {
  if (!floats.outer) return true;
  const int64_t count = floats.outer->numel();
  const bool by_expert = floats.shape.size() == 3 && count == floats.shape[0];
  if (floats.outer->dtype != DType::float32 || (count != 1 && !by_expert)) return false;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(*floats.outer, scratch);
  for (size_t i = 0; i < scales.size(); ++i) {
    const size_t expert = i / (scales.size() / static_cast<size_t>(count));
    const float outer = static_cast<float>(load_float(DType::float32, bytes, expert));
    scales[i] =
        floats.scales_in_dtype ? mul_in(dtype, round_to(dtype, outer), scales[i]) : mul_x86(outer, scales[i]);
  }
  return true;
}

// Reads an element by its row-major index.
class FloatElements {
 public:
  explicit FloatElements(const BlockFloats& floats)
      : floats_(floats), bytes_(row_major_bytes(floats.qdata)) {}
  float operator[](int64_t i) const {
    const DType type = floats_.element;
    if (type == DType::float4_e2m1fn_x2) return decoded(load_nibble(bytes_, floats_.high_first ? i ^ 1 : i));
    if (dtype_bits(type) == 8) return static_cast<float>(load_float(type, bytes_, static_cast<size_t>(i)));
    return decoded(floats_.packed_six ? packed_six(i) : byte(i) & 0x3F);
  }

 private:
  int byte(int64_t at) const { return std::to_integer<int>(bytes_[static_cast<size_t>(at)]); }
  float decoded(int code) const {
    return static_cast<float>(decode_float(floats_.element, static_cast<uint64_t>(code)));
  }
  // A block of b elements is three runs of b / 4 bytes: the high four bits of elements 0 and 1 of every four,
  // of elements 2 and 3, and the low two bits of all four, the first always highest.
  int packed_six(int64_t i) const {
    const int64_t run = floats_.block / 4, base = i / floats_.block * run * 3, four = i % floats_.block / 4;
    const int place = static_cast<int>(i % 4);
    const int high = byte(base + place / 2 * run + four) >> (place % 2 ? 0 : 4) & 15;
    const int low = byte(base + 2 * run + four) >> (6 - 2 * place) & 3;
    return high << 2 | low;
  }

  const BlockFloats& floats_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::optional<DType> mx_element(const Json& elem_dtype) {
  if (elem_dtype == "fp6_e2m3") return DType::float6_e2m3fn;
  if (elem_dtype == "fp6_e3m2") return DType::float6_e3m2fn;
  if (elem_dtype == "fp4_e2m1") return DType::float4_e2m1fn_x2;
  const std::optional<DType> dtype = dtype_of_json(elem_dtype);
  const bool known =
      dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2 || dtype == DType::float4_e2m1fn_x2;
  return known ? dtype : std::nullopt;
}

std::vector<int64_t> BlockFloats::logical_shape() const {
  std::vector<int64_t> logical = shape;
  if (transposed) std::swap(logical[logical.size() - 2], logical[logical.size() - 1]);
  return logical;
}

std::optional<BlockFloats> block_floats_of(const NamedTensor& tensor) {
  const bool mx = tensor.type == "MXTensor";
  if (!mx && tensor.type != "NVFP4Tensor") return std::nullopt;
  const std::optional<DType> element =
      mx ? mx_element(either_attribute(tensor, "elem_dtype")) : DType::float4_e2m1fn_x2;
  const Tensor* qdata = first_part(tensor, {"qdata", "_data"});
  const Json block = either_attribute(tensor, "block_size");
  BlockFloats floats;
  floats.scale = first_part(tensor, {"scale", "_scale_e8m0", "_scale_e4m3"});
  if (!element || !qdata || dtype_bits(qdata->dtype) != 8 || qdata->shape.empty() || !floats.scale ||
      dtype_bits(floats.scale->dtype) != 8 || !block.is_number_integer() || block.get<int64_t>() < 1)
    return std::nullopt;
  floats.element = *element;
  floats.block = block.get<int64_t>();
  floats.outer = first_part(tensor, {"per_tensor_scale", "_per_tensor_scale"});
  floats.swizzled = either_attribute(tensor, "is_swizzled_scales") == Json(true);
  floats.high_first = first_part(tensor, {"_scale_e8m0", "_scale_e4m3"});
  floats.scales_in_dtype = !tensor.attributes.contains("orig_dtype");
  floats.packed_six = dtype_bits(*element) == 6 && attribute_at(tensor, "_pack_fp6") == Json(true);
  floats.transposed = is_transposed(tensor, *qdata);
  floats.qdata = *qdata;
  if (floats.transposed) swap_last_axes(floats.qdata);
  floats.shape = floats.qdata.shape;
  int64_t& last = floats.shape.back();
  if (last > INT64_MAX / 4 || (floats.packed_six && (last % 3 || floats.block % 4))) return std::nullopt;
  if (*element == DType::float4_e2m1fn_x2) last *= 2;
  if (floats.packed_six) last = last / 3 * 4;
  if (numel_of(floats.shape) % floats.block || (floats.swizzled && last % floats.block)) return std::nullopt;
  return floats;
}

int64_t stored_scales(const BlockFloats& floats) {
  if (!floats.swizzled) return floats.blocks();
  const int64_t in_row = floats.shape.back() / floats.block;
  const int64_t rows = in_row ? floats.blocks() / in_row : 0;
  if (rows > INT32_MAX || in_row > INT32_MAX) return -1;
  return numel_of(swizzled_shape(rows, in_row));
}

std::optional<Tensor> dense_of_block_floats(const NamedTensor& tensor) {
  const std::optional<BlockFloats> floats = block_floats_of(tensor);
  if (!floats) return std::nullopt;
  const bool mx = tensor.type == "MXTensor";
  const int64_t count = numel_of(floats->shape);
  std::vector<float> scales = scales_of(*floats);
  if (count > 0 && scales.empty()) return std::nullopt;
  if (!mx && !apply_outer_scale(*floats, tensor.dtype, scales)) return std::nullopt;
  const FloatElements elements(*floats);
  // MX multiplies in the weight's dtype (packed six-bit elements in bfloat16), NVFP4 in float32.
  const DType product = !mx ? DType::float32 : floats->packed_six ? DType::bfloat16 : tensor.dtype;
  std::vector<std::byte> out(static_cast<size_t>(count) * dtype_bytes(tensor.dtype));
  for (int64_t i = 0; i < count; ++i) {
    const float scale = round_to(product, scales[static_cast<size_t>(i / floats->block)]);
    const float value = round_to(product, mul_x86(round_to(product, elements[i]), scale));
    store_float(tensor.dtype, out, static_cast<size_t>(i), value);
  }
  Tensor dense = make_tensor(tensor.dtype, floats->shape, std::move(out), tensor.name);
  return floats->transposed ? with_axes_swapped(std::move(dense), tensor.name) : dense;
}

}  // namespace qcts
