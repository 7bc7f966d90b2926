// SPDX-License-Identifier: BSD-3-Clause
// Problems on which the tests of kernels run variants. Only *_test.cc files include this header.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/abi/problem.h"
#include "kernels/families/expected_planes.h"
#include "kernels/registry.h"

namespace qcts::variants {

// Returns a registry with the built-in provider, the CUDA kernels in their executor and, if it was built, the
// emulated provider.
inline Registry& registry() {
  static Registry* const all = [] {
    auto* filled = new Registry;
    filled->add(builtin_provider());
    filled->load(build_path("lib/plugins/libqcts_cudaemu.so"));
    const std::filesystem::path emulated = build_path("lib/plugins/libqcts_emulated.so");
    if (std::filesystem::exists(emulated)) filled->load(emulated);
    return filled;
  }();
  return *all;
}

inline uint64_t random_bits(uint64_t index) {  // splitmix64
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

inline std::vector<uint8_t> random_bytes(size_t count, uint64_t seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(random_bits(seed * 1000003 + i) >> 40);
  return bytes;
}

// Returns random floats in [-range, range), as bytes of dtype.
inline std::vector<uint8_t> random_floats(uint32_t dtype, size_t count, uint64_t seed, float range) {
  std::vector<uint8_t> bytes(count * (dtype == QCTS_F32 ? 4 : 2));
  for (size_t i = 0; i < count; ++i) {
    const float value = range * (static_cast<float>(random_bits(seed * 7919 + i) >> 48) / 32768.0f - 1.0f);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (dtype == QCTS_BF16) bits >>= 16;
    // Truncates to binary16. Small values become 0, which is as random as any other value.
    if (dtype == QCTS_F16) {
      const uint32_t magnitude =
          (bits & 0x7FFFFFFF) < 0x38800000 ? 0 : ((bits & 0x7FFFFFFF) - 0x38000000) >> 13;
      bits = (bits >> 16 & 0x8000) | magnitude;
    }
    std::memcpy(&bytes[i * (dtype == QCTS_F32 ? 4 : 2)], &bits, dtype == QCTS_F32 ? 4 : 2);
  }
  return bytes;
}

struct Shape {
  int64_t m, n, k, group;
};

// Returns names of the family's members. Kernels distinguish members by substrings of these names.
inline std::vector<std::string> members(const std::string& family) {
  if (family == "mx")
    return {"mxfp4_floor", "mxfp8_e4m3_floor", "mxfp8_e5m2_floor", "mxfp6_e2m3_floor", "mxfp6_e3m2_floor"};
  if (family == "fp8") return {"fp8_e4m3_tensor", "fp8_e5m2_row", "fp8_e4m3_g32", "fp8_e5m2_block128"};
  if (family == "nvfp4") return {"nvfp4_one_level", "nvfp4_two_level"};
  if (family == "intx")
    return {"intx_b4_g32_asym",     "intx_b8_g32_asym",  "intx_b3_axis_sym",
            "intx_b8_g64_s32_asym", "intx_b4_g256_asym", "intx_b8_g256_asym"};
  return {family};
}

inline std::string family_of(const qcts_kernel& kernel) {
  const std::string scheme = kernel.scheme;
  return scheme.substr(0, scheme.find(':'));
}
inline std::string policy_of(const qcts_kernel& kernel) {
  const std::string scheme = kernel.scheme;
  const size_t colon = scheme.find(':');
  return colon == scheme.npos ? "weight_only" : scheme.substr(colon + 1, scheme.find(',') - colon - 1);
}

// Returns true if the kernel feeds int4 weights to wgmma from registers. It then takes only bfloat16 x, and
// groups that are multiples of 32.
inline bool feeds_wgmma_int4(const qcts_kernel& kernel) {
  return std::strcmp(kernel.variant, "sm90a") == 0 && family_of(kernel).starts_with("int4");
}

// Returns `n`, or the next larger number of rows that the blocks of the member divide.
inline int64_t rows_of(const std::string& member, int64_t n) {
  return member.find("_block128") == member.npos ? n : (n + 127) / 128 * 128;
}

// Returns the group of the member, the group of the shape if any group will do, or 0 if there are no groups.
inline int64_t group_of(const std::string& family, const std::string& member, const Shape& shape) {
  if (family == "mx") return 32;
  if (family == "nvfp4") return 16;
  if (family == "nf4") return 64;
  if (family == "fp8_sparse24") return 8;
  if (family == "gguf_proto") return 256;
  if (family.rfind("int4", 0) == 0 || family.rfind("int8_group", 0) == 0) return shape.group;
  if (member.find("_block128") != member.npos) return 128;
  const size_t at = member.find("_g");
  return at == member.npos ? 0 : std::stoi(member.substr(at + 2));
}

// Parses the parameters from the member's name, if a kernel of its family needs them.
inline qcts_scheme_params params_of(const std::string& family, const std::string& member, int64_t group) {
  const auto has = [&](const char* part) { return member.find(part) != member.npos; };
  qcts_scheme_params params = {};
  params.struct_size = sizeof params;
  params.bits = family == "intx" ? static_cast<uint32_t>(std::stoi(member.substr(std::strlen("intx_b")))) : 8;
  params.code_min = -(1 << (params.bits - 1));
  params.code_max = (1 << (params.bits - 1)) - 1;
  params.element_dtype = has("mxfp4")   ? QCTS_F4_E2M1_X2
                         : has("_e2m3") ? QCTS_F6_E2M3
                         : has("_e3m2") ? QCTS_F6_E3M2
                         : has("_e5m2") ? QCTS_F8_E5M2
                                        : QCTS_F8_E4M3FN;
  params.scale_dtype = has("_s32") ? QCTS_F32 : QCTS_LIKE_W;
  params.scale_rounding = has("_rceil")  ? QCTS_SCALE_RCEIL
                          : has("_even") ? QCTS_SCALE_EVEN
                          : has("_ceil") ? QCTS_SCALE_CEIL
                                         : QCTS_SCALE_FLOOR;
  params.levels = has("two_level") ? 2 : 1;
  params.mapping = has("_symnc") ? QCTS_SYMMETRIC_NO_CLIPPING
                   : has("_sym") ? QCTS_SYMMETRIC
                                 : QCTS_ASYMMETRIC;
  params.zero_point = QCTS_ZERO_NONE;
  params.flags = family == "tinyq" ? QCTS_SCHEME_CODES_WRAP : 0;
  params.group_rows = has("_tensor") ? 0 : has("_block128") ? 128 : 1;
  params.group_k = group;
  params.granularity = has("_tensor")     ? QCTS_PER_TENSOR
                       : has("_block128") ? QCTS_PER_BLOCK
                       : group != 0       ? QCTS_PER_GROUP
                                          : QCTS_PER_ROW;
  return params;
}

// Returns the bytes of an ordinary plane. For `linear` they contain no NaN, which a sum would spread.
inline std::vector<uint8_t> plane_bytes(const ExpectedPlane& expected, const std::string& member, bool linear,
                                        uint64_t seed) {
  if (std::strcmp(expected.name, "activation_scale_ub") == 0) return {0, 0, 0xC0, 0x3F};  // 1.5; x is below 2
  size_t count = 1;
  for (uint32_t d = 0; d < expected.ndim; ++d) count *= static_cast<size_t>(expected.shape[d]);
  const bool factor = std::strcmp(expected.name, "quantization_factor") == 0;
  if (expected.dtype == QCTS_F32 || expected.dtype == QCTS_F16 || expected.dtype == QCTS_BF16) {
    std::vector<uint8_t> bytes = random_floats(expected.dtype, count, seed, factor ? 64.0f : 0.25f);
    // Gives values from 32 to 64: the exponent bits of 32 and a random fraction.
    if (factor && expected.dtype != QCTS_F32)
      for (size_t i = 0; i < count; ++i) bytes[2 * i + 1] = expected.dtype == QCTS_BF16 ? 0x42 : 0x50;
    if (factor && expected.dtype == QCTS_F32)
      for (size_t i = 0; i < count; ++i) bytes[4 * i + 3] = 0x42, bytes[4 * i + 2] &= 0x7F;
    return bytes;
  }
  std::vector<uint8_t> bytes = random_bytes(count * dtype_bytes(expected.dtype), seed);
  for (uint8_t& byte : bytes) {
    if (expected.dtype == QCTS_F8_E8M0) byte = static_cast<uint8_t>(118 + byte % 8);
    if (std::strcmp(expected.name, "scale") == 0 && expected.dtype == QCTS_F8_E4M3FN) byte &= 0x3F;
    if (linear && expected.dtype == QCTS_F8_E4M3FN && (byte & 0x7F) == 0x7F) byte = 0x2A;
    if (linear && expected.dtype == QCTS_F8_E5M2) byte &= 0xDF;
    if (member.rfind("intx_b4", 0) == 0 && std::strcmp(expected.name, "qdata") == 0)
      byte = static_cast<uint8_t>((byte & 15) - 8);
    if (member.rfind("intx_b3", 0) == 0 && std::strcmp(expected.name, "qdata") == 0)
      byte = static_cast<uint8_t>((byte & 7) - 4);
  }
  return bytes;
}

// A problem and everything that it points to.
struct Problem {
  std::vector<std::vector<uint8_t>> buffers;
  qcts_plane planes[kMaxPlanes] = {};
  qcts_problem problem = {};
  qcts_scheme_params params = {};
  std::string member, policy;
  std::vector<uint8_t> y, workspace, prepared;

  Problem(const qcts_kernel& kernel, const std::string& of, const Shape& shape, uint32_t dtype,
          uint32_t threads)
      : member(of), policy(policy_of(kernel)) {
    buffers.reserve(kMaxPlanes + 2);
    const bool linear = kernel.op == QCTS_OP_LINEAR;
    qcts_problem& p = problem;
    p.struct_size = sizeof p;
    p.op = kernel.op;
    p.threads = threads;
    p.scheme = kernel.scheme;
    p.scheme_name = member.c_str();
    p.layout = "plain";
    p.activation = policy.c_str();
    p.m = linear ? shape.m : 0;
    p.n = shape.n;
    p.k = shape.k;
    p.group = group_of(family_of(kernel), member, shape);
    params = params_of(family_of(kernel), member, p.group);
    p.params = &params;
    p.w_dtype = p.x_dtype = p.y_dtype = p.bias_dtype = dtype;
    if (p.group != 0 && p.k % p.group != 0) return;  // refused by supports()
    add_planes(kernel, linear);
    const int64_t bytes = dtype == QCTS_F32 ? 4 : 2, rows = linear ? p.m : p.n, columns = linear ? p.n : p.k;
    y.assign(static_cast<size_t>(rows * columns * bytes), 0xFF);
    p.y = y.data();
    p.ldy_bytes = columns * bytes;
    if (linear) {
      buffers.push_back(random_floats(dtype, static_cast<size_t>(p.m * p.k), 6, 2.0f));
      p.x = buffers.back().data();
      p.ldx_bytes = p.k * bytes;
      buffers.push_back(random_floats(dtype, static_cast<size_t>(p.n), 7, 2.0f));
      p.bias = buffers.back().data();
    }
  }

  void add_planes(const qcts_kernel& kernel, bool linear) {
    ExpectedPlane expected[kMaxPlanes];
    problem.n_planes = expected_planes(problem, kernel.scheme, "plain", expected);
    problem.n_planes += expected_given_scale(problem, kernel.scheme, expected + problem.n_planes);
    for (uint32_t i = 0; i < problem.n_planes; ++i) {
      qcts_plane& plane = planes[i];
      plane.struct_size = sizeof plane;
      plane.name = expected[i].name;
      plane.dtype = expected[i].dtype;
      plane.ndim = expected[i].ndim;
      int64_t stride = dtype_bytes(plane.dtype);
      for (uint32_t d = plane.ndim; d-- > 0; stride *= plane.shape[d])
        plane.shape[d] = expected[i].shape[d], plane.stride_bytes[d] = stride;
      buffers.push_back(plane_bytes(expected[i], member, linear, i + 1));
      plane.data = buffers.back().data();
    }
    problem.planes = planes;
  }

  bool is_supported(const qcts_kernel& kernel) {
    char why[256];
    return kernel.supports(&problem, why, sizeof why) == QCTS_OK;
  }

  std::vector<uint8_t> run(const qcts_kernel& kernel) {
    if (kernel.prepare != nullptr) {
      prepared.assign(kernel.prepared_bytes(&problem), 0xFF);
      EXPECT_EQ(kernel.prepare(&problem, prepared.data()), QCTS_OK);
      problem.prepared = prepared.data();
      problem.prepared_bytes = prepared.size();
    }
    if (kernel.workspace_bytes != nullptr) {
      workspace.assign(kernel.workspace_bytes(&problem) + 64, 0xFF);
      problem.workspace = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
      problem.workspace_bytes = workspace.size() - 64;
    }
    EXPECT_EQ(kernel.run(&problem), QCTS_OK);
    return y;
  }
};

// Quantizes a weight of shape.n rows with `kernel`, an implementation of quantize.
// Returns all planes in one buffer, each at a multiple of 64 bytes.
inline std::vector<uint8_t> quantized(const qcts_kernel& kernel, const std::string& member, uint32_t dtype,
                                      const Shape& shape, const void* weight) {
  qcts_problem p = {};
  p.struct_size = sizeof p;
  p.op = QCTS_OP_QUANTIZE;
  p.threads = 1;
  p.scheme = kernel.scheme;
  p.scheme_name = member.c_str();
  p.layout = "plain";
  p.activation = "weight_only";
  p.n = shape.n;
  p.k = shape.k;
  p.group = group_of(family_of(kernel), member, shape);
  const qcts_scheme_params params = params_of(family_of(kernel), member, p.group);
  p.params = &params;
  p.w_dtype = p.x_dtype = dtype;
  p.x = weight;
  p.ldx_bytes = p.k * dtype_bytes(dtype);
  ExpectedPlane expected[kMaxPlanes];
  qcts_plane planes[kMaxPlanes] = {};
  p.n_out_planes = expected_planes(p, kernel.scheme, "plain", expected);
  p.out_planes = planes;
  std::vector<size_t> begins;
  size_t end = 0;
  for (uint32_t i = 0; i < p.n_out_planes; ++i) {
    planes[i].struct_size = sizeof planes[i];
    planes[i].name = expected[i].name;
    planes[i].dtype = expected[i].dtype;
    planes[i].ndim = expected[i].ndim;
    int64_t stride = dtype_bytes(expected[i].dtype);
    for (uint32_t d = expected[i].ndim; d-- > 0; stride *= expected[i].shape[d])
      planes[i].shape[d] = expected[i].shape[d], planes[i].stride_bytes[d] = stride;
    begins.push_back(end);
    end += static_cast<size_t>(stride + 63) / 64 * 64;
  }
  std::vector<uint8_t> bytes(end + 64, 0xEE), workspace;
  const auto aligned = [](std::vector<uint8_t>& of) {
    return of.data() + (64 - reinterpret_cast<uintptr_t>(of.data()) % 64) % 64;
  };
  for (uint32_t i = 0; i < p.n_out_planes; ++i) planes[i].data = aligned(bytes) + begins[i];
  if (kernel.workspace_bytes != nullptr) {
    workspace.assign(kernel.workspace_bytes(&p) + 64, 0xFF);
    p.workspace = aligned(workspace);
    p.workspace_bytes = workspace.size() - 64;
  }
  char why[256];
  EXPECT_EQ(kernel.supports(&p, why, sizeof why), QCTS_OK) << why;
  EXPECT_EQ(kernel.run(&p), QCTS_OK);
  return {aligned(bytes), aligned(bytes) + end};
}

}  // namespace qcts::variants
