// SPDX-License-Identifier: BSD-3-Clause
// Tests inconsistent legacy files; rows (L1 ...) are those of the malformed corpus.
// suites/readers/torch_files/test_torch_features.py and the goldens cover what torch itself writes.
#include "reference/formats/torch/legacy.h"

#include <gtest/gtest.h>

#include <functional>

#include "reference/formats/io/byte_io.h"
#include "reference/formats/testing.h"

namespace qcts {
namespace {

using pickle::boolean;
using pickle::call;
using pickle::global;
using pickle::integer;
using pickle::none;
using pickle::Ref;
using pickle::string;
using pickle::tuple;
using testing::Bytes;
using testing::outcome;
using testing::to_bytes;

const std::string kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

Ref machine(bool little_endian) {
  const Ref sizes = pickle::dict(), info = pickle::dict();
  sizes->pairs = {{string("short"), integer(2)}, {string("int"), integer(4)}, {string("long"), integer(4)}};
  info->pairs = {{string("protocol_version"), integer(1001)},
                 {string("little_endian"), boolean(little_endian)},
                 {string("type_sizes"), sizes}};
  return info;
}

// Two float tensors over storage 77, six elements; each case changes one part.
struct Parts {
  std::string magic = kMagic;
  Ref protocol = integer(1001);
  Ref info = machine(true);
  Ref cls = global("torch", "FloatStorage");
  Ref key = string("77");
  Ref location = string("cpu");
  Ref numel = integer(6);
  Ref view = none();
  bool five_parts = false;
  int64_t offset = 0, size = 6;
  pickle::Refs more;  // further arguments of _rebuild_tensor_v3
  Ref keys = pickle::list({string("77")});
  uint64_t count = 6;
  std::string data = std::string(20, '\1') + std::string(4, '\2');
  std::string tail;

  Ref tensor() const {
    pickle::Refs id = {string("storage"), cls, key, location, numel, view};
    if (five_parts) id.pop_back();
    pickle::Refs args = {
        pickle::persistent(tuple(id)), integer(offset), tuple({integer(size)}),
        tuple({integer(1)}),           boolean(false),  call(global("collections", "OrderedDict"), {})};
    args.insert(args.end(), more.begin(), more.end());
    return call(global("torch._utils", more.empty() ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3"), args);
  }

  Bytes file() const {
    Ref root = pickle::dict();
    root->pairs = {{string("a"), tensor()}, {string("b"), tensor()}};
    Bytes out = to_bytes(magic);
    for (const Ref& part : {protocol, info, root, keys}) append(out, pickle::write(part));
    append_le<uint64_t>(out, count);
    append(out, data);
    append(out, tail);
    return out;
  }
};

struct LegacyChange {
  std::string name, required;
  std::function<void(Parts&)> change;
};
void PrintTo(const LegacyChange& c, std::ostream* out) { *out << c.name; }

void as_untyped(Parts& p, const char* dtype) {
  p.cls = global("torch.storage", "UntypedStorage");
  p.numel = integer(24);
  p.count = 24;
  p.size = 3;
  p.more = {global("torch", dtype)};
}

// Makes the tensor a view of the storage.
std::function<void(Parts&)> seen(int64_t offset, int64_t numel) {
  return [=](Parts& p) { p.view = tuple({string("78"), integer(offset), integer(numel)}); };
}

const std::vector<LegacyChange> kCases = {
    {"intact", "accepted", [](Parts&) {}},
    {"l1_other_magic", "NotArchive", [](Parts& p) { p.magic[8] ^= 1; }},
    {"l1_plain_pickle", "PickleOpcode", [](Parts& p) { p.magic = "\x80\x02}."; }},
    {"l1_protocol_4", "Version", [](Parts& p) { p.magic[1] = 4; }},
    {"l1_protocol_5", "Version", [](Parts& p) { p.magic[1] = 5; }},
    {"l1_other_version", "Version", [](Parts& p) { p.protocol = integer(1002); }},
    {"l1_version_is_text", "Version", [](Parts& p) { p.protocol = string("1001"); }},
    {"l1_sys_info_version", "Version", [](Parts& p) { p.info->pairs[0].second = integer(1000); }},
    {"l1_sys_info_no_dict", "PickleType", [](Parts& p) { p.info = integer(1); }},
    {"l1_sys_info_sizes", "PickleType", [](Parts& p) { p.info->pairs[2].second = integer(1); }},
    {"l5_endian_is_text", "ByteOrder", [](Parts& p) { p.info->pairs[1].second = string("little"); }},
    {"l5_big_endian_writer", "accepted", [](Parts& p) { p.info = machine(false); }},
    {"l5_big_endian_complex", "ByteOrder",
     [](Parts& p) {
       p.info = machine(false);
       p.cls = global("torch", "ComplexFloatStorage");
       p.numel = integer(3);
       p.count = 3;
       p.size = 3;
     }},
    {"l2_key_missing", "StorageRef", [](Parts& p) { p.keys->items.clear(); }},
    {"l2_key_unknown", "StorageRef", [](Parts& p) { p.keys->items.push_back(string("78")); }},
    {"l2_key_twice", "StorageRef", [](Parts& p) { p.keys->items.push_back(string("77")); }},
    {"l2_key_is_a_number", "StorageRef", [](Parts& p) { p.keys->items[0] = integer(77); }},
    {"l2_keys_are_a_tuple", "StorageRef", [](Parts& p) { p.keys = tuple({string("77")}); }},
    {"l2_key_is_a_path", "StorageRef", [](Parts& p) { p.key = string("../77"); }},
    {"l3_count_too_small", "StorageRef", [](Parts& p) { p.count = 5; }},
    {"l3_count_2_40", "StorageRef", [](Parts& p) { p.count = uint64_t{1} << 40; }},
    {"l3_count_minus_one", "StorageRef", [](Parts& p) { p.count = ~uint64_t{0}; }},
    {"l3_numel_2_40", "StorageRef", [](Parts& p) { p.numel = integer(int64_t{1} << 40); }},
    {"l3_both_2_40", "Truncated",
     [](Parts& p) {
       p.numel = integer(int64_t{1} << 40);
       p.count = uint64_t{1} << 40;
     }},
    {"l3_numel_negative", "Overflow", [](Parts& p) { p.numel = integer(-1); }},
    {"l3_numel_2_62", "Overflow", [](Parts& p) { p.numel = integer(int64_t{1} << 62); }},
    {"l3_data_cut", "Truncated", [](Parts& p) { p.data.pop_back(); }},
    {"l3_no_data", "Truncated", [](Parts& p) { p.data.clear(); }},
    {"l4_view", "accepted",
     [](Parts& p) {
       p.view = tuple({string("78"), integer(2), integer(4)});
       p.size = 4;
     }},
    {"l4_view_offset_negative", "TensorBounds", seen(-1, 4)},
    {"l4_view_beyond", "TensorBounds", seen(3, 4)},
    {"l4_view_size_100", "TensorBounds", seen(0, 100)},
    {"l4_tensor_beyond_view", "TensorBounds", seen(0, 4)},
    {"l4_view_of_two", "StorageRef",
     [](Parts& p) {
       p.view = tuple({string("78"), integer(0)});
     }},
    {"l4_view_is_text", "StorageRef", [](Parts& p) { p.view = string("78"); }},
    {"l6_trailing_byte", "TrailingData", [](Parts& p) { p.tail = "x"; }},
    {"id_of_five_parts", "StorageRef", [](Parts& p) { p.five_parts = true; }},
    {"unknown_location", "StorageRef", [](Parts& p) { p.location = string("bogus"); }},
    {"cuda_location", "accepted", [](Parts& p) { p.location = string("cuda:3"); }},
    {"tensor_beyond_storage", "TensorBounds", [](Parts& p) { p.offset = 1; }},
    {"untyped", "accepted", [](Parts& p) { as_untyped(p, "uint64"); }},
    {"untyped_beyond_storage", "TensorBounds",
     [](Parts& p) {
       as_untyped(p, "uint64");
       p.size = 4;
     }},
};

class LegacyCase : public ::testing::TestWithParam<LegacyChange> {};

TEST_P(LegacyCase, EndsAsRequired) {
  Parts parts;
  GetParam().change(parts);
  const Bytes bytes = parts.file();
  TorchLegacy legacy;
  EXPECT_EQ(outcome([&] { legacy = read_torch_legacy(MappedFile::from_bytes(bytes)); }), GetParam().required);
  if (GetParam().required == "accepted") {
    EXPECT_EQ(rebuild_torch_legacy(legacy), bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, LegacyCase, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// L7: a magic number that has to be computed is refused before anything is looked up.
TEST(TorchLegacy, MagicByCallIsASecurityRefusal) {
  const Bytes bytes = to_bytes(
      "\x80\x02"
      "cbuiltins\neval\n(X\x01\0\0\0"
      "1tR.");
  try {
    read_torch_legacy(MappedFile::from_bytes(bytes));
    FAIL() << "accepted";
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.refusal().cls, RefusalClass::PickleOpcode);
    EXPECT_TRUE(refused.refusal().security);
    EXPECT_EQ(refused.refusal().offset, 2u);
  }
}

TEST(TorchLegacy, EveryPrefixIsRefused) {
  const Bytes bytes = Parts().file();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string end = outcome([&] {
      read_torch_legacy(
          MappedFile::from_bytes({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)}));
    });
    EXPECT_EQ(end, "Truncated") << length;
  }
}

TEST(TorchLegacy, RefusalsCountFromTheFirstByte) {
  Parts parts;
  parts.cls = global("os", "system");
  const Bytes bytes = parts.file();
  try {
    read_torch_legacy(MappedFile::from_bytes(bytes));
    FAIL() << "accepted";
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.refusal().detail, "the object: global os.system");
    EXPECT_EQ(refused.refusal().offset, as_text(bytes).find("cos\nsystem\n"));
  }
}

TEST(TorchLegacy, TensorsShareTheirStorageAndViewsAddTheirOffset) {
  Parts parts;
  parts.view = tuple({string("78"), integer(2), integer(4)});
  parts.offset = 1;
  parts.size = 3;
  const TorchLegacy legacy = read_torch_legacy(MappedFile::from_bytes(parts.file()));
  const Tensor a = *tensor_of(legacy, pickle::find(legacy.root, "a")),
               b = *tensor_of(legacy, pickle::find(legacy.root, "b"));
  EXPECT_EQ(a.storage, b.storage);
  EXPECT_EQ(a.offset_elems, 3);
  EXPECT_EQ(row_major_bytes(a), to_bytes(std::string(8, '\1') + std::string(4, '\2')));
}

// A big-endian writer swaps typed elements, but treats those of an untyped storage as bytes.
TEST(TorchLegacy, ForeignUntypedElementsAreSwappedAndKept) {
  Parts parts;
  as_untyped(parts, "uint64");
  parts.info = machine(false);
  parts.data = std::string("\0\0\0\0\0\0\1\2", 8) + std::string(16, '\0');
  const Bytes bytes = parts.file();
  const TorchLegacy legacy = read_torch_legacy(MappedFile::from_bytes(bytes));
  EXPECT_EQ(row_major_bytes(*tensor_of(legacy, pickle::find(legacy.root, "a"))),
            testing::raw<uint64_t>({0x0102, 0, 0}));
  EXPECT_EQ(rebuild_torch_legacy(legacy), bytes);
}

TEST(TorchLegacy, AnEditedStorageIsWrittenWithItsNewCount) {
  Parts parts;
  TorchLegacy legacy = read_torch_legacy(MappedFile::from_bytes(parts.file()));
  const Bytes eight(32, std::byte{5});
  legacy.records[0].bytes = eight;
  for (const auto& [name, node] : legacy.root->pairs)
    node->items[1]->items[0]->items[0]->items[4] = integer(8);
  const TorchLegacy again = read_torch_legacy(MappedFile::from_bytes(rebuild_torch_legacy(legacy)));
  EXPECT_EQ(again.storages[0]->bytes.size(), 32u);
}

// The first matching package in order of priority claims a tag (torch/serialization.py, register_package).
TEST(Locations, ArePackagesInOrderOfPriority) {
  const auto device = [](std::string_view tag, std::vector<std::string> allow = {}) {
    return device_of_location(tag, allow).value_or("nobody");
  };
  EXPECT_EQ(device("cpu"), "cpu");
  EXPECT_EQ(device("cuda"), "cuda");
  EXPECT_EQ(device("cuda:1"), "cuda");
  EXPECT_EQ(device("meta"), "meta");
  for (const char* tag : {"", "cpu:0", "cudax", "cuda:", "cuda:x", "cuda:-1", "meta:0", "Cuda", "cuda:1:2"})
    EXPECT_EQ(device(tag), "nobody") << tag;
  EXPECT_EQ(device("tpu:1", {"tpu"}), "tpu");
  EXPECT_EQ(device("cuda:1", {"cuda:1"}), "cuda") << "torch's own come first";
  EXPECT_EQ(device("tpux", {"tpu"}), "nobody");
}

}  // namespace
}  // namespace qcts
