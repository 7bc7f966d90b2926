// Every variant that this machine has against the scalar one, with shapes that leave tails in every loop:
// dequantize bit for bit, linear within the rounding of float32 sums, and rows and threads without influence.
// The emulated AVX-512 provider takes part where it was built. A first look beside the code; the suites judge
// in full, against goldens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/plane_laws.h"
#include "kernels/registry.h"
#include "kernels/support.h"

namespace qcts {
namespace {

Registry& registry() {
  static Registry* const all = [] {
    auto* filled = new Registry;
    filled->add(builtin_provider());
    const std::filesystem::path emulated = QCTS_BINARY_DIR "/lib/plugins/libqcts_emulated.so";
    if (std::filesystem::exists(emulated)) filled->load(emulated);
    return filled;
  }();
  return *all;
}

uint64_t random_bits(uint64_t index) {  // splitmix64
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

std::vector<uint8_t> random_bytes(size_t count, uint64_t seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(random_bits(seed * 1000003 + i) >> 40);
  return bytes;
}

// In [-range, range), floats in the form of dtype.
std::vector<uint8_t> random_floats(uint32_t dtype, size_t count, uint64_t seed, float range) {
  std::vector<uint8_t> bytes(count * (dtype == QCTS_F32 ? 4 : 2));
  for (size_t i = 0; i < count; ++i) {
    const float value = range * (static_cast<float>(random_bits(seed * 7919 + i) >> 48) / 32768.0f - 1.0f);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (dtype == QCTS_BF16) bits >>= 16;
    // Truncated to binary16; small values flush, which is as random as any.
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

// Members of a family that its kernels tell apart, by what their names contain.
std::vector<std::string> members(const std::string& family) {
  if (family == "mx")
    return {"mxfp4_floor", "mxfp8_e4m3_floor", "mxfp8_e5m2_floor", "mxfp6_e2m3_floor", "mxfp6_e3m2_floor"};
  if (family == "fp8") return {"fp8_e4m3_tensor", "fp8_e5m2_row", "fp8_e4m3_g32"};
  if (family == "nvfp4") return {"nvfp4_one_level", "nvfp4_two_level"};
  if (family == "intx")
    return {"intx_b4_g32_asym",     "intx_b8_g32_asym",  "intx_b3_axis_sym",
            "intx_b8_g64_s32_asym", "intx_b4_g256_asym", "intx_b8_g256_asym"};
  return {family};
}

std::string family_of(const qcts_kernel& kernel) {
  const std::string scheme = kernel.scheme;
  return scheme.substr(0, scheme.find(':'));
}
std::string policy_of(const qcts_kernel& kernel) {
  const std::string scheme = kernel.scheme;
  const size_t colon = scheme.find(':');
  return colon == scheme.npos ? "weight_only" : scheme.substr(colon + 1, scheme.find(',') - colon - 1);
}

// The member's own group, or the shape's where any will do, or none.
int64_t group_of(const std::string& family, const std::string& member, const Shape& shape) {
  if (family == "mx") return 32;
  if (family == "nvfp4") return 16;
  if (family == "nf4") return 64;
  if (family == "fp8_sparse24") return 8;
  if (family.rfind("int4", 0) == 0 || family == "int8_group") return shape.group;
  const size_t at = member.find("_g");
  return at == member.npos ? 0 : std::stoi(member.substr(at + 2));
}

// Bytes that make an ordinary plane: no NaN where a sum would spread it.
std::vector<uint8_t> plane_bytes(const PlaneLaw& law, const std::string& member, bool linear, uint64_t seed) {
  size_t count = 1;
  for (uint32_t d = 0; d < law.ndim; ++d) count *= static_cast<size_t>(law.shape[d]);
  const bool factor = std::strcmp(law.name, "quantization_factor") == 0;
  if (law.dtype == QCTS_F32 || law.dtype == QCTS_F16 || law.dtype == QCTS_BF16) {
    std::vector<uint8_t> bytes = random_floats(law.dtype, count, seed, factor ? 64.0f : 0.25f);
    // 32 to 64: the bits of 32, and the fraction that chance gave.
    if (factor && law.dtype != QCTS_F32)
      for (size_t i = 0; i < count; ++i) bytes[2 * i + 1] = law.dtype == QCTS_BF16 ? 0x42 : 0x50;
    if (factor && law.dtype == QCTS_F32)
      for (size_t i = 0; i < count; ++i) bytes[4 * i + 3] = 0x42, bytes[4 * i + 2] &= 0x7F;
    return bytes;
  }
  std::vector<uint8_t> bytes = random_bytes(count * dtype_bytes(law.dtype), seed);
  for (uint8_t& byte : bytes) {
    if (law.dtype == QCTS_F8_E8M0) byte = static_cast<uint8_t>(118 + byte % 8);
    if (std::strcmp(law.name, "scale") == 0 && law.dtype == QCTS_F8_E4M3FN) byte &= 0x3F;
    if (linear && law.dtype == QCTS_F8_E4M3FN && (byte & 0x7F) == 0x7F) byte = 0x2A;
    if (linear && law.dtype == QCTS_F8_E5M2) byte &= 0xDF;
    if (member.rfind("intx_b4", 0) == 0 && std::strcmp(law.name, "qdata") == 0)
      byte = static_cast<uint8_t>((byte & 15) - 8);
    if (member.rfind("intx_b3", 0) == 0 && std::strcmp(law.name, "qdata") == 0)
      byte = static_cast<uint8_t>((byte & 7) - 4);
  }
  return bytes;
}

// A problem and all that it points to.
struct Problem {
  std::vector<std::vector<uint8_t>> buffers;
  qcts_plane planes[kMostPlanes] = {};
  qcts_problem problem = {};
  std::string member, policy;
  std::vector<uint8_t> y, workspace, prepared;

  Problem(const qcts_kernel& kernel, const std::string& of, const Shape& shape, uint32_t dtype,
          uint32_t threads)
      : member(of), policy(policy_of(kernel)) {
    buffers.reserve(kMostPlanes + 2);
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
    p.w_dtype = p.x_dtype = p.y_dtype = p.bias_dtype = dtype;
    if (p.group != 0 && p.k % p.group != 0) return;  // supports() says so
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
    PlaneLaw laws[kMostPlanes];
    problem.n_planes = plane_laws(problem, kernel.scheme, "plain", laws);
    for (uint32_t i = 0; i < problem.n_planes; ++i) {
      qcts_plane& plane = planes[i];
      plane.struct_size = sizeof plane;
      plane.name = laws[i].name;
      plane.dtype = laws[i].dtype;
      plane.ndim = laws[i].ndim;
      int64_t stride = dtype_bytes(plane.dtype);
      for (uint32_t d = plane.ndim; d-- > 0; stride *= plane.shape[d])
        plane.shape[d] = laws[i].shape[d], plane.stride_bytes[d] = stride;
      buffers.push_back(plane_bytes(laws[i], member, linear, i + 1));
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

float element(uint32_t dtype, const std::vector<uint8_t>& bytes, size_t index) {
  if (dtype == QCTS_F32) {
    float value;
    std::memcpy(&value, &bytes[4 * index], 4);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, &bytes[2 * index], 2);
  if (dtype == QCTS_BF16) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  if ((half & 0x7FFF) > 0x7C00) return std::nanf("");
  const float magnitude =
      (half & 0x7C00) == 0 ? std::ldexp(static_cast<float>(half & 0x3FF), -24)
                           : std::ldexp(static_cast<float>((half & 0x3FF) | 0x400), (half >> 10 & 31) - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

const qcts_kernel& scalar_of(const qcts_kernel& kernel) {
  for (const Implementation& other : registry().implementations())
    if (other.kernel->op == kernel.op && std::strcmp(other.kernel->scheme, kernel.scheme) == 0 &&
        std::strcmp(other.kernel->variant, "scalar") == 0)
      return *other.kernel;
  throw std::runtime_error(std::string("no scalar variant of ") + kernel.scheme);
}

// What a variant leaves to its siblings: those that multiply bfloat16 take elements of mx that fit, e2m1 and
// e4m3, and x that is bfloat16 unless they say that they round it.
bool multiplies_bf16(const qcts_kernel& kernel) {
  return (kernel.numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS) != 0;
}
bool declines(const qcts_kernel& kernel, const std::string& member) {
  return multiplies_bf16(kernel) && member.rfind("mx", 0) == 0 && member.rfind("mxfp4", 0) != 0 &&
         member.find("_e4m3") == std::string::npos;
}
bool declines(const qcts_kernel& kernel, uint32_t dtype) {
  return multiplies_bf16(kernel) && kernel.numerics.x_cast == QCTS_NONE && dtype != QCTS_BF16;
}

class Variants : public testing::TestWithParam<size_t> {
 protected:
  const qcts_kernel& kernel() const { return *registry().implementations()[GetParam()].kernel; }
  void SetUp() override {
    const std::string why = registry().implementations()[GetParam()].machine_refusal();
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

constexpr uint32_t kDtypes[] = {QCTS_F32, QCTS_BF16, QCTS_F16};
constexpr Shape kShapes[] = {{1, 1, 8, 8},       {1, 64, 128, 32},  {2, 65, 96, 32},     {3, 130, 264, 24},
                             {4, 63, 1024, 128}, {5, 17, 192, 64},  {13, 100, 320, 160}, {67, 33, 160, 40},
                             {3, 128, 256, 64},  {9, 192, 256, 32}, {53, 66, 576, 64},   {530, 3, 72, 24},
                             {8, 128, 128, 64},  {7, 70, 512, 128}, {2, 65, 768, 64},    {17, 5, 2048, 1024}};

void expect_same_bits(uint32_t dtype, const std::vector<uint8_t>& want, const std::vector<uint8_t>& got) {
  ASSERT_EQ(got.size(), want.size());
  const size_t bytes = dtype == QCTS_F32 ? 4 : 2;
  for (size_t i = 0; i < got.size() / bytes; ++i) {
    if (std::isnan(element(dtype, want, i)) && std::isnan(element(dtype, got, i))) continue;
    ASSERT_EQ(std::memcmp(&got[i * bytes], &want[i * bytes], bytes), 0)
        << "element " << i << ": want " << element(dtype, want, i) << ", got " << element(dtype, got, i);
  }
}

// Both sum in float32 or better; scale 1/4 (8 bits of e8m0: 2^-2), codes up to 57344, x and bias up to 2.
// Where x is rounded to bfloat16 first, errors of 2^-9 of each product mostly cancel.
void expect_close(uint32_t dtype, int64_t k, const qcts_numerics& numerics, const std::vector<uint8_t>& want,
                  const std::vector<uint8_t>& got) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 0;
  const size_t count = got.size() / (dtype == QCTS_F32 ? 4 : 2);
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(double{element(dtype, want, i)}));
  const double narrow = numerics.x_cast == QCTS_BF16 && dtype != QCTS_BF16 ? 0x1p-8 * (largest + 16) : 0;
  const double ulp = dtype == QCTS_F32 ? 0x1p-24 : dtype == QCTS_F16 ? 0x1p-10 : 0x1p-7;
  for (size_t i = 0; i < count; ++i) {
    const double w = element(dtype, want, i), g = element(dtype, got, i);
    if (w == g) continue;
    ASSERT_TRUE(std::fabs(g - w) <=
                ulp * std::fabs(w) + static_cast<double>(k) * 0x1p-24 * largest + 0x1p-24 + narrow)
        << "element " << i << ": want " << w << ", got " << g;
  }
}

TEST_P(Variants, AgreeWithScalar) {
  const qcts_kernel& scalar = scalar_of(kernel());
  for (const std::string& member : members(family_of(kernel()))) {
    int compared = 0;
    for (const Shape& shape : kShapes)
      for (uint32_t dtype : kDtypes) {
        // The k of row schemes may end anywhere.
        Shape cut = shape;
        if (group_of(family_of(kernel()), member, shape) == 0) cut.k -= shape.m % 8;
        SCOPED_TRACE(member + " m " + std::to_string(cut.m) + " n " + std::to_string(cut.n) + " k " +
                     std::to_string(cut.k) + " dtype " + std::to_string(dtype));
        Problem reference(scalar, member, cut, dtype, 1), tried(kernel(), member, cut, dtype, 2);
        if (!reference.is_supported(scalar)) continue;
        const bool declined = declines(kernel(), member) || declines(kernel(), dtype);
        ASSERT_EQ(tried.is_supported(kernel()), !declined);
        if (declined) continue;
        ++compared;
        const std::vector<uint8_t> want = reference.run(scalar), got = tried.run(kernel());
        if (kernel().op == QCTS_OP_DEQUANTIZE) {
          ASSERT_NO_FATAL_FAILURE(expect_same_bits(dtype, want, got));
        } else {
          ASSERT_NO_FATAL_FAILURE(expect_close(dtype, cut.k, kernel().numerics, want, got));
        }
      }
    if (!declines(kernel(), member)) {
      EXPECT_GE(compared, 3) << member;
    }
  }
}

class LinearVariants : public Variants {};

TEST_P(LinearVariants, RowsAndThreadsHaveNoInfluence) {
  constexpr int64_t kN = 192;
  const uint32_t dtype = declines(kernel(), QCTS_F32) ? QCTS_BF16 : QCTS_F32;
  const int64_t row_bytes = kN * (dtype == QCTS_F32 ? 4 : 2);
  for (const std::string& member : members(family_of(kernel()))) {
    if (declines(kernel(), member)) continue;
    for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 70, 131}) {
      const Shape shape = {m, kN, 256, 64};
      const std::vector<uint8_t> all = Problem(kernel(), member, shape, dtype, 1).run(kernel());
      EXPECT_EQ(Problem(kernel(), member, shape, dtype, 3).run(kernel()), all)
          << member << " threads, m " << m;
      for (int64_t row : {int64_t{0}, m / 2, m - 1}) {
        Problem whole(kernel(), member, shape, dtype, 1), alone(kernel(), member, {1, kN, 256, 64}, dtype, 1);
        alone.problem.x = static_cast<const char*>(whole.problem.x) + row * whole.problem.ldx_bytes;
        const std::vector<uint8_t> got = alone.run(kernel());
        const std::vector<uint8_t> want(all.begin() + row * row_bytes, all.begin() + (row + 1) * row_bytes);
        EXPECT_EQ(got, want) << member << " row " << row << " of " << m;
      }
    }
  }
}

// Of the (op, scheme) that have several variants: a kernel alone has none to agree with.
std::vector<size_t> implementations_of(std::vector<uint32_t> ops) {
  std::vector<size_t> indices;
  const auto all = registry().implementations();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto is_sibling = [&](const Implementation& other) {
      return other.kernel->op == all[i].kernel->op &&
             std::strcmp(other.kernel->scheme, all[i].kernel->scheme) == 0;
    };
    if (std::find(ops.begin(), ops.end(), all[i].kernel->op) != ops.end() &&
        std::count_if(all.begin(), all.end(), is_sibling) > 1)
      indices.push_back(i);
  }
  return indices;
}

std::string name_of(const testing::TestParamInfo<size_t>& info) {
  const Implementation& implementation = registry().implementations()[info.param];
  const std::string policy = policy_of(*implementation.kernel);
  return std::string(op_name(implementation.kernel->op)) + "_" + family_of(*implementation.kernel) + "_" +
         (policy == "weight_only" ? "" : policy + "_") + implementation.name();
}

INSTANTIATE_TEST_SUITE_P(Kernels, Variants,
                         testing::ValuesIn(implementations_of({QCTS_OP_DEQUANTIZE, QCTS_OP_LINEAR})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, LinearVariants, testing::ValuesIn(implementations_of({QCTS_OP_LINEAR})),
                         name_of);

}  // namespace
}  // namespace qcts
