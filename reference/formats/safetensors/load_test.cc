// SPDX-License-Identifier: BSD-3-Clause
// load_storages returns the mapped bytes, for any number of threads and even if the path has been replaced.
#include "reference/formats/io/load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "reference/formats/safetensors/safetensors.h"
#include "reference/formats/torch/testing.h"

namespace qcts {
namespace {

TEST(LoadStorages, AreTheMappedBytes) {
  for (const char* name : {"dtypes.pt", "zero_size.pt", "shared_views.pt", "many_storages.pt"}) {
    const TorchZip zip = read_torch_zip(MappedFile::open(testing::testdata(name)));
    for (const unsigned threads : {1u, 3u}) {
      const auto memory = std::make_shared<std::vector<std::byte>>(loaded_bytes(zip.storages));
      const auto loaded = load_storages(*zip.file, zip.storages, *memory, memory, threads);
      ASSERT_EQ(loaded.size(), zip.storages.size());
      for (size_t i = 0; i < loaded.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(loaded[i]->bytes, zip.storages[i]->bytes)) << name << " " << i;
        EXPECT_EQ(loaded[i]->key, zip.storages[i]->key);
        EXPECT_TRUE(loaded[i]->bytes.empty() || loaded[i]->bytes.data() != zip.storages[i]->bytes.data());
      }
    }
  }
}

TEST(LoadStorages, AnotherFileUnderTheSameNameIsNotRead) {
  const auto path = std::filesystem::temp_directory_path() / ("qcts_load_" + std::to_string(::getpid()));
  write_file_atomically(path, testing::small_archive());
  const TorchZip zip = read_torch_zip(MappedFile::open(path));
  std::vector<std::byte> other = testing::small_archive();
  for (std::byte& byte : other) byte = ~byte;
  write_file_atomically(path, other);
  std::vector<std::byte> memory(loaded_bytes(zip.storages));
  const auto loaded = load_storages(*zip.file, zip.storages, memory, nullptr, 1);
  for (size_t i = 0; i < loaded.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(loaded[i]->bytes, zip.storages[i]->bytes)) << i;
  std::filesystem::remove(path);
}

TEST(LoadStorages, AFileThatBecameShorterIsAnError) {
  const auto path = std::filesystem::temp_directory_path() / ("qcts_cut_" + std::to_string(::getpid()));
  write_file_atomically(path, testing::small_archive());
  const TorchZip zip = read_torch_zip(MappedFile::open(path));
  std::filesystem::resize_file(path, 100);
  std::vector<std::byte> memory(loaded_bytes(zip.storages));
  EXPECT_THROW(load_storages(*zip.file, zip.storages, memory, nullptr, 3), IoError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace qcts
