// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/remote_protocol.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/abi/problem.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

struct DtypeName {
  uint32_t dtype;
  std::string_view name;
  size_t bytes;
};
constexpr DtypeName kDtypes[] = {
    {QCTS_F32, "float32", 4},
    {QCTS_F64, "float64", 8},
    {QCTS_F16, "float16", 2},
    {QCTS_BF16, "bfloat16", 2},
    {QCTS_F8_E4M3FN, "float8_e4m3fn", 1},
    {QCTS_F8_E5M2, "float8_e5m2", 1},
    {QCTS_F8_E8M0, "float8_e8m0fnu", 1},
    {QCTS_F4_E2M1_X2, "float4_e2m1fn_x2", 1},
    {QCTS_F6_E2M3, "float6_e2m3fn", 1},
    {QCTS_F6_E3M2, "float6_e3m2fn", 1},
    {QCTS_I8, "int8", 1},
    {QCTS_U8, "uint8", 1},
    {QCTS_I16, "int16", 2},
    {QCTS_I32, "int32", 4},
    {QCTS_I64, "int64", 8},
    {QCTS_LIKE_W, "like_w", 0},
    {QCTS_LIKE_X, "like_x", 0},
};

const DtypeName* entry_of(uint32_t dtype) {
  for (const DtypeName& entry : kDtypes)
    if (entry.dtype == dtype) return &entry;
  return nullptr;
}

Json dtype_json(uint32_t dtype) {
  const DtypeName* entry = entry_of(dtype);
  return entry ? Json(entry->name) : Json(nullptr);
}

int64_t element_bytes(uint32_t dtype) {
  const DtypeName* entry = entry_of(dtype);
  if (entry == nullptr) throw std::runtime_error("the protocol has no dtype " + std::to_string(dtype));
  return static_cast<int64_t>(entry->bytes);
}

uint32_t dtype_from(const Json& json, const char* field) {
  if (!json.contains(field) || json[field].is_null()) return QCTS_NONE;
  const std::string name = json[field].get<std::string>();
  for (const DtypeName& entry : kDtypes)
    if (entry.name == name) return entry.dtype;
  throw std::runtime_error("numerics." + std::string(field) + ": unknown dtype '" + name + "'");
}

// One tensor as this file uses it.
struct View {
  const char* role;
  std::string name;  // of a plane
  void* data;
  uint32_t dtype;
  std::vector<int64_t> shape, stride_bytes;
};

View matrix_view(const char* role, const void* data, uint32_t dtype, int64_t rows, int64_t columns,
                 int64_t ld_bytes) {
  return {role, "", const_cast<void*>(data), dtype, {rows, columns}, {ld_bytes, element_bytes(dtype)}};
}

void add_planes(std::vector<View>& views, const char* role, const qcts_plane* planes, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const qcts_plane& plane = planes[i];
    views.push_back({role,
                     plane.name,
                     plane.data,
                     plane.dtype,
                     {plane.shape, plane.shape + plane.ndim},
                     {plane.stride_bytes, plane.stride_bytes + plane.ndim}});
  }
}

std::vector<View> views_of(const qcts_problem& p) {
  std::vector<View> views;
  const bool quantize = p.op == QCTS_OP_QUANTIZE, linear = p.op == QCTS_OP_LINEAR;
  const bool no_rows = has_no_rows(p.op, p);  // x and y are tensors of [0, ...], whatever their pointers
  if (p.x != nullptr || no_rows)
    views.push_back(quantize ? matrix_view("x", p.x, p.w_dtype, p.n, p.k, p.ldx_bytes)
                             : matrix_view("x", p.x, p.x_dtype, p.m, p.k, p.ldx_bytes));
  if (p.bias != nullptr)
    views.push_back(
        {"bias", "", const_cast<void*>(p.bias), p.bias_dtype, {p.n}, {element_bytes(p.bias_dtype)}});
  if (p.y != nullptr || (linear && no_rows))
    views.push_back(linear ? matrix_view("y", p.y, p.y_dtype, p.m, p.n, p.ldy_bytes)
                           : matrix_view("y", p.y, p.w_dtype, p.n, p.k, p.ldy_bytes));
  add_planes(views, "planes", p.planes, p.n_planes);
  add_planes(views, "out_planes", p.out_planes, p.n_out_planes);
  return views;
}

size_t extent_bytes(const View& view) {
  int64_t last = element_bytes(view.dtype);
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] <= 0) return 0;
    last += (view.shape[d] - 1) * view.stride_bytes[d];
  }
  return static_cast<size_t>(last);
}

std::string text(const char* given) { return given == nullptr ? "" : given; }

// Returns null for an unnamed number.
template <size_t kCount>
Json word(uint32_t value, const std::string_view (&names)[kCount]) {
  return value < kCount && !names[value].empty() ? Json(names[value]) : Json(nullptr);
}

constexpr std::string_view kGranularities[] = {"", "row", "tensor", "group", "block"};
constexpr std::string_view kZeroPoints[] = {"none", "integer", "float"};
constexpr std::string_view kMappings[] = {"", "symmetric", "symmetric_no_clipping", "asymmetric"};
constexpr std::string_view kScaleRoundings[] = {"nearest", "floor", "ceil", "even", "rceil"};

Json params_json(const qcts_scheme_params& params) {
  return {{"bits", params.bits},
          {"element_dtype", dtype_json(params.element_dtype)},
          {"code_min", params.code_min},
          {"code_max", params.code_max},
          {"scale_dtype", dtype_json(params.scale_dtype)},
          {"scale_rounding", word(params.scale_rounding, kScaleRoundings)},
          {"levels", params.levels},
          {"granularity", word(params.granularity, kGranularities)},
          {"zero_point", word(params.zero_point, kZeroPoints)},
          {"mapping", word(params.mapping, kMappings)},
          {"codes_wrap", (params.flags & QCTS_SCHEME_CODES_WRAP) != 0},
          {"group_rows", params.group_rows},
          {"group_k", params.group_k}};
}

}  // namespace

std::vector<RemoteTensor> tensors_of(const qcts_problem& problem) {
  std::vector<RemoteTensor> tensors;
  for (const View& view : views_of(problem)) tensors.push_back({view.data, extent_bytes(view), 0});
  return tensors;
}

Json problem_json(const qcts_problem& p, const std::vector<RemoteTensor>& tensors) {
  Json json = {{"scheme", text(p.scheme)},
               {"scheme_name", text(p.scheme_name)},
               {"layout", text(p.layout)},
               {"activation", text(p.activation)},
               {"threads", p.threads},
               {"m", p.m},
               {"n", p.n},
               {"k", p.k},
               {"group", p.group},
               {"tile", p.tile},
               {"w_dtype", dtype_json(p.w_dtype)},
               {"x_dtype", dtype_json(p.x_dtype)},
               {"y_dtype", dtype_json(p.y_dtype)},
               {"bias_dtype", dtype_json(p.bias_dtype)},
               {"planes", Json::object()},
               {"out_planes", Json::object()}};
  if (p.params != nullptr) json["params"] = params_json(*p.params);
  const std::vector<View> views = views_of(p);
  for (size_t i = 0; i < views.size(); ++i) {
    const View& view = views[i];
    Json tensor = {
        {"dtype", dtype_json(view.dtype)}, {"shape", view.shape}, {"stride_bytes", view.stride_bytes}};
    if (i < tensors.size()) tensor["offset"] = tensors[i].offset;
    (view.name.empty() ? json[view.role] : json[view.role][view.name]) = std::move(tensor);
  }
  return json;
}

uint32_t claims_from(const Json& names) {
  uint32_t claims = 0;
  for (const Json& json : names) {
    const std::string name = json.get<std::string>();
    if (name == "bit_exact")
      claims |= QCTS_CLAIM_BIT_EXACT;
    else if (name == "deterministic")
      claims |= QCTS_CLAIM_DETERMINISTIC;
    else if (name == "thread_invariant")
      claims |= QCTS_CLAIM_THREAD_INVARIANT;
    else if (name == "batch_invariant")
      claims |= QCTS_CLAIM_BATCH_INVARIANT;
    else if (name == "emulated")
      claims |= QCTS_CLAIM_EMULATED;
    else
      throw std::runtime_error("claims: unknown claim '" + name + "'");
  }
  return claims;
}

struct NumericsFlag {
  std::string_view name;
  uint32_t bit;
};
constexpr NumericsFlag kNumericsFlags[] = {{"flush_subnormals", QCTS_NUM_FLUSH_SUBNORMALS},
                                           {"scale_after_sum", QCTS_NUM_SCALE_AFTER_SUM},
                                           {"bias_in_output_cast", QCTS_NUM_BIAS_IN_OUTPUT_CAST}};

qcts_numerics numerics_from(const Json& json) {
  qcts_numerics numerics = {};
  numerics.struct_size = sizeof numerics;
  const std::pair<const char*, uint32_t*> fields[] = {
      {"x_cast", &numerics.x_cast},           {"scale_cast", &numerics.scale_cast},
      {"weight_cast", &numerics.weight_cast}, {"product_cast", &numerics.product_cast},
      {"accumulator", &numerics.accumulator}, {"partial_cast", &numerics.partial_cast},
      {"output_cast", &numerics.output_cast}};
  for (const auto& [name, field] : fields) *field = dtype_from(json, name);
  for (const auto& [name, value] : json.items()) {
    bool known = std::ranges::find(kNumericsFlags, std::string_view(name), &NumericsFlag::name) !=
                 std::end(kNumericsFlags);
    for (const auto& field : fields) known = known || name == field.first;
    if (!known) throw std::runtime_error("numerics: unknown field '" + name + "'");
  }
  for (const NumericsFlag& flag : kNumericsFlags)
    if (json.value(std::string(flag.name), false)) numerics.flags |= flag.bit;
  return numerics;
}

qcts_fused_sums fused_sums_from(const Json& json) {
  qcts_fused_sums fused = {};
  fused.struct_size = sizeof fused;
  const std::pair<std::string_view, uint32_t*> fields[] = {{"terms", &fused.terms},
                                                           {"fraction_bits", &fused.fraction_bits},
                                                           {"result_bits", &fused.result_bits},
                                                           {"promote_every", &fused.promote_every}};
  for (const auto& [name, value] : json.items()) {
    const auto field =
        std::ranges::find(fields, std::string_view(name), &std::pair<std::string_view, uint32_t*>::first);
    if (field == std::end(fields)) throw std::runtime_error("fused_sums: unknown field '" + name + "'");
    if (!value.is_number_unsigned()) throw std::runtime_error("fused_sums." + name + ": not a whole number");
    *field->second = value.get<uint32_t>();
  }
  return fused;
}

Json numerics_json(const qcts_numerics& numerics) {
  Json json = Json::object();
  const std::pair<const char*, uint32_t> fields[] = {
      {"x_cast", numerics.x_cast},           {"scale_cast", numerics.scale_cast},
      {"weight_cast", numerics.weight_cast}, {"product_cast", numerics.product_cast},
      {"accumulator", numerics.accumulator}, {"partial_cast", numerics.partial_cast},
      {"output_cast", numerics.output_cast}};
  for (const auto& [name, dtype] : fields)
    if (dtype != QCTS_NONE) json[name] = entry_of(dtype) ? dtype_json(dtype) : Json(std::to_string(dtype));
  for (const NumericsFlag& flag : kNumericsFlags)
    if (numerics.flags & flag.bit) json[std::string(flag.name)] = true;
  return json;
}

Json fused_sums_json(const qcts_fused_sums& fused) {
  Json json = Json::object();
  const std::pair<const char*, uint32_t> fields[] = {{"terms", fused.terms},
                                                     {"fraction_bits", fused.fraction_bits},
                                                     {"result_bits", fused.result_bits},
                                                     {"promote_every", fused.promote_every}};
  for (const auto& [name, value] : fields)
    if (value != 0) json[name] = value;
  return json;
}

qcts_status answered(const Json& answer, char* why, size_t why_size) {
  constexpr std::string_view kStatuses[] = {"ok", "unsupported", "invalid", "failed"};  // by qcts_status
  const Json status = answer.value("status", Json()), reason = answer.value("reason", Json(""));
  for (size_t i = 0; i < std::size(kStatuses); ++i) {
    if (!status.is_string() || status.get<std::string>() != kStatuses[i] || !reason.is_string()) continue;
    std::snprintf(why, why_size, "%s", reason.get<std::string>().c_str());
    return static_cast<qcts_status>(i);
  }
  throw ProviderFault("answer violates the protocol: " + answer.dump().substr(0, 200));
}

}  // namespace qcts
