// SPDX-License-Identifier: BSD-3-Clause
// Recognizes tensors that a scheme describes, and reads their planes.
#include <algorithm>
#include <cstring>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/formats/refusal.h"
#include "reference/numerics/soft_float.h"

namespace qcts {

#define QCTS_DECODER(name) extern const Decoder kDecoder_##name;
#include "reference/dialects/decoders/decoders.inc"
#undef QCTS_DECODER

namespace {

#define QCTS_DECODER(name) &kDecoder_##name,
const Decoder* const kDecoders[] = {
#include "reference/dialects/decoders/decoders.inc"
};
#undef QCTS_DECODER

const Tensor* part_of(const Decoder& decoder, const NamedTensor& tensor, std::string_view plane) {
  return find_payload(tensor, decoder.part ? decoder.part(tensor, plane) : std::string(plane));
}

std::vector<PlaneSpec> file_specs(const Scheme& scheme, const WeightShape& shape, Layout layout,
                                  Policy activation) {
  std::vector<PlaneSpec> specs = scheme.plane_specs(shape, layout);
  for (PlaneSpec& spec : scheme.policy_specs(shape, activation)) specs.push_back(std::move(spec));
  return specs;
}

// Does the tensor have the plane, either as a part or by conversion?
bool has_plane(const Decoder& decoder, const NamedTensor& tensor, const PlaneSpec& spec) {
  const Tensor* part = part_of(decoder, tensor, spec.name);
  if (part && part->dtype == spec.dtype && part->shape == spec.shape) return true;
  return decoder.convert && decoder.convert(tensor, part, spec).has_value();
}

Plane read_plane(const Decoder& decoder, const NamedTensor& tensor, const PlaneSpec& spec) {
  const Tensor* part = part_of(decoder, tensor, spec.name);
  if (part && part->dtype == spec.dtype && part->shape == spec.shape)
    return {spec.name, part->dtype, part->shape, row_major_bytes(*part)};
  std::optional<Plane> converted = decoder.convert ? decoder.convert(tensor, part, spec) : std::nullopt;
  if (!converted)
    refuse(RefusalClass::SubclassSchema,
           tensor.name + " (" + tensor.type + "): has no plane " + spec.name + " of " + tensor.scheme);
  return std::move(*converted);
}

// Returns the blocks of the matrix that stacked() makes; null when it cannot.
Json stacked_blocks(const NamedTensor& tensor, const std::vector<int64_t>& matrix) {
  if (tensor.type == "MXTensor" || tensor.type == "NVFP4Tensor") return tensor.attributes["block_size"];
  if (tensor.type != "Int8Tensor" && tensor.type != "Float8Tensor" &&
      tensor.type != "IntxUnpackedToInt8Tensor")
    return nullptr;
  const std::vector<int64_t> blocks = block_size_of(tensor);
  if (blocks.size() != tensor.shape.size()) return nullptr;
  if (blocks == tensor.shape) return matrix;
  if (std::any_of(blocks.begin(), blocks.end() - 1, [](int64_t block) { return block != 1; })) return nullptr;
  return std::vector<int64_t>{1, blocks.back()};
}

// Flattens the experts of a layer, one tensor [experts, n, k] with blocks along k (or one block), into a
// weight of experts * n rows. nullopt for other tensors, for one outer scale per expert, and when a part is
// not row-major.
std::optional<NamedTensor> stacked(const NamedTensor& tensor) {
  const size_t dims = tensor.shape.size();
  const auto flat = [](const std::vector<int64_t>& shape) {
    return std::vector<int64_t>{numel_of(std::span(shape).first(shape.size() - 1)), shape.back()};
  };
  NamedTensor matrix = tensor;
  matrix.shape = flat(tensor.shape);
  const Json blocks = stacked_blocks(tensor, matrix.shape);
  if (blocks.is_null()) return std::nullopt;
  matrix.attributes["block_size"] = blocks;
  for (InnerTensor& inner : matrix.payload) {
    if (inner.tensor.shape.size() != dims || is_beside_elements(inner.name)) continue;
    if (!inner.tensor.is_contiguous()) return std::nullopt;
    inner.tensor.shape = flat(inner.tensor.shape);
    inner.tensor.stride = contiguous_stride(inner.tensor.shape);
  }
  return matrix;
}

// Int4PreshuffledTensor reports its float8 scales' dtype instead of the weight's; its layer always returns
// bfloat16.
WeightShape weight_shape(const NamedTensor& tensor) {
  const DType dtype = tensor.dtype == DType::float8_e4m3fn ? DType::bfloat16 : tensor.dtype;
  return {dtype, tensor.shape[0], tensor.shape[1]};
}

const Decoder* find_decoder(const NamedTensor& tensor) {
  for (const Decoder* decoder : kDecoders)
    if (!decoder->recognize(tensor).scheme.empty()) return decoder;
  return nullptr;
}

}  // namespace

std::span<const Decoder* const> decoders() { return kDecoders; }

bool is_null(const NamedTensor& tensor, std::string_view attribute) {
  const auto value = tensor.attributes.find(attribute);
  return value == tensor.attributes.end() || value->is_null();
}

bool any_payload(const NamedTensor& tensor, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (find_payload(tensor, name)) return true;
  return false;
}

std::vector<int64_t> block_size_of(const NamedTensor& tensor) { return list_of(tensor, "block_size"); }

std::vector<int64_t> list_of(const NamedTensor& tensor, std::string_view attribute) {
  const auto value = tensor.attributes.find(attribute);
  if (value == tensor.attributes.end()) return {};
  const Json& list = value->is_object() && value->contains("_data") ? (*value)["_data"] : *value;
  std::vector<int64_t> blocks;
  if (list.is_array())
    for (const Json& item : list) blocks.push_back(item.is_number_integer() ? item.get<int64_t>() : 0);
  return blocks;
}

bool one_scale_a_row(const NamedTensor& tensor) {
  return block_size_of(tensor) == std::vector<int64_t>{1, tensor.shape[1]};
}

bool all_zero(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  return std::ranges::all_of(row_major_view(tensor, scratch), [](std::byte b) { return b == std::byte{0}; });
}

Plane widened(const Tensor& tensor, const PlaneSpec& spec) {
  const std::vector<std::byte> narrow = row_major_bytes(tensor);
  Plane plane = {spec.name, DType::float32, tensor.shape,
                 std::vector<std::byte>(static_cast<size_t>(tensor.numel()) * 4)};
  for (size_t i = 0; i * 4 < plane.bytes.size(); ++i)
    store_float(DType::float32, plane.bytes, i, load_float(tensor.dtype, narrow, i));
  return plane;
}

Plane zeros(const PlaneSpec& spec) {
  return {spec.name, spec.dtype, spec.shape, std::vector<std::byte>(spec.bytes())};
}

void recognize_scheme(NamedTensor& tensor) {
  if (tensor.shape.size() > 2) {
    std::optional<NamedTensor> matrix = stacked(tensor);
    if (!matrix) return;
    recognize_scheme(*matrix);
    tensor.scheme = matrix->scheme;
    tensor.layout = matrix->layout;
    tensor.activation = matrix->activation;
    return;
  }
  if (tensor.shape.size() != 2) return;
  const Decoder* decoder = find_decoder(tensor);
  if (!decoder) return;
  const Recognized found = decoder->recognize(tensor);
  const Scheme* scheme = find_scheme(found.scheme);
  const std::optional<Policy> policy = scheme ? scheme->find_activation(found.activation) : std::nullopt;
  if (!policy) return;
  const WeightShape shape = weight_shape(tensor);
  // All CPU packs accept the same shapes, so any of them may be asked.
  const std::optional<Layout> layout =
      scheme->find_layout(found.layout.empty() ? std::string_view("cpu_default") : found.layout);
  if (!layout || scheme->refusal(shape, *layout)) return;
  for (const PlaneSpec& spec : file_specs(*scheme, shape, *layout, *policy))
    if (!has_plane(*decoder, tensor, spec)) return;
  tensor.scheme = found.scheme;
  if (!found.layout.empty()) tensor.layout = layout;
  tensor.activation = *policy;
}

std::optional<SchemeTensor> scheme_tensor(const NamedTensor& tensor, std::string_view layout_hint) {
  if (tensor.shape.size() > 2) {
    const std::optional<NamedTensor> matrix = stacked(tensor);
    return matrix ? scheme_tensor(*matrix, layout_hint) : std::nullopt;
  }
  const Scheme* scheme = tensor.scheme.empty() ? nullptr : find_scheme(tensor.scheme);
  const Decoder* decoder = scheme ? find_decoder(tensor) : nullptr;
  if (!decoder) return std::nullopt;
  SchemeTensor result;
  result.scheme = scheme;
  result.activation = tensor.activation;
  const WeightShape shape = weight_shape(tensor);
  result.dtype = shape.dtype;
  result.n = shape.n;
  result.k = shape.k;
  const std::optional<Layout> layout = tensor.layout ? tensor.layout : scheme->find_layout(layout_hint);
  if (!layout)
    refuse(RefusalClass::SubclassSchema,
           tensor.name + " (" + tensor.type + "): the file does not say which CPU packed it, and \"" +
               std::string(layout_hint) + "\" is not a layout of " + tensor.scheme);
  result.layout = *layout;
  const auto take = [&](const std::vector<PlaneSpec>& specs, Planes& planes) {
    for (const PlaneSpec& spec : specs) {
      planes.push_back(read_plane(*decoder, tensor, spec));
      const Tensor* part = part_of(*decoder, tensor, spec.name);
      result.stored_otherwise_bytes += (part ? static_cast<int64_t>(bytes_of(part->dtype, part->shape)) : 0) -
                                       static_cast<int64_t>(spec.bytes());
    }
  };
  take(scheme->plane_specs(shape, result.layout), result.planes);
  take(scheme->policy_specs(shape, result.activation), result.policy_planes);
  if (decoder->parameters)
    for (Plane& plane : decoder->parameters(tensor)) result.policy_planes.push_back(std::move(plane));
  return result;
}

}  // namespace qcts
