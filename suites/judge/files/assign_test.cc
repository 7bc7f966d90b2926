// SPDX-License-Identifier: BSD-3-Clause
// Tests what the assign kind relies on: mismatched keys are reported, memory is measured, and a large
// quantized file loads without its float model.
#include "reference/dialects/assign.h"

#include <sys/mman.h>

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "suites/base/memory.h"

namespace qcts {
namespace {

constexpr uint64_t kMiB = 1u << 20;

Checkpoint two_tensors() {
  Checkpoint checkpoint;
  for (const char* name : {"a.weight", "b.weight"}) {
    NamedTensor tensor;
    tensor.name = name;
    tensor.shape = {2, 3};
    tensor.dtype = DType::bfloat16;
    checkpoint.tensors.push_back(tensor);
  }
  return checkpoint;
}

TEST(Assign, TakesOverWhatFits) {
  const Checkpoint checkpoint = two_tensors();
  const Assignment assignment = assign(checkpoint, skeleton_of(checkpoint));
  EXPECT_TRUE(assignment.complete());
  EXPECT_EQ(assignment.assigned.size(), 2u);
}

TEST(Assign, NamesMissingUnexpectedAndMismatched) {
  const Checkpoint checkpoint = two_tensors();
  const std::vector<SkeletonTensor> skeleton = {{"a.weight", {3, 2}, DType::float32},
                                                {"c.weight", {1}, DType::float32}};
  const Assignment assignment = assign(checkpoint, skeleton);
  EXPECT_EQ(assignment.missing, std::vector<std::string>{"c.weight"});
  EXPECT_EQ(assignment.unexpected, std::vector<std::string>{"b.weight"});
  ASSERT_EQ(assignment.mismatched.size(), 2u);
  EXPECT_EQ(assignment.mismatched[0].want, "[3, 2]");
  EXPECT_EQ(assignment.mismatched[0].got, "[2, 3]");
  EXPECT_EQ(assignment.mismatched[1].what, "dtype");
  EXPECT_TRUE(assignment.assigned.empty());
}

TEST(Memory, ThePeakSeesWhatWasFreed) {
  ASSERT_TRUE(reset_peak_resident());
  const uint64_t before = *resident_bytes();
  // Mapped pages: a sanitizer's allocator would keep what is freed.
  void* block = ::mmap(nullptr, 96 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, 96 * kMiB);
  ::munmap(block, 96 * kMiB);
  EXPECT_GE(*peak_resident_bytes(), before + 90 * kMiB);
  ASSERT_TRUE(reset_peak_resident());
  EXPECT_LT(*peak_resident_bytes(), before + 48 * kMiB);
}

// 96 MiB of int8 are 384 MiB as float32: a loader that built the float model would need those.
TEST(Assign, ALargeQuantizedFileNeedsNoFloatModel) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "qcts_assign_large.safetensors";
  constexpr int64_t kRows = 12288, kColumns = 8192;
  {
    const std::string spelling =
        R"({"_type": "Int8Tensor", "_data": {"block_size": [1, 8192], "dtype": {"_type": "torch.dtype", "_data": "float32"}}, )"
        R"("_tensor_data_names": ["qdata", "scale", "zero_point"]})";
    write_file_atomically(
        file,
        write_safetensors(
            {{"big._weight_qdata",
              make_tensor(DType::int8, {kRows, kColumns}, std::vector<std::byte>(kRows * kColumns))},
             {"big._weight_scale",
              make_tensor(DType::float32, {kRows, 1}, std::vector<std::byte>(kRows * 4))},
             {"big._weight_zero_point", make_tensor(DType::int8, {kRows, 1}, std::vector<std::byte>(kRows))}},
            {{"big.weight", spelling}, {"tensor_names", R"(["big.weight"])"}}));
  }
  ASSERT_TRUE(reset_peak_resident());
  const uint64_t before = *resident_bytes();
  const Checkpoint checkpoint = open_checkpoint(file);
  const Assignment assignment =
      assign(checkpoint, std::vector<SkeletonTensor>{{"big.weight", {kRows, kColumns}, DType::float32}});
  uint64_t sum = 0;
  for (const InnerTensor& inner : checkpoint.tensors.at(0).payload)
    for (std::byte value : inner.tensor.storage->bytes) sum += std::to_integer<uint64_t>(value);
  EXPECT_EQ(sum, 0u);
  EXPECT_TRUE(assignment.complete());
  EXPECT_LE(*peak_resident_bytes() - before, checkpoint.file_bytes + 64 * kMiB);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace qcts
