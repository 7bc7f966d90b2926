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
#include <vector>

#include "kernels/registry.h"

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

// A problem and all that it points to.
struct Problem {
  std::vector<std::vector<uint8_t>> buffers;
  qcts_plane planes[3] = {};
  qcts_problem problem = {};
  std::vector<uint8_t> y, workspace, prepared;

  Problem(const qcts_kernel& kernel, const Shape& shape, uint32_t dtype, uint32_t threads) {
    buffers.reserve(8);
    qcts_problem& p = problem;
    p.struct_size = sizeof p;
    p.op = kernel.op;
    p.threads = threads;
    p.scheme = kernel.scheme;
    p.layout = "plain";
    p.activation = "weight_only";
    p.m = kernel.op == QCTS_OP_LINEAR ? shape.m : 0;
    p.n = shape.n;
    p.k = shape.k;
    p.w_dtype = p.x_dtype = p.y_dtype = p.bias_dtype = dtype;
    const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
    if (std::strcmp(kernel.scheme, "int4_tinygemm") == 0) {
      p.group = shape.group;
      add(0, "qdata", QCTS_U8, {p.n, p.k / 2}, random_bytes(static_cast<size_t>(p.n * p.k / 2), 1));
      const auto scales = static_cast<size_t>(p.k / p.group * p.n * 2);
      add(1, "scale_and_zero", dtype, {p.k / p.group, p.n, 2}, random_floats(dtype, scales, 2, 0.25f));
    } else {
      const bool fp8 = std::strcmp(kernel.scheme, "fp8_row") == 0;
      std::vector<uint8_t> codes = random_bytes(static_cast<size_t>(p.n * p.k), 3);
      // NaN codes are dequantize's business.
      if (fp8 && kernel.op == QCTS_OP_LINEAR)
        for (uint8_t& code : codes) code = (code & 0x7F) == 0x7F ? 0x2A : code;
      add(0, "qdata", fp8 ? QCTS_F8_E4M3FN : QCTS_I8, {p.n, p.k}, std::move(codes));
      add(1, "scale", QCTS_F32, {p.n, 1}, random_floats(QCTS_F32, static_cast<size_t>(p.n), 4, 0.25f));
      if (!fp8) add(2, "zero_point", QCTS_I8, {p.n, 1}, random_bytes(static_cast<size_t>(p.n), 5));
    }
    p.planes = planes;
    const int64_t rows = kernel.op == QCTS_OP_LINEAR ? p.m : p.n,
                  columns = kernel.op == QCTS_OP_LINEAR ? p.n : p.k;
    y.assign(static_cast<size_t>(rows * columns * bytes), 0xFF);
    p.y = y.data();
    p.ldy_bytes = columns * bytes;
    if (kernel.op == QCTS_OP_LINEAR) {
      buffers.push_back(random_floats(dtype, static_cast<size_t>(p.m * p.k), 6, 2.0f));
      p.x = buffers.back().data();
      p.ldx_bytes = p.k * bytes;
      buffers.push_back(random_floats(dtype, static_cast<size_t>(p.n), 7, 2.0f));
      p.bias = buffers.back().data();
    }
  }

  void add(int index, const char* name, uint32_t dtype, std::vector<int64_t> shape,
           std::vector<uint8_t> bytes) {
    qcts_plane& plane = planes[index];
    plane.struct_size = sizeof plane;
    plane.name = name;
    plane.dtype = dtype;
    plane.ndim = static_cast<uint32_t>(shape.size());
    int64_t stride = dtype == QCTS_F32 ? 4 : dtype == QCTS_BF16 || dtype == QCTS_F16 ? 2 : 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d])
      plane.shape[d] = shape[d], plane.stride_bytes[d] = stride;
    buffers.push_back(std::move(bytes));
    plane.data = buffers.back().data();
    problem.n_planes = static_cast<uint32_t>(index + 1);
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
  for (const Implementation* other : registry().find(op_name(kernel.op), kernel.scheme))
    if (std::strcmp(other->kernel->variant, "scalar") == 0) return *other->kernel;
  throw std::runtime_error(std::string("no scalar variant of ") + kernel.scheme);
}

class Variants : public testing::TestWithParam<size_t> {
 protected:
  const qcts_kernel& kernel() const { return *registry().implementations()[GetParam()].kernel; }
  void SetUp() override {
    Problem any(kernel(), {1, 16, 64, 32}, QCTS_BF16, 1);
    char why[256] = "";
    if (kernel().supports(&any.problem, why, sizeof why) != QCTS_OK) GTEST_SKIP() << why;
  }
};

constexpr uint32_t kDtypes[] = {QCTS_F32, QCTS_BF16, QCTS_F16};
constexpr Shape kShapes[] = {{1, 1, 8, 8},       {1, 64, 128, 32}, {2, 65, 96, 32},     {3, 130, 264, 24},
                             {4, 63, 1024, 128}, {5, 17, 192, 64}, {13, 100, 320, 160}, {67, 33, 160, 40}};

TEST_P(Variants, AgreeWithScalar) {
  const qcts_kernel& scalar = scalar_of(kernel());
  for (const Shape& shape : kShapes)
    for (uint32_t dtype : kDtypes) {
      // The k of row schemes may end anywhere.
      Shape cut = shape;
      if (std::strcmp(kernel().scheme, "int4_tinygemm") != 0) cut.k -= shape.m % 8;
      SCOPED_TRACE("m " + std::to_string(cut.m) + " n " + std::to_string(cut.n) + " k " +
                   std::to_string(cut.k) + " dtype " + std::to_string(dtype));
      const std::vector<uint8_t> want = Problem(scalar, cut, dtype, 1).run(scalar);
      const std::vector<uint8_t> got = Problem(kernel(), cut, dtype, 2).run(kernel());
      if (kernel().op == QCTS_OP_DEQUANTIZE) {
        ASSERT_EQ(got.size(), want.size());
        const size_t bytes = got.size() / static_cast<size_t>(cut.n * cut.k);
        for (size_t i = 0; i < static_cast<size_t>(cut.n * cut.k); ++i) {
          if (std::isnan(element(dtype, want, i)) && std::isnan(element(dtype, got, i))) continue;
          ASSERT_EQ(std::memcmp(&got[i * bytes], &want[i * bytes], bytes), 0)
              << "element " << i << ": want " << element(dtype, want, i) << ", got "
              << element(dtype, got, i);
        }
        continue;
      }
      // Scale 1/4, codes up to 448, x and bias up to 2.
      const double sum = 2.0 * 0.25 * 448.0 * static_cast<double>(cut.k);
      const double ulp = dtype == QCTS_F32 ? 0x1p-24 : dtype == QCTS_F16 ? 0x1p-10 : 0x1p-7;
      for (size_t i = 0; i < static_cast<size_t>(cut.m * cut.n); ++i) {
        const double w = element(dtype, want, i), g = element(dtype, got, i);
        ASSERT_TRUE(std::fabs(g - w) <=
                    ulp * std::fabs(w) + static_cast<double>(cut.k) * 0x1p-24 * sum / 16 + 0x1p-24)
            << "element " << i << ": want " << w << ", got " << g;
      }
    }
}

class LinearVariants : public Variants {};

TEST_P(LinearVariants, RowsAndThreadsHaveNoInfluence) {
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 70}) {
    const Shape shape = {m, 200, 256, 64};
    const std::vector<uint8_t> all = Problem(kernel(), shape, QCTS_F32, 1).run(kernel());
    EXPECT_EQ(Problem(kernel(), shape, QCTS_F32, 3).run(kernel()), all) << "threads, m " << m;
    for (int64_t row : {int64_t{0}, m / 2, m - 1}) {
      Problem whole(kernel(), shape, QCTS_F32, 1), alone(kernel(), {1, 200, 256, 64}, QCTS_F32, 1);
      alone.problem.x = static_cast<const char*>(whole.problem.x) + row * whole.problem.ldx_bytes;
      const std::vector<uint8_t> got = alone.run(kernel());
      const std::vector<uint8_t> want(all.begin() + row * 800, all.begin() + (row + 1) * 800);
      EXPECT_EQ(got, want) << "row " << row << " of " << m;
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
  return std::string(op_name(implementation.kernel->op)) + "_" + implementation.kernel->scheme + "_" +
         implementation.name();
}

INSTANTIATE_TEST_SUITE_P(Kernels, Variants,
                         testing::ValuesIn(implementations_of({QCTS_OP_DEQUANTIZE, QCTS_OP_LINEAR})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, LinearVariants, testing::ValuesIn(implementations_of({QCTS_OP_LINEAR})),
                         name_of);

}  // namespace
}  // namespace qcts
