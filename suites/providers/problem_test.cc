// SPDX-License-Identifier: BSD-3-Clause
// Tests the parameters that a kernel gets about a scheme: one that contradicted the scheme's name would break
// kernels of other libraries, and none of our cases would notice.
#include "suites/providers/problem.h"

#include <cstring>

#include <gtest/gtest.h>

#include "suites/providers/kernel_run.h"
#include "suites/providers/remote_protocol.h"

namespace qcts {
namespace {

qcts_scheme_params params_of(std::string_view name) {
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) throw std::invalid_argument("no scheme " + std::string(name));
  return abi_params(*scheme);
}

TEST(SchemeParams, AreThoseOfTheName) {
  EXPECT_EQ(params_of("mxfp4_rceil").element_dtype, uint32_t{QCTS_F4_E2M1_X2});
  EXPECT_EQ(params_of("mxfp4_rceil").scale_rounding, uint32_t{QCTS_SCALE_RCEIL});
  EXPECT_EQ(params_of("mxfp6_e3m2_even").element_dtype, uint32_t{QCTS_F6_E3M2});
  EXPECT_EQ(params_of("mxfp6_e3m2_even").bits, 6u);
  EXPECT_EQ(params_of("fp8_e5m2_block128").group_rows, 128);
  EXPECT_EQ(params_of("fp8_e5m2_block128").granularity, uint32_t{QCTS_PER_BLOCK});
  EXPECT_EQ(params_of("fp8_e4m3_tensor").granularity, uint32_t{QCTS_PER_TENSOR});
  EXPECT_EQ(params_of("fp8_row").granularity, uint32_t{QCTS_PER_ROW});
  EXPECT_EQ(params_of("int8_tensor").granularity, uint32_t{QCTS_PER_TENSOR});
  EXPECT_EQ(params_of("int8_row_reduced").code_min, -64);
  EXPECT_EQ(params_of("nvfp4_one_level").levels, 1u);
  EXPECT_EQ(params_of("nvfp4_two_level").levels, 2u);
  EXPECT_EQ(params_of("int4_plain_sym_g32").mapping, uint32_t{QCTS_SYMMETRIC});
  EXPECT_EQ(params_of("int4_plain_g32").mapping, uint32_t{QCTS_ASYMMETRIC});
  EXPECT_EQ(params_of("tinyq_w8a16").flags, uint32_t{QCTS_SCHEME_CODES_WRAP});
  EXPECT_EQ(params_of("tinyq_w8a32").flags, 0u);
  EXPECT_EQ(params_of("tinyq_w8a32").zero_point, uint32_t{QCTS_ZERO_INTEGER});
  const qcts_scheme_params intx = params_of("intx_b3_g32_s32_symnc");
  EXPECT_EQ(intx.bits, 3u);
  EXPECT_EQ(intx.code_min, -4);
  EXPECT_EQ(intx.code_max, 3);
  EXPECT_EQ(intx.scale_dtype, uint32_t{QCTS_F32});
  EXPECT_EQ(intx.mapping, uint32_t{QCTS_SYMMETRIC_NO_CLIPPING});
  EXPECT_EQ(intx.group_k, 32);
  EXPECT_EQ(params_of("intx_b3_g32_symnc").scale_dtype, uint32_t{QCTS_LIKE_W});
}

// The size formula gives the planes' types, the list of codes their number.
TEST(SchemeParams, AgreeWithTheSchemesOwnPlanesAndCodes) {
  const WeightShape shape = {DType::bfloat16, 256, 1024}, wide = {DType::float32, 256, 1024};
  for (const Scheme* scheme : schemes()) {
    SCOPED_TRACE(scheme->name());
    const qcts_scheme_params params = abi_params(*scheme);
    EXPECT_EQ(params.struct_size, sizeof params);
    EXPECT_EQ(params.group_k, scheme->group());
    if (const CodeSet codes = scheme->codes(); !codes.values.empty()) {
      EXPECT_EQ(codes.values.size(), size_t{1} << params.bits);
    }
    if (params.element_dtype == QCTS_I8 || params.element_dtype == QCTS_U8) {
      EXPECT_LT(params.code_min, params.code_max);
      EXPECT_LE(params.code_max - params.code_min + 1, 1 << params.bits);
      EXPECT_EQ(params.code_min < 0, params.element_dtype == QCTS_I8);
    }
    const WeightShape& given = scheme->refusal(shape) ? wide : shape;
    ASSERT_FALSE(scheme->refusal(given));
    for (const PlaneSpec& spec : scheme->plane_specs(given)) {
      if (spec.name != "scale" && spec.name != "scales" && spec.name != "scale_and_zero") continue;
      const uint32_t stored = params.scale_dtype == QCTS_LIKE_W ? abi_dtype(given.dtype) : params.scale_dtype;
      EXPECT_EQ(abi_dtype(spec.dtype), stored) << spec.name;
    }
  }
}

TEST(SchemeParams, ReachARemoteProviderInWords) {
  KernelInput input;
  input.scheme = find_scheme("mxfp6_e2m3_ceil");
  input.weight = {DType::bfloat16, 2, 32};
  const auto json = problem_json(ProblemBuilder(input, 1).problem(), {});
  EXPECT_EQ(json.at("params").at("element_dtype"), "float6_e2m3fn");
  EXPECT_EQ(json.at("params").at("scale_dtype"), "float8_e8m0fnu");
  EXPECT_EQ(json.at("params").at("scale_rounding"), "ceil");
  EXPECT_EQ(json.at("params").at("granularity"), "group");
  EXPECT_EQ(json.at("params").at("bits"), 6);
  input.scheme = nullptr;
  EXPECT_FALSE(problem_json(ProblemBuilder(input, 1, "dense").problem(), {}).contains("params"));
}

KernelInput tinygemm_input(Op op, std::string_view layout) {
  const Scheme& scheme = *find_scheme("int4_tinygemm_g32");
  KernelInput input = {.op = op, .scheme = &scheme, .weight = {DType::bfloat16, 12, 96}};
  input.layout = scheme.layout_named(layout);
  input.m = 1;
  std::vector<std::byte> weight(static_cast<size_t>(12 * 96 * 2), std::byte{0x3F});
  input.planes = scheme.quantize({DType::bfloat16, 12, 96, weight});
  input.planes.front().bytes[17] = std::byte{0xA5};
  input.planes.push_back({"of_policy", DType::float32, {1}, std::vector<std::byte>(4)});
  return input;
}

// Expected values come from the plain planes, which the input keeps; only the problem has the packed ones.
TEST(PackedPlanes, AreTheReferencesForALinearThatReadsThem) {
  const KernelInput input = tinygemm_input(Op::linear, "tile_packed_4d");
  const std::optional<Planes> packed = packed_planes(input);
  ASSERT_TRUE(packed.has_value());
  ASSERT_EQ(packed->size(), 3u);
  EXPECT_EQ((*packed)[0].dtype, DType::int32);
  EXPECT_EQ((*packed)[0].shape, (std::vector<int64_t>{2, 8, 32, 4})) << "n padded to 8, k to 1024";
  EXPECT_EQ((*packed)[1].shape, (std::vector<int64_t>{32, 16, 2}));
  EXPECT_EQ(packed->back().name, "of_policy");
  const Planes plain = input.scheme->unpack(*packed, input.weight, input.layout);
  EXPECT_EQ(plain[0].bytes, input.planes[0].bytes);
  EXPECT_EQ(plain[1].bytes, input.planes[1].bytes);
  const ProblemBuilder builder(input, 1);
  EXPECT_STREQ(builder.problem().layout, "tile_packed_4d");
  EXPECT_EQ(builder.problem().n, 12);
  EXPECT_EQ(builder.problem().k, 96);
}

TEST(PackedPlanes, AreForNoOtherOpAndNotForPlain) {
  EXPECT_FALSE(packed_planes(tinygemm_input(Op::linear, "plain")));
  for (const Op op : {Op::pack, Op::unpack, Op::dequantize})
    EXPECT_FALSE(packed_planes(tinygemm_input(op, "tile_packed_4d"))) << op_name(op);
}

TEST(PackedPlanes, ReachAKernelInItsGuardedBuffers) {
  const KernelInput input = tinygemm_input(Op::linear, "tile_packed_4d_v1");
  qcts_kernel kernel = {};
  kernel.struct_size = sizeof kernel;
  kernel.op = QCTS_OP_LINEAR;
  kernel.variant = "scalar";
  kernel.supports = [](const qcts_problem*, char*, size_t) { return QCTS_OK; };
  const KernelRun run(kernel, input, {.threads = 1, .misalign_elems = 3, .planes_reversed = true});
  const qcts_problem& problem = run.problem();
  ASSERT_EQ(problem.n_planes, 3u);
  const Planes packed = packed_planes(input).value();
  const Plane& want = packed.front();
  const qcts_plane& got = problem.planes[2];
  EXPECT_STREQ(got.name, "qdata");
  EXPECT_EQ(got.dtype, uint32_t{QCTS_I32});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(got.data) % 16, 12u) << "off by elements of int32";
  EXPECT_EQ(std::memcmp(got.data, want.bytes.data(), want.bytes.size()), 0);
}

}  // namespace
}  // namespace qcts
