// SPDX-License-Identifier: BSD-3-Clause
// Sources: torchao 0.5 to 0.17, torchao/dtypes/affine_quantized_tensor.py and its layouts (in
// torchao/prototype/dtypes since 0.15 and 0.16), and _dequantize_affine* of
// torchao/quantization/quant_primitives.py.
#include "reference/dialects/classes/affine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/block_floats.h"
#include "reference/dialects/classes/marlin.h"
#include "reference/dialects/classes/nf4.h"
#include "reference/dialects/classes/optim_states.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/classes/sparse.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr std::string_view kInner = "original_weight_tensor";

std::string class_at(const NamedTensor& tensor, const std::string& name) {
  const auto value = tensor.attributes.find(name);
  return value != tensor.attributes.end() && value->is_object() ? value->value("_type", "") : "";
}

Json attribute(const NamedTensor& tensor, const std::string& name) {
  const auto value = tensor.attributes.find(name);
  return value == tensor.attributes.end() ? Json(nullptr) : *value;
}

// Returns the integers of a list, or of an encoded tuple.
std::vector<int64_t> integers(const Json& value) {
  const Json& list = value.is_object() && value.contains("_data") ? value["_data"] : value;
  std::vector<int64_t> numbers;
  if (list.is_array())
    for (const Json& item : list) numbers.push_back(item.is_number_integer() ? item.get<int64_t>() : 0);
  return numbers;
}

// float8_e4m3fnuz and float8_e5m2fnuz (c10/util/Float8_fnuz_cvt.h): a bias one larger than IEEE's, 0x80 is
// the only NaN.
double fnuz_at(std::span<const std::byte> bytes, size_t i, int exponent_bits, int mantissa_bits) {
  const int code = std::to_integer<int>(bytes[i]);
  return code == 0x80 ? std::nan("") : floatx_value(code, exponent_bits, mantissa_bits) / 2;
}

double number_at(DType dtype, std::span<const std::byte> bytes, size_t i) {
  const auto read = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case DType::int8:
      return read(int8_t{});
    case DType::uint8:
      return read(uint8_t{});
    case DType::int16:
      return read(int16_t{});
    case DType::int32:
      return read(int32_t{});
    case DType::int64:
      return read(int64_t{});
    case DType::float8_e4m3fnuz:
      return fnuz_at(bytes, i, 4, 3);
    case DType::float8_e5m2fnuz:
      return fnuz_at(bytes, i, 5, 2);
    default:
      return std::nan("");
  }
}

bool holds_numbers(DType dtype) {
  return is_float(dtype) || dtype == DType::int8 || dtype == DType::uint8 || dtype == DType::int16 ||
         dtype == DType::int32 || dtype == DType::int64 || dtype == DType::float8_e4m3fnuz ||
         dtype == DType::float8_e5m2fnuz;
}

// Unpacks bit shards (dtypes/uintx/bitpacking.py): a code of b bits is split into shards of 4, 2 and 1 bits,
// the widest lowest. A shard byte holds 8 / w codes, K * w / 8 columns apart (pack_dim -1).
std::optional<std::vector<double>> uintx_codes(const NamedTensor& tensor, const std::string& at, int64_t rows,
                                               int64_t columns) {
  const Json dim = attribute(tensor, at + "pack_dim");
  if (dim != Json(-1) && dim != Json(1)) return std::nullopt;
  std::vector<double> codes(static_cast<size_t>(rows * columns), 0);
  int shift = 0;
  for (const int width : {4, 2, 1}) {
    const Tensor* shard = find_payload(tensor, at + "int" + std::to_string(width) + "_shard");
    if (!shard) continue;
    const int64_t held = columns * width / 8;
    if (columns * width % 8 || shard->dtype != DType::uint8 ||
        shard->shape != std::vector<int64_t>{rows, held})
      return std::nullopt;
    const std::vector<std::byte> bytes = row_major_bytes(*shard);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const int byte = std::to_integer<int>(bytes[static_cast<size_t>(r * held + c % held)]);
        const int part = byte >> (c / held * width) & ((1 << width) - 1);
        codes[static_cast<size_t>(r * columns + c)] += part << shift;
      }
    shift += width;
  }
  if (attribute(tensor, at + "bit_width") != Json(shift)) return std::nullopt;
  return codes;
}

// Unpacks two signed codes per byte, the even column low (dtypes/uintx/cutlass_int4_packed_layout.py).
std::optional<std::vector<double>> nibble_codes(const Tensor& pairs, int64_t rows, int64_t columns) {
  if (pairs.dtype != DType::int8 || pairs.shape != std::vector<int64_t>{rows, columns / 2} || columns % 2)
    return std::nullopt;
  std::vector<double> codes;
  for (const std::byte byte : row_major_bytes(pairs)) {
    const int value = static_cast<int8_t>(byte), low = (value & 15) >= 8 ? (value & 15) - 16 : value & 15;
    codes.push_back(low);
    codes.push_back(value >> 4);
  }
  return codes;
}

struct Parts {
  std::string_view impl, codes;
};
// Layouts that store one code per element, each under its own name.
constexpr std::array<Parts, 6> kElementwise = {{{"PlainAQTTensorImpl", "int_data"},
                                                {"PlainAQTLayout", "int_data"},
                                                {"QDQTensorImpl", "int_data"},
                                                {"_Impl", "int_data"},
                                                {"Float8AQTTensorImpl", "float8_data"},
                                                {"Float8AQTLayout", "float8_data"}}};

// Unpacks FloatxTensorCore*, called FpxTensorCore* in 0.5.
std::optional<std::vector<double>> prepacked_codes(const NamedTensor& tensor, const std::string& at,
                                                   int64_t rows, int64_t columns) {
  const Tensor* packed = find_payload(tensor, at + "packed_floatx_data");
  if (!packed) packed = find_payload(tensor, at + "packed_fpx_data");
  Json layout = attribute(tensor, at + "_layout");
  if (layout.is_null()) layout = attribute(tensor, at + "layout_type");
  const Json data = layout.is_object() ? layout.value("_data", Json()) : Json();
  if (!packed || !data.is_object()) return std::nullopt;
  const Json exponent = data.value("ebits", Json()), mantissa = data.value("mbits", Json());
  if (!exponent.is_number_integer() || !mantissa.is_number_integer()) return std::nullopt;
  const int64_t e = exponent.get<int64_t>(), m = mantissa.get<int64_t>();
  if (e < 1 || e > 7 || m < 0 || m > 7) return std::nullopt;
  return floatx_codes(*packed, rows, columns, static_cast<int>(e), static_cast<int>(m));
}

std::optional<std::vector<double>> codes_of(const NamedTensor& tensor, const std::string& at,
                                            const Affine& affine) {
  for (const Parts& parts : kElementwise) {
    if (affine.impl != parts.impl) continue;
    const Tensor* codes = find_payload(tensor, at + std::string(parts.codes));
    if (!codes || codes->shape != affine.shape || !holds_numbers(codes->dtype)) return std::nullopt;
    return numbers_of(*codes);
  }
  if (affine.shape.size() != 2) return std::nullopt;
  if (affine.impl == "UintxAQTTensorImpl" || affine.impl == "UintxAQTLayout")
    return uintx_codes(tensor, at + "int_data.", affine.shape[0], affine.shape[1]);
  if (affine.impl.starts_with("FloatxTensorCore") || affine.impl.starts_with("FpxTensorCore"))
    return prepacked_codes(tensor, at, affine.shape[0], affine.shape[1]);
  if (affine.impl == "BlockSparseAQTTensorImpl" || affine.impl == "BlockSparseAQTLayout")
    if (const std::optional<Tensor> codes = dense_of_blocks(tensor, at); codes && holds_numbers(codes->dtype))
      return numbers_of(*codes);
  if (affine.impl == "Int4PackedTensorImpl")
    if (const Tensor* pairs = find_payload(tensor, at + "int_data"))
      return nibble_codes(*pairs, affine.shape[0], affine.shape[1]);
  return std::nullopt;
}

// Returns the number of blocks; 0 when the blocks do not divide the shape.
int64_t grid_elems(const Affine& affine) {
  if (affine.block.size() != affine.shape.size()) return 0;
  int64_t blocks = 1;
  for (size_t d = 0; d < affine.shape.size(); ++d) {
    if (affine.block[d] <= 0 || affine.shape[d] % affine.block[d]) return 0;
    blocks *= affine.shape[d] / affine.block[d];
  }
  return blocks;
}

// Returns the row-major index of an element's block.
int64_t block_of(const Affine& affine, int64_t element) {
  int64_t block = 0, grid = 1;
  for (size_t d = affine.shape.size(); d-- > 0;) {
    block += element % affine.shape[d] / affine.block[d] * grid;
    grid *= affine.shape[d] / affine.block[d];
    element /= affine.shape[d];
  }
  return block;
}

std::optional<ZeroPoints> domain_of(const Json& value) {
  if (value.is_null()) return ZeroPoints::none;
  const std::string name = value.is_object() ? value.value("_data", "") : "";
  if (name == "INT") return ZeroPoints::integer;
  if (name == "NONE") return ZeroPoints::none;
  if (name == "FLOAT") return ZeroPoints::floating;
  return std::nullopt;
}

// Dequantizes. The code, exact in the weight's dtype, times the scale is computed in float32 (torch's compute
// type for narrow types, and the promotion with a float32 scale), then rounded to the weight's dtype. With a
// floating zero point that dtype rounds twice (_dequantize_affine_tinygemm).
Tensor dense_of_affine(const Affine& affine, const std::string& name) {
  const std::vector<double> scales = numbers_of(*affine.scale);
  std::vector<double> zeros(scales.size(), 0);
  if (affine.zero_point) zeros = numbers_of(*affine.zero_point);
  std::vector<std::byte> out(affine.codes.size() * dtype_bytes(affine.dtype));
  for (size_t i = 0; i < affine.codes.size(); ++i) {
    const size_t block = static_cast<size_t>(block_of(affine, static_cast<int64_t>(i)));
    const bool floating = affine.domain == ZeroPoints::floating;
    const double code = affine.codes[i] - (floating ? affine.middle : zeros[block]);
    const float product = static_cast<float>(code) * static_cast<float>(scales[block]);
    float value = round_to(affine.dtype, product);
    if (floating) value = add_in(affine.dtype, value, static_cast<float>(zeros[block]));
    store_float(affine.dtype, out, i, value);
  }
  return make_tensor(affine.dtype, affine.shape, std::move(out), name);
}

bool all_integers(const Tensor& tensor) {
  return std::ranges::all_of(numbers_of(tensor),
                             [](double z) { return std::nearbyint(z) == z && std::fabs(z) <= 256; });
}

// Classes that are affine without an AffineQuantizedTensor around a layout:
//   FbgemmFp8Tensor           torchao 0.11 to 0.15, dtypes/fbgemm_fp8_tensor.py: float8_data [N, K] times
//                             scale [N], the inverse of fbgemm's quantize_fp8_row
//   IntxUnpackedTensor        torchao 0.13, quantize_/workflows/intx/intx_unpacked_tensor.py: qdata, scale,
//                             zero_point over block_size
//   IntxUnpackedToInt8Tensor, Int8Tensor, Float8Tensor, PrototypeFloat8Tensor
//                             torchao 0.18.0, over blocks of any shape: those of a convolution, of a
//                             transposed weight, of groups that no scheme has. Float8Tensor without a
//                             block_size has one scale
bool is_flat(const NamedTensor& tensor) {
  if (tensor.type == "FbgemmFp8Tensor" || tensor.type == "IntxUnpackedTensor")
    return tensor.shape.size() == 2;
  return tensor.type == "IntxUnpackedToInt8Tensor" || tensor.type == "Int8Tensor" ||
         tensor.type == "Float8Tensor" || tensor.type == "PrototypeFloat8Tensor";
}

std::optional<Affine> read_flat(const NamedTensor& tensor) {
  if (!is_flat(tensor)) return std::nullopt;
  const bool fbgemm = tensor.type == "FbgemmFp8Tensor", float8 = tensor.type.ends_with("Float8Tensor");
  const Tensor* codes = find_payload(tensor, fbgemm ? "float8_data" : "qdata");
  Affine affine;
  affine.dtype = tensor.dtype;
  affine.shape = tensor.shape;
  affine.block =
      fbgemm ? std::vector<int64_t>{1, tensor.shape[1]} : integers(attribute(tensor, "block_size"));
  if (float8 && affine.block.empty()) affine.block = tensor.shape;
  affine.scale = find_payload(tensor, "scale");
  affine.zero_point = fbgemm || float8 ? nullptr : find_payload(tensor, "zero_point");
  affine.impl = tensor.type;
  const int64_t blocks = grid_elems(affine);
  if (!codes || codes->shape != tensor.shape || !holds_numbers(codes->dtype) || !blocks || !affine.scale ||
      !is_float(affine.scale->dtype) || affine.scale->numel() != blocks)
    return std::nullopt;
  if (affine.zero_point && (affine.zero_point->numel() != blocks ||
                            !holds_numbers(affine.zero_point->dtype) || !all_integers(*affine.zero_point)))
    return std::nullopt;
  affine.codes = numbers_of(*codes);
  return affine;
}

}  // namespace

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(tensor, scratch);
  std::vector<double> numbers(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] =
        is_float(tensor.dtype) ? load_float(tensor.dtype, bytes, i) : number_at(tensor.dtype, bytes, i);
  return numbers;
}

std::optional<std::string> affine_prefix(const NamedTensor& tensor) {
  if (tensor.type == "AffineQuantizedTensor") return "";
  const std::string inner(kInner);
  if (class_at(tensor, inner) == "AffineQuantizedTensor") return inner + ".";
  return std::nullopt;
}

std::optional<Affine> read_affine(const NamedTensor& tensor) {
  const std::optional<std::string> prefix = affine_prefix(tensor);
  if (!prefix) return std::nullopt;
  const bool first_names = tensor.attributes.contains(*prefix + "layout_tensor");
  const std::string impl = *prefix + (first_names ? "layout_tensor" : "tensor_impl");
  const std::string at = impl + ".";
  if (attribute(tensor, at + "transposed") == Json(true)) return std::nullopt;
  Affine affine;
  affine.dtype = tensor.dtype;
  affine.shape = tensor.shape;
  affine.block = integers(attribute(tensor, *prefix + "block_size"));
  affine.impl = class_at(tensor, impl);
  affine.scale = find_payload(tensor, at + "scale");
  affine.zero_point = find_payload(tensor, at + "zero_point");
  // Small floats have one scale per row, whatever their block_size says ([256, 1] for [256, 64]).
  if (affine.impl.find("xTensorCore") != std::string::npos && affine.shape.size() == 2)
    affine.block = {1, affine.shape[1]};
  const std::optional<ZeroPoints> domain = domain_of(attribute(tensor, *prefix + "zero_point_domain"));
  const int64_t blocks = grid_elems(affine);
  if (!domain || !blocks || !affine.scale || !is_float(affine.scale->dtype) ||
      affine.scale->numel() != blocks)
    return std::nullopt;
  affine.domain = *domain;
  if (affine.zero_point && (affine.zero_point->numel() != blocks || !holds_numbers(affine.zero_point->dtype)))
    return std::nullopt;
  if (affine.domain == ZeroPoints::none && affine.zero_point) return std::nullopt;
  if (affine.domain == ZeroPoints::integer && affine.zero_point && !all_integers(*affine.zero_point))
    return std::nullopt;
  if (affine.domain == ZeroPoints::floating) {
    const Json low = attribute(tensor, *prefix + "quant_min"),
               high = attribute(tensor, *prefix + "quant_max");
    if (!low.is_number() || !high.is_number()) return std::nullopt;
    affine.middle = (high.get<double>() + low.get<double>() + 1) / 2;
  }
  std::optional<std::vector<double>> codes = codes_of(tensor, at, affine);
  if (!codes) return std::nullopt;
  affine.codes = std::move(*codes);
  return affine;
}

std::optional<Tensor> dense_by_dialect(const NamedTensor& tensor) {
  if (const std::optional<Affine> affine = read_affine(tensor)) return dense_of_affine(*affine, tensor.name);
  if (const std::optional<Affine> affine = read_flat(tensor)) return dense_of_affine(*affine, tensor.name);
  if (const std::optional<Tensor> dense = dense_of_block_floats(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_nf4(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_marlin(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_optim_state(tensor)) return dense;
  if (const std::optional<Tensor> dense = dense_of_sparse_weight(tensor)) return dense;
  // Bare bit planes: the codes, one byte each.
  if (tensor.type == "UintxTensor" && tensor.shape.size() == 2 && tensor.dtype == DType::uint8)
    if (const auto codes = uintx_codes(tensor, "", tensor.shape[0], tensor.shape[1])) {
      std::vector<std::byte> bytes(codes->size());
      std::ranges::transform(*codes, bytes.begin(),
                             [](double code) { return static_cast<std::byte>(static_cast<int>(code)); });
      return make_tensor(tensor.dtype, tensor.shape, std::move(bytes), tensor.name);
    }
  // Wrappers that quantize only activations, around a plain weight.
  if (tensor.type != "LinearActivationQuantizedTensor" &&
      tensor.type != "WeightTensorWithLinearActivationQuantizationMetadata")
    return std::nullopt;
  for (std::string_view name : {kInner, std::string_view("original_weight")})
    if (const Tensor* weight = find_payload(tensor, name); weight && weight->shape == tensor.shape)
      return *weight;
  return std::nullopt;
}

}  // namespace qcts
