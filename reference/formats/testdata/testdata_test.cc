// SPDX-License-Identifier: BSD-3-Clause
// Parses every committed file of a real library, rebuilds it from what was parsed, and compares the bytes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/safetensors/safetensors.h"
#include "reference/formats/testing.h"
#include "reference/formats/torch/object.h"
#include "reference/formats/torch/zip.h"

namespace qcts {
namespace {

using testing::bytes_of_file;
using testing::testdata;

std::vector<std::string> files(const std::string& extension) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testdata(""))) {
    if (entry.path().extension() == extension) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

class TorchFile : public ::testing::TestWithParam<std::string> {};

TEST_P(TorchFile, IsRebuiltByteForByte) {
  const auto file = MappedFile::open(testdata(GetParam()));
  const TorchZip zip = read_torch_zip(file);
  RebuildNotes notes;
  const auto rebuilt = rebuild_torch_zip(zip, &notes);
  EXPECT_TRUE(std::ranges::equal(rebuilt, file->bytes()));
  EXPECT_FALSE(notes.kept_pickle);
  EXPECT_FALSE(notes.kept_serialization_id);
  EXPECT_FALSE(notes.kept_file);
}

TEST_P(TorchFile, PickleIsReadAgainAsTheSameGraph) {
  const TorchZip zip = read_torch_zip(MappedFile::open(testdata(GetParam())));
  const auto once = pickle::write(zip.root);
  EXPECT_EQ(pickle::write(pickle::read(once)), once);
}

INSTANTIATE_TEST_SUITE_P(Testdata, TorchFile, ::testing::ValuesIn(files(".pt")), test_name);

class SafetensorsFile : public ::testing::TestWithParam<std::string> {};

TEST_P(SafetensorsFile, IsRebuiltByteForByte) {
  const auto file = MappedFile::open(testdata(GetParam()));
  EXPECT_TRUE(std::ranges::equal(rebuild_safetensors(read_safetensors(file)), file->bytes()));
}

// A new file from the same tensors equals the Rust writer's, except the order of several metadata keys, which
// is random there and sorted here.
TEST_P(SafetensorsFile, IsWrittenAnewByteForByte) {
  const auto file = MappedFile::open(testdata(GetParam()));
  const Safetensors parsed = read_safetensors(file);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const SafetensorsEntry& entry : parsed.entries) tensors.emplace_back(entry.name, entry.tensor);
  std::ranges::reverse(tensors);
  const auto written = write_safetensors(tensors, parsed.metadata);
  if (parsed.metadata.size() < 2) {
    EXPECT_TRUE(std::ranges::equal(written, file->bytes()));
    return;
  }
  Safetensors again = read_safetensors(MappedFile::from_bytes(written));
  EXPECT_TRUE(std::ranges::is_sorted(again.metadata));
  EXPECT_TRUE(std::ranges::is_permutation(again.metadata, parsed.metadata));
  again.metadata = parsed.metadata;
  EXPECT_TRUE(std::ranges::equal(rebuild_safetensors(again), file->bytes()));
}

INSTANTIATE_TEST_SUITE_P(Testdata, SafetensorsFile, ::testing::ValuesIn(files(".safetensors")), test_name);

// An archive that torch.save writes under skip_data, with a storage of 4 GiB and 8 bytes as a hole. Later
// records have zip64 fields in local headers, descriptors and directory. Neither reading nor the comparison
// touches the hole.
class BeyondFourGib : public ::testing::Test {
 protected:
  void SetUp() override {
    const testing::Bytes extents = bytes_of_file("zip64.extents");
    std::string pattern = (std::filesystem::temp_directory_path() / "qcts_zip64_XXXXXX").string();
    const int fd = ::mkstemp(pattern.data());
    ASSERT_GE(fd, 0);
    path_ = pattern;
    ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(load_le<uint64_t>(extents, 0))), 0);
    for (size_t at = 8; at < extents.size();) {
      const uint64_t offset = load_le<uint64_t>(extents, at), length = load_le<uint64_t>(extents, at + 8);
      ASSERT_EQ(::pwrite(fd, extents.data() + at + 16, length, static_cast<off_t>(offset)),
                static_cast<ssize_t>(length));
      at += 16 + length;
    }
    ::close(fd);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST_F(BeyondFourGib, IsReadAndRebuiltByteForByte) {
  const auto file = MappedFile::open(path_);
  ASSERT_GT(file->bytes().size(), uint64_t{1} << 32);
  const TorchZip zip = read_torch_zip(file);
  const Tensor big = *tensor_of(zip, pickle::find(zip.root, "big")),
               small = *tensor_of(zip, pickle::find(zip.root, "small"));
  EXPECT_EQ(big.shape, (std::vector<int64_t>{(int64_t{1} << 32) + 8}));
  EXPECT_EQ(small.shape, (std::vector<int64_t>{3}));
  EXPECT_GT(small.storage->bytes.data() - file->bytes().data(), int64_t{1} << 32);
  CompareSink same(file->bytes());
  RebuildNotes notes;
  rebuild_torch_zip(zip, same, &notes);
  EXPECT_TRUE(same.equal());
  EXPECT_FALSE(notes.kept_file || notes.kept_pickle || notes.kept_serialization_id);
}

// Detects a planted fault in a field that only zip64 has.
TEST_F(BeyondFourGib, DamagedWideFieldsAreRefused) {
  const auto refused_after_change = [&](int64_t from_end, uint8_t value) {
    const int fd = ::open(path_.c_str(), O_RDWR);
    const off_t at = ::lseek(fd, 0, SEEK_END) - from_end;
    uint8_t old = 0;
    EXPECT_EQ(::pread(fd, &old, 1, at), 1);
    EXPECT_EQ(::pwrite(fd, &value, 1, at), 1);
    const std::string end = testing::outcome([&] { read_torch_zip(MappedFile::open(path_)); });
    EXPECT_EQ(::pwrite(fd, &old, 1, at), 1);
    ::close(fd);
    return end;
  };
  // The ZIP64 end record: the directory offset's fifth byte. Then the locator: the record's offset.
  EXPECT_EQ(refused_after_change(22 + 20 + 8 - 4, 2), "ZipStructure");
  EXPECT_EQ(refused_after_change(22 + 12 - 4, 0), "ZipStructure");
}

TEST(TorchZipWriter, NewArchiveIsWhatTorchSaveWrites) {
  const Tensor x = testing::float_tensor({2}, {1, 1});
  pickle::Ref root = pickle::dict();
  root->pairs = {{pickle::string("x"), tensor_node(x, "0")}};
  EXPECT_EQ(write_torch_zip("plain_dict", root, {x.storage}), bytes_of_file("plain_dict.pt"));
}

// Seventy storages exercise shared strings, wide memo indices and two rehashes in the serialization id.
TEST(TorchZipWriter, ManyStoragesAreWhatTorchSaveWrites) {
  pickle::Ref root = pickle::dict();
  std::vector<std::shared_ptr<const Storage>> storages;
  for (int i = 0; i < 70; ++i) {
    const Tensor tensor = testing::float_tensor({1}, {static_cast<float>(i)});
    storages.push_back(tensor.storage);
    root->pairs.emplace_back(pickle::string(std::to_string(i)), tensor_node(tensor, std::to_string(i)));
  }
  EXPECT_EQ(write_torch_zip("many_storages", root, storages), bytes_of_file("many_storages.pt"));
}

TEST(TorchZipWriter, EveryDtypeIsWrittenAsTorchWritesIt) {
  const TorchZip zip = read_torch_zip(MappedFile::open(testdata("dtypes.pt")));
  pickle::Ref root = pickle::dict();
  for (const auto& [name, node] : zip.root->pairs) {
    const auto tensor = tensor_of(zip, node);
    ASSERT_TRUE(tensor) << name->text;
    root->pairs.emplace_back(pickle::string(name->text), tensor_node(*tensor, tensor->storage->key));
  }
  EXPECT_EQ(write_torch_zip("dtypes", root, zip.storages), bytes_of_file("dtypes.pt"));
}

// "edited.pt" is torch.save's own file of the edited value.
TEST(TorchZipWriter, AnEditedTensorGivesWhatTorchSavesForIt) {
  TorchZip zip = read_torch_zip(MappedFile::open(testdata("plain_dict.pt")));
  const auto doubled = testing::raw<float>({2, 2});
  for (ZipRecord& record : zip.records) {
    if (record.name == "data/0") record.bytes = doubled;
  }
  zip.root->pairs[0].first = pickle::string("doubled");
  zip.prefix = "edited";
  RebuildNotes notes;
  EXPECT_EQ(rebuild_torch_zip(zip, &notes), bytes_of_file("edited.pt"));
  EXPECT_FALSE(notes.kept_pickle || notes.kept_serialization_id || notes.kept_file);
}

TEST(TorchZipReader, ViewsShareTheirStorage) {
  const TorchZip zip = read_torch_zip(MappedFile::open(testdata("shared_views.pt")));
  const Tensor base = *tensor_of(zip, pickle::find(zip.root, "base"));
  const Tensor transposed = *tensor_of(zip, pickle::find(zip.root, "transposed"));
  const Tensor row = *tensor_of(zip, pickle::find(zip.root, "row"));
  EXPECT_EQ(base.storage, transposed.storage);
  EXPECT_EQ(base.storage, row.storage);
  EXPECT_EQ(row.offset_elems, 4);
  EXPECT_EQ(row_major_bytes(row), testing::raw<float>({4, 5, 6, 7}));
  EXPECT_EQ(row_major_bytes(transposed), testing::raw<float>({0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(row_major_bytes(*tensor_of(zip, pickle::find(zip.root, "expanded"))), testing::Bytes(48));
}

TEST(TorchZipReader, ParametersAndAttributesAreTensors) {
  const TorchZip parameters = read_torch_zip(MappedFile::open(testdata("parameters.pt")));
  EXPECT_EQ(tensor_of(parameters, pickle::find(parameters.root, "p"))->shape, (std::vector<int64_t>{2, 2}));
  const TorchZip attributed = read_torch_zip(MappedFile::open(testdata("attributes.pt")));
  EXPECT_TRUE(tensor_of(attributed, pickle::find(attributed.root, "p")));
  EXPECT_TRUE(tensor_of(attributed, pickle::find(attributed.root, "t")));
  const TorchZip quantized = read_torch_zip(MappedFile::open(testdata("ao_int8.pt")));
  EXPECT_FALSE(tensor_of(quantized, pickle::find(quantized.root, "0.weight")))
      << "a subclass is not a plain tensor";
}

}  // namespace
}  // namespace qcts
