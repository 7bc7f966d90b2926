// SPDX-License-Identifier: BSD-3-Clause
// Packs generated weights as each CPU does, and asks which one it was. No answer may be wrong.
#include "reference/dialects/cpu_pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "reference/dialects/classes/schema.h"
#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr int kStyles = 6;

struct WeightSpec {
  int64_t n = 64, k = 256, group = 32;
  DType dtype = DType::bfloat16;
  int style = kStyles - 1;
};

using Change = std::function<void(Planes&, const WeightShape&, const Scheme&)>;

// Weights whose rows, columns and tails differ, each in its own way.
double weight_at(int style, uint64_t seed, int64_t row, int64_t column, uint64_t index) {
  const double value = noise(seed, index);
  const double of_row = noise(seed + 1000003, static_cast<uint64_t>(row)),
               of_column = noise(seed + 2000003, static_cast<uint64_t>(column));
  switch (style) {
    case 0:
      return value * value * value;  // heavy tails
    case 1:
      return value * std::exp2(8 * of_row);  // rows of many magnitudes
    case 2:
      return value + 2 * of_column;  // columns that all rows share
    case 3:
      return value + 1;  // no negative weights
    case 4:
      return row % 4 == 1 ? 0.25 : value;  // constant rows
    default:
      return value;
  }
}

std::vector<std::byte> weight_bytes(const WeightSpec& spec, uint64_t seed, int style) {
  std::vector<std::byte> bytes(static_cast<size_t>(spec.n * spec.k) * dtype_bytes(spec.dtype));
  for (int64_t row = 0; row < spec.n; ++row)
    for (int64_t column = 0; column < spec.k; ++column) {
      const size_t i = static_cast<size_t>(row * spec.k + column);
      store_float(spec.dtype, bytes, i, weight_at(style, seed, row, column, i));
    }
  return bytes;
}

NamedTensor packed_weight(const WeightSpec& spec, std::string_view pack, uint64_t seed,
                          const Change& change) {
  const Scheme& scheme = *find_scheme("int4_tinygemm_g" + std::to_string(spec.group));
  const WeightShape shape = {spec.dtype, spec.n, spec.k};
  const std::vector<std::byte> weight = weight_bytes(spec, seed, spec.style);
  Planes plain = scheme.quantize({spec.dtype, spec.n, spec.k, weight}, kPlain);
  if (change) change(plain, shape, scheme);
  NamedTensor tensor;
  tensor.name = "w" + std::to_string(seed), tensor.type = "Int4OpaqueTensor";
  tensor.shape = {spec.n, spec.k}, tensor.dtype = spec.dtype;
  for (Plane& part : scheme.pack(plain, shape, *scheme.find_layout(pack)))
    tensor.payload.push_back({part.name, make_tensor(part.dtype, part.shape, std::move(part.bytes))});
  tensor.attributes = {{"block_size", {1, spec.group}}, {"shape", {spec.n, spec.k}}};
  recognize_scheme(tensor);
  return tensor;
}

CpuPack asked(std::vector<NamedTensor> tensors) {
  Checkpoint checkpoint;
  checkpoint.tensors = std::move(tensors);
  return find_cpu_pack(checkpoint);
}

// Moves zeros to 0 and codes with them, as symmetric quantization would choose.
void make_symmetric(Planes& plain, const WeightShape& shape, const Scheme&) {
  for (size_t i = 1; i * dtype_bytes(shape.dtype) < plain[1].bytes.size(); i += 2)
    store_float(shape.dtype, plain[1].bytes, i, 0);
}

std::vector<std::byte> codes_under(const NamedTensor& tensor, std::string_view pack) {
  const SchemeTensor packed = *scheme_tensor(tensor, pack);
  return packed.scheme->unpack(packed.planes, {packed.dtype, packed.n, packed.k}, packed.layout)[0].bytes;
}

TEST(CpuPack, NoDecisionIsWrong) {
  const char* asked_rounds = std::getenv("QCTS_CPU_PACK_ROUNDS");
  const int rounds = asked_rounds ? std::atoi(asked_rounds) : 1;
  int right = 0, undecided = 0, wrong = 0;
  uint64_t seed = 1;
  for (int i = 0; i < rounds * kStyles; ++i)
    for (const std::string_view pack : kCpuPacks)
      for (const int64_t group : {32, 128})
        for (const WeightSpec& spec :
             {WeightSpec{128, 512, group, DType::bfloat16}, WeightSpec{192, 1024, group, DType::float32},
              WeightSpec{16, 256, group, DType::bfloat16}, WeightSpec{32, 1024, group, DType::float16},
              WeightSpec{48, 512, group, DType::bfloat16}, WeightSpec{80, 2048, group, DType::bfloat16}}) {
          WeightSpec styled = spec;
          styled.style = i % kStyles;
          const NamedTensor tensor = packed_weight(styled, pack, ++seed, {});
          const CpuPack found = asked({tensor});
          ASSERT_EQ(found.decided.empty(), !found.why_not.empty());
          undecided += found.decided.empty();
          if (found.decided.empty()) continue;
          // Packs of a small weight may be equal.
          (codes_under(tensor, found.decided) == codes_under(tensor, pack) ? right : wrong) += 1;
        }
  std::printf("cpu_pack: %d right, %d undecided, %d wrong\n", right, undecided, wrong);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, undecided);
}

TEST(CpuPack, SymmetricWeightsAreNeverDecided) {
  for (uint64_t seed = 1; seed <= 6; ++seed)
    for (const std::string_view pack : kCpuPacks) {
      const CpuPack found = asked({packed_weight({128, 1024, 64}, pack, seed, make_symmetric)});
      EXPECT_EQ(found.decided, "") << pack;
      EXPECT_NE(found.why_not.find("symmetric"), std::string::npos) << found.why_not;
    }
}

TEST(CpuPack, SmallWeightsAreNotDecidedByChance) {
  int decided = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed)
    for (const std::string_view pack : kCpuPacks)
      decided += !asked({packed_weight({48, 128, 128}, pack, seed, {})}).decided.empty();
  EXPECT_EQ(decided, 0);
}

// Clipping every group to twelve codes keeps both ends out of reach under every pack.
TEST(CpuPack, WeightsThatReachNoEndsAreNotDecided) {
  const Change narrow = [](Planes& plain, const WeightShape&, const Scheme&) {
    for (std::byte& pair : plain[0].bytes) {
      const int low = std::clamp(std::to_integer<int>(pair) & 15, 2, 13),
                high = std::clamp(std::to_integer<int>(pair) >> 4, 2, 13);
      pair = static_cast<std::byte>(low | high << 4);
    }
  };
  for (uint64_t seed = 1; seed <= 4; ++seed)
    for (const std::string_view pack : kCpuPacks)
      EXPECT_EQ(asked({packed_weight({128, 1024, 64}, pack, seed, narrow)}).decided, "") << pack;
}

TEST(CpuPack, WeightsOfOneFileAreCountedTogetherAndMayContradict) {
  std::vector<NamedTensor> small, mixed;
  for (uint64_t seed = 1; seed <= 40; ++seed)
    small.push_back(packed_weight({64, 128, 128}, "cpu_avx512", seed, {}));
  EXPECT_EQ(asked({small[0]}).decided, "");
  EXPECT_EQ(asked(small).decided, "cpu_avx512");
  mixed.push_back(packed_weight({128, 2048, 64}, "cpu_avx512", 1, {}));
  mixed.push_back(packed_weight({128, 2048, 64}, "cpu_avx2", 2, {}));
  const CpuPack found = asked(mixed);
  EXPECT_EQ(found.decided, "");
  EXPECT_NE(found.why_not.find("w1 and w2 contradict each other"), std::string::npos) << found.why_not;
}

TEST(CpuPack, SignTestIsTheBinomialTail) {
  EXPECT_EQ(sign_test(0, 0), 1);
  EXPECT_EQ(sign_test(3, 5), 1);
  EXPECT_NEAR(sign_test(10, 0), 0x1p-10, 1e-15);
  EXPECT_NEAR(sign_test(9, 1), 11 * 0x1p-10, 1e-14);
  EXPECT_LT(sign_test(30000, 20000), kMaxChance);
  EXPECT_NEAR(sign_test(5010, 4990), 0.4247, 1e-3);
}

}  // namespace
}  // namespace qcts
