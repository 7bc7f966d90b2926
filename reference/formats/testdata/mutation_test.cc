// SPDX-License-Identifier: BSD-3-Clause
// For any bytes, a reader either returns or throws Refused. Mutates small real files (flipped bits,
// overwritten integers, truncations, pieces copied from elsewhere) with CRC checks off, so that mutants reach
// the pickle and the tensors. Accepted mutants are used: their tensors are walked and the file is rebuilt.
#include <gtest/gtest.h>

#include "reference/formats/pickle/graph.h"
#include "reference/formats/safetensors/safetensors.h"
#include "reference/formats/testing.h"
#include "reference/formats/torch/compact.h"
#include "reference/formats/torch/legacy.h"

namespace qcts {
namespace {

using testing::Bytes;
using testing::bytes_of_file;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t count) { return count == 0 ? 0 : next() % count; }

 private:
  uint64_t state_;
};

void mutate_once(Bytes& bytes, Random& random, size_t first, size_t last) {
  if (bytes.size() < 2 || first >= bytes.size()) return;
  const size_t span = std::min(last, bytes.size()) - first;
  const size_t at = first + random.below(span);
  switch (random.below(6)) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(random.next());
      break;
    case 2: {  // an extreme integer
      constexpr uint64_t kExtremes[] = {
          0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, uint64_t{1} << 40, INT64_MAX, UINT64_MAX};
      const uint64_t value = kExtremes[random.below(std::size(kExtremes))];
      const size_t width = size_t{1} << random.below(4);
      for (size_t i = 0; i < width && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
      break;
    }
    case 3: {  // a piece from elsewhere
      const size_t from = random.below(bytes.size()), count = 1 + random.below(32);
      for (size_t i = 0; i < count && at + i < bytes.size() && from + i < bytes.size(); ++i)
        bytes[at + i] = bytes[from + i];
      break;
    }
    case 4:
      bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at));
      break;
    default:
      bytes.resize(random.below(8) == 0 ? at : bytes.size());
      break;
  }
}

// Reads and uses the file; returns whether it was accepted.
bool use_torch(const Bytes& bytes) {
  TorchZipOptions options;
  options.crc = CrcPolicy::ignore;
  try {
    const TorchZip zip = read_torch_zip(MappedFile::from_bytes(bytes), options);
    pickle::for_each_node(zip.root, [&](const pickle::Ref& node) {
      const auto tensor = tensor_of(zip, node);
      if (tensor && bytes_of(tensor->dtype, tensor->shape) < (1u << 20)) row_major_bytes(*tensor);
    });
    EXPECT_EQ(rebuild_torch_zip(zip), bytes);
  } catch (const Refused&) {
    return false;
  }
  return true;
}

bool use_legacy(const Bytes& bytes) {
  try {
    const TorchLegacy legacy = read_torch_legacy(MappedFile::from_bytes(bytes));
    pickle::for_each_node(legacy.root, [&](const pickle::Ref& node) {
      const auto tensor = tensor_of(legacy, node);
      if (tensor && bytes_of(tensor->dtype, tensor->shape) < (1u << 20)) row_major_bytes(*tensor);
    });
    EXPECT_EQ(rebuild_torch_legacy(legacy), bytes);
    CompactReport report;
    const Bytes compact = rebuild_torch_legacy(compacted(legacy, report));
    read_torch_legacy(MappedFile::from_bytes(compact));
  } catch (const Refused&) {
    return false;
  }
  return true;
}

bool use_safetensors(const Bytes& bytes) {
  try {
    const Safetensors file = read_safetensors(MappedFile::from_bytes(bytes));
    for (const SafetensorsEntry& entry : file.entries) row_major_bytes(entry.tensor);
    EXPECT_EQ(rebuild_safetensors(file), bytes);
  } catch (const Refused&) {
    return false;
  }
  return true;
}

bool use_pickle(const Bytes& bytes) {
  try {
    pickle::write(pickle::read(bytes));
  } catch (const Refused&) {
    return false;
  }
  return true;
}

template <typename Use>
void run(const Bytes& original, uint64_t seed, int mutants, Use use) {
  ASSERT_TRUE(use(original)) << "the original has to be accepted, or nothing is tested";
  Random random(seed);
  int refused = 0;
  for (int i = 0; i < mutants; ++i) {
    Bytes bytes = original;
    const size_t steps = 1 + random.below(3);
    for (size_t step = 0; step < steps; ++step) mutate_once(bytes, random, 0, bytes.size());
    refused += !use(bytes);
  }
  EXPECT_GT(refused, mutants / 10) << "the mutants do not reach the checks";
}

class TorchMutants : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchMutants, OnlyRefusedEscapes) { run(bytes_of_file(GetParam()), 1, 400, use_torch); }

// Mutations inside data.pkl only get past the archive checks and into the graph.
TEST_P(TorchMutants, OnlyRefusedEscapesFromTheGraph) {
  const Bytes original = bytes_of_file(GetParam());
  const TorchZip zip = read_torch_zip(MappedFile::from_bytes(original));
  const size_t first = zip.records[0].data_offset, last = first + zip.records[0].bytes.size();
  Random random(2);
  int accepted = 0;
  for (int i = 0; i < 400; ++i) {
    Bytes bytes = original;
    do {
      bytes = original;
      mutate_once(bytes, random, first, last);
    } while (bytes.size() != original.size());
    accepted += use_torch(bytes);
  }
  EXPECT_GT(accepted, 0);
  const Bytes pickle(zip.records[0].bytes.begin(), zip.records[0].bytes.end());
  run(pickle, 3, 1000, use_pickle);
}

INSTANTIATE_TEST_SUITE_P(Testdata, TorchMutants,
                         ::testing::Values("shared_views.pt", "values.pt", "ao_int8_dynamic.pt", "sparse.pt",
                                           "quantized.pt", "attributes.pt", "optimizer.pt"));

class LegacyMutants : public ::testing::TestWithParam<const char*> {};
TEST_P(LegacyMutants, OnlyRefusedEscapes) {
  const auto file = MappedFile::open(source_path("fixtures/golden") / GetParam() / "model.pt");
  run({file->bytes().begin(), file->bytes().end()}, 5, 1000, use_legacy);
}
INSTANTIATE_TEST_SUITE_P(Goldens, LegacyMutants,
                         ::testing::Values("torch_2_13_0/plain/legacy_views",
                                           "torch_2_13_0/plain/legacy_quantized",
                                           "torchao_0_18_0/int8_row/toy_64_32_64_legacy"));

class SafetensorsMutants : public ::testing::TestWithParam<const char*> {};
TEST_P(SafetensorsMutants, OnlyRefusedEscapes) { run(bytes_of_file(GetParam()), 4, 2000, use_safetensors); }
INSTANTIATE_TEST_SUITE_P(Testdata, SafetensorsMutants,
                         ::testing::Values("dtypes.safetensors", "several_keys.safetensors",
                                           "zero_size.safetensors"));

}  // namespace
}  // namespace qcts
