// SPDX-License-Identifier: BSD-3-Clause
// Sources: torchao 0.18.0, prototype/mx_formats/mx_tensor.py (to_dtype) and nvfp4_tensor.py (dequantize,
// get_hp_scales).
#include "reference/dialects/classes/block_floats.h"

#include "reference/dialects/classes/schema.h"
#include "reference/numerics/block_scales.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

struct FloatBlocks {
  int64_t rows = 0, columns = 0, block = 0;
  int64_t in_row() const { return columns / block; }
};

std::optional<FloatBlocks> blocks_in(const NamedTensor& tensor) {
  const auto block = tensor.attributes.find("block_size");
  if (tensor.shape.size() < 2 || block == tensor.attributes.end() || !block->is_number_integer())
    return std::nullopt;
  FloatBlocks blocks = {numel_of(std::span(tensor.shape).first(tensor.shape.size() - 1)), tensor.shape.back(),
                        block->get<int64_t>()};
  if (blocks.block < 1 || blocks.columns % blocks.block) return std::nullopt;
  return blocks;
}

// Returns the block scales, row-major over rows and blocks.
std::optional<std::vector<float>> float_scales_of(const NamedTensor& tensor, const FloatBlocks& blocks) {
  const Tensor* scale = find_payload(tensor, "scale");
  if (!scale || !is_float(scale->dtype) || dtype_bits(scale->dtype) != 8) return std::nullopt;
  const auto flag = tensor.attributes.find("is_swizzled_scales");
  const bool swizzled = flag != tensor.attributes.end() && *flag == Json(true);
  const int64_t count = blocks.rows * blocks.in_row();
  const int64_t stored = swizzled ? numel_of(swizzled_shape(blocks.rows, blocks.in_row())) : count;
  if (scale->numel() != stored) return std::nullopt;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(*scale, scratch);
  std::vector<float> scales(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at =
        swizzled ? swizzled_offset(blocks.in_row(), i / blocks.in_row(), i % blocks.in_row()) : i;
    scales[static_cast<size_t>(i)] =
        static_cast<float>(load_float(scale->dtype, bytes, static_cast<size_t>(at)));
  }
  return scales;
}

// Multiplies by the outer scale: one number, or one for each expert.
bool apply_outer_scale(const NamedTensor& tensor, std::vector<float>& scales) {
  const Tensor* outer = find_payload(tensor, "per_tensor_scale");
  if (!outer) return true;
  const int64_t count = outer->numel();
  const bool by_expert = tensor.shape.size() == 3 && count == tensor.shape[0];
  if (outer->dtype != DType::float32 || (count != 1 && !by_expert)) return false;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(*outer, scratch);
  for (size_t i = 0; i < scales.size(); ++i) {
    const size_t expert = i / (scales.size() / static_cast<size_t>(count));
    scales[i] = mul_x86(static_cast<float>(load_float(DType::float32, bytes, expert)), scales[i]);
  }
  return true;
}

class FloatElements {
 public:
  FloatElements(DType type, const Tensor& qdata) : type_(type), bytes_(row_major_bytes(qdata)) {}
  int64_t count() const {
    return static_cast<int64_t>(bytes_.size()) * (type_ == DType::float4_e2m1fn_x2 ? 2 : 1);
  }
  float operator[](int64_t i) const {
    if (dtype_bits(type_) == 8 && type_ != DType::float4_e2m1fn_x2)
      return static_cast<float>(load_float(type_, bytes_, static_cast<size_t>(i)));
    const int code = type_ == DType::float4_e2m1fn_x2
                         ? load_nibble(bytes_, i)
                         : std::to_integer<int>(bytes_[static_cast<size_t>(i)]) & 0x3F;
    return static_cast<float>(decode_float(type_, static_cast<uint64_t>(code)));
  }

 private:
  DType type_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::optional<DType> mx_element(const Json& elem_dtype) {
  if (elem_dtype == "fp6_e2m3") return DType::float6_e2m3fn;
  if (elem_dtype == "fp6_e3m2") return DType::float6_e3m2fn;
  const std::optional<DType> dtype = dtype_of_json(elem_dtype);
  const bool known =
      dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2 || dtype == DType::float4_e2m1fn_x2;
  return known ? dtype : std::nullopt;
}

std::optional<Tensor> dense_of_block_floats(const NamedTensor& tensor) {
  const bool mx = tensor.type == "MXTensor";
  if (!mx && tensor.type != "NVFP4Tensor") return std::nullopt;
  const std::optional<DType> element =
      mx ? mx_element(tensor.attributes.value("elem_dtype", Json())) : DType::float4_e2m1fn_x2;
  const std::optional<FloatBlocks> blocks = blocks_in(tensor);
  const Tensor* qdata = find_payload(tensor, "qdata");
  if (!element || !blocks || !qdata) return std::nullopt;
  std::optional<std::vector<float>> scales = float_scales_of(tensor, *blocks);
  const FloatElements elements(*element, *qdata);
  if (!scales || elements.count() != blocks->rows * blocks->columns) return std::nullopt;
  if (!mx && !apply_outer_scale(tensor, *scales)) return std::nullopt;
  // MX multiplies in the weight's dtype, NVFP4 in float32.
  const DType product = mx ? tensor.dtype : DType::float32;
  std::vector<std::byte> out(static_cast<size_t>(elements.count()) * dtype_bytes(tensor.dtype));
  for (int64_t i = 0; i < elements.count(); ++i) {
    const float scale = round_to(product, (*scales)[static_cast<size_t>(i / blocks->block)]);
    const float value = round_to(product, mul_x86(round_to(product, elements[i]), scale));
    store_float(tensor.dtype, out, static_cast<size_t>(i), value);
  }
  return make_tensor(tensor.dtype, tensor.shape, std::move(out), tensor.name);
}

}  // namespace qcts
