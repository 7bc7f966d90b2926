// SPDX-License-Identifier: BSD-3-Clause
// Attributes that no class has, on a tensor of every class in the goldens, of the first generation too: the
// file is read, they are kept, and the weight stays the same. test_further_attributes.py sets attributes of
// every kind in torch itself.
#include <fstream>
#include <set>

#include <unistd.h>

#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "reference/dialects/checkpoint.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/zip.h"
#include "suites/base/paths.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

// Gives two attributes to each tensor that is pickled with its __dict__.
void add_attributes(const pickle::Ref& root) {
  pickle::for_each_node(root, [](const pickle::Ref& node) {
    if (!pickle::is_call(node, "torch._tensor", "_rebuild_from_type_v2")) return;
    pickle::Ref state = node->items[1]->items.at(3);
    if (state->kind == pickle::Kind::tuple) state = state->items.at(0);  // a __dict__ and slots
    state->pairs.emplace_back(pickle::string("_is_hf_initialized"), pickle::boolean(true));
    state->pairs.emplace_back(pickle::string("note"), pickle::list({pickle::integer(7)}));
  });
}

bool is_subclass(const NamedTensor& tensor) {
  return !is_plain(tensor) && tensor.type != "Tensor" && tensor.type != "Parameter";
}

// Returns the classes of the tensors that are pickled with their __dict__.
std::set<std::string> classes_of(const Checkpoint& checkpoint) {
  std::set<std::string> classes;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (is_subclass(tensor)) classes.insert(tensor.type);
  return classes;
}

void expect_same_weight(const NamedTensor& want, const NamedTensor& got) {
  EXPECT_EQ(want.name, got.name);
  EXPECT_EQ(want.scheme, got.scheme);
  EXPECT_EQ(want.shape, got.shape);
  ASSERT_EQ(want.payload.size(), got.payload.size());
  for (size_t i = 0; i < want.payload.size(); ++i)
    EXPECT_EQ(row_major_bytes(want.payload[i].tensor), row_major_bytes(got.payload[i].tensor));
  for (const auto& [key, value] : want.attributes.items()) EXPECT_EQ(got.attributes[key], value) << key;
}

TEST(FurtherAttributes, AreKeptOnEveryClassOfTheGoldens) {
  const fs::path path = fs::path(::testing::TempDir()) / ("attributes_" + std::to_string(::getpid()) + ".pt");
  std::set<std::string> seen;
  for (const Golden& golden : load_fixtures(fixtures_folder(), Files::known).goldens) {
    if (!golden.allow.empty() || !fs::is_regular_file(golden.file)) continue;
    const Checkpoint want = open_checkpoint(golden.file);
    if (want.zips.size() != 1 || want.script || want.dialect == "tinyq") continue;
    std::set<std::string> fresh = classes_of(want);
    for (const std::string& known : seen) fresh.erase(known);
    if (fresh.empty()) continue;
    const EditedZip edited = replace_tensors(*want.zips[0], {});
    add_attributes(edited.root);
    const std::vector<std::byte> bytes = write_torch_zip("archive", edited.root, edited.storages);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    SCOPED_TRACE(golden.id);
    const Checkpoint got = open_checkpoint(path);
    EXPECT_TRUE(got.findings.empty());
    ASSERT_EQ(want.tensors.size(), got.tensors.size());
    for (size_t i = 0; i < want.tensors.size(); ++i) {
      expect_same_weight(want.tensors[i], got.tensors[i]);
      if (!is_subclass(want.tensors[i])) continue;
      // A class without a schema has every attribute under its own name.
      const nlohmann::ordered_json& attributes = got.tensors[i].attributes;
      EXPECT_TRUE(attributes.contains("state.note") || attributes.contains("note")) << want.tensors[i].type;
    }
    seen.merge(fresh);
  }
  fs::remove(path);
  EXPECT_TRUE(seen.contains("AffineQuantizedTensor") && seen.contains("Int8Tensor")) << "old and new ones";
  EXPECT_GT(seen.size(), 15u);
}

}  // namespace
}  // namespace qcts
