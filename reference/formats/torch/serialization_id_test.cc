// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/torch/serialization_id.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

#include "reference/formats/io/byte_io.h"

namespace qcts {
namespace {

// The id in torch.save({'x': torch.ones(2)}, BytesIO()), 2.13; every file with one storage has these names.
TEST(SerializationId, OneStorage) {
  std::vector<IdRecord> records;
  for (const char* name :
       {"data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "version"}) {
    records.push_back({name, {}, 0});
  }
  EXPECT_EQ(serialization_id(records).substr(0, 20), "15728199511854643026");
  EXPECT_EQ(serialization_id(records).substr(20), "00000000000000000000");
}

#ifdef __GLIBCXX__
// Compares the model with libstdc++ itself, across every growth up to 21,000 names. Only this test may use
// the real set: files must not depend on the library that this program is built with.
TEST(SerializationId, OrderIsThatOfLibstdcxx) {
  std::unordered_set<std::string> names;
  std::vector<std::string> inserted;
  std::vector<uint64_t> hashes;
  const auto compare = [&] {
    const auto order = libstdcxx_set_order(hashes);
    ASSERT_EQ(order.size(), names.size());
    size_t i = 0;
    for (const std::string& name : names) ASSERT_EQ(inserted[order[i++]], name) << "of " << names.size();
  };
  for (int i = 0; i < 21000; ++i) {
    const std::string name = i % 3 == 0 ? "data/" + std::to_string(i)
                                        : std::string(static_cast<size_t>(i % 29), 'a') + std::to_string(i);
    ASSERT_EQ(libstdcxx_hash(as_bytes(name)), std::hash<std::string>()(name)) << name;
    names.insert(name);
    inserted.push_back(name);
    hashes.push_back(libstdcxx_hash(as_bytes(name)));
    if (i < 300 || i % 997 == 0) compare();
  }
  compare();
}
#endif

}  // namespace
}  // namespace qcts
