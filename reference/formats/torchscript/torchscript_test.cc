// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/torchscript/torchscript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/formats/io/inflate.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/torch/testing.h"
#include "reference/formats/torchscript/internal.h"
#include "reference/formats/zip/directory.h"

namespace qcts {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using testing::outcome;

constexpr const char* kProgram = R"(op_version_set = 1
class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  table : Dict[str, List[int]]
  __annotations__["0"] = __torch__.net.Part
  factor : Final[Tuple[int, str]] = (3, "] = ")
  def forward(self: __torch__.net.Net,
    x: Tensor) -> Tensor:
    no : Tensor = x
    return x
def relu(x: Tensor) -> Tensor:
  y : Tensor
  return x
class Part(Module):
  __parameters__ = []
  __buffers__ = ["count", ]
  count : Tensor
class Side(Enum):
  LEFT = 1
class Shape(Interface):
  def area(self) -> float:
    pass
class Counter:
  n : int
  def __setstate__(self, n: int) -> NoneType:
    return None
)";

ScriptClasses classes_of(std::string_view source) {
  ScriptClasses classes;
  ReadBudget budget;
  read_script_classes(source, "__torch__.net", classes, budget);
  return classes;
}

TEST(ScriptCode, ReadsHeadsAndPassesOverBodies) {
  const ScriptClasses classes = classes_of(kProgram);
  ASSERT_EQ(classes.size(), 5u);
  const ScriptClass& net = classes.at("__torch__.net.Net");
  EXPECT_EQ(net.base, "Module");
  EXPECT_THAT(net.parameters, ElementsAre("weight"));
  EXPECT_THAT(net.methods, ElementsAre("forward"));
  ASSERT_EQ(net.fields.size(), 3u);
  EXPECT_EQ(net.fields[1].type, "Dict[str, List[int]]");
  EXPECT_EQ(net.fields[2].name, "0");
  ASSERT_EQ(net.constants.size(), 1u);
  EXPECT_EQ(net.constants[0].type, "Tuple[int, str]");
  EXPECT_EQ(net.constants[0].value, "(3, \"] = \")");
  EXPECT_THAT(classes.at("__torch__.net.Part").buffers, ElementsAre("count"));
  EXPECT_EQ(classes.at("__torch__.net.Side").constants.at(0).name, "LEFT");
  EXPECT_THAT(classes.at("__torch__.net.Shape").methods, ElementsAre("area"));
  EXPECT_TRUE(classes.at("__torch__.net.Counter").has_method("__setstate__"));
}

// Malformed class heads are refused: reading a head differently from LibTorch would let a bad graph through.
TEST(ScriptCode, RefusesWhatIsNoHead) {
  for (const char* line :
       {"class Net(Module)", "class Net(Module:", "class :", "class A B:", "x = 1", "class N(Module):\n  x",
        "class N(Module):\n  __parameters__ = [\"a\"", "class N(Module):\n  a : Final[int]",
        "class E(Enum):\n  A", "class N:\n  a : int\nclass N:\n  a : int"})
    EXPECT_EQ(outcome([&] { classes_of(line); }), "SubclassSchema") << line;
}

TEST(ScriptCode, MutantsAreReadOrRefused) {
  uint64_t state = 7;
  const auto random = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  int refused = 0;
  constexpr int kMutants = 3000;
  for (int i = 0; i < kMutants; ++i) {
    std::string source = kProgram;
    for (uint64_t steps = 1 + random(4); steps > 0; --steps) {
      const size_t at = random(source.size());
      if (random(3) == 0)
        source.erase(at, 1 + random(12));
      else
        source[at] = static_cast<char>(random(256));
    }
    refused += outcome([&] { classes_of(source); }) != "accepted";
  }
  EXPECT_GT(refused, kMutants / 20);
  EXPECT_LT(refused, kMutants);
}

Bytes golden(const std::string& name) {
  const auto file =
      MappedFile::open(source_path("fixtures/golden/torch_2_13_0/torchscript") / name / "model.pt");
  return {file->bytes().begin(), file->bytes().end()};
}

TorchScript script_of(const Bytes& bytes, CrcPolicy crc = CrcPolicy::verify) {
  TorchZipOptions options;
  options.crc = crc;
  return read_torchscript(MappedFile::from_bytes(bytes), options);
}

TEST(TorchScript, ReadsBothPlacesOfTheOperatorSet) {
  const TorchScript plain = script_of(golden("divide_v3")), dotted = script_of(golden("linspace"));
  EXPECT_EQ(plain.version, 3u);
  EXPECT_EQ(plain.version_record, "version");
  EXPECT_EQ(dotted.version, 8u);
  EXPECT_EQ(dotted.version_record, ".data/version");
}

// data/0 and constants/0 are two storages; views of one record share it.
TEST(TorchScript, KeepsStoragesApartAndShared) {
  const TorchScript captured = script_of(golden("captured"));
  ASSERT_EQ(captured.constants.storages.size(), 2u);
  EXPECT_EQ(captured.constants.storages[0]->key, "constants/0");
  EXPECT_TRUE(captured.program.storages.empty());
  const TorchScript attributes = script_of(golden("attributes"));
  const auto tensor = [&](const char* name) {
    return tensor_of(attributes.program, pickle::find(attributes.program.root->state, name)).value();
  };
  EXPECT_EQ(tensor("base").storage, tensor("turned").storage);
  EXPECT_EQ(tensor("eighth").dtype, DType::float8_e4m3fn);
  EXPECT_EQ(tensor("short").dtype, DType::uint16);
}

TEST(TorchScript, IsKnownByItsRecordsAlone) {
  EXPECT_TRUE(names_torchscript(golden("captured")));
  EXPECT_FALSE(names_torchscript(testing::small_archive()));
  EXPECT_FALSE(names_torchscript(testing::to_bytes("PK\3\4")));
  // torch.save's reader refuses it.
  EXPECT_EQ(outcome([] { read_torch_zip(MappedFile::from_bytes(golden("captured"))); }), "NotArchive");
}

class ScriptMutants : public ::testing::TestWithParam<const char*> {};

TEST_P(ScriptMutants, OnlyRefusedEscapes) {
  const Bytes original = golden(GetParam());
  ASSERT_EQ(outcome([&] { script_of(original, CrcPolicy::skip); }), "accepted");
  uint64_t state = 1;
  int refused = 0;
  constexpr int kMutants = 3000;
  for (int i = 0; i < kMutants; ++i) {
    Bytes bytes = original;
    state = state * 6364136223846793005u + 1442695040888963407u;
    const size_t at = (state >> 33) % bytes.size();
    bytes[at] = static_cast<std::byte>(state >> 20);
    if (i % 16 == 0) bytes.resize(at);
    refused += outcome([&] {
                 const TorchScript script = script_of(bytes, CrcPolicy::skip);
                 for (const TorchZip* zip : {&script.program, &script.constants})
                   pickle::for_each_node(zip->root, [&](const pickle::Ref& node) { tensor_of(*zip, node); });
               }) != "accepted";
  }
  EXPECT_GT(refused, kMutants / 10) << "the mutants do not reach the checks";
  EXPECT_LT(refused, kMutants);
}

INSTANTIATE_TEST_SUITE_P(Goldens, ScriptMutants, ::testing::Values("attributes", "quantized", "captured"),
                         [](const auto& info) { return info.param; });

// "aaaa...": 64 bytes in a fixed block (RFC 1951, section 3.2.6), as zlib writes it.
TEST(Inflate, TakesExactlyWhatIsAnnounced) {
  const Bytes packed = {std::byte{0x4b}, std::byte{0x4c}, std::byte{0xa4},
                        std::byte{0x0c}, std::byte{0},    std::byte{0}};
  EXPECT_EQ(inflate(packed, 64, "x", 0), Bytes(64, std::byte{'a'}));
  for (const uint64_t bytes : {0u, 63u, 65u, 5000u, 1u << 30})
    EXPECT_EQ(outcome([&] { inflate(packed, bytes, "x", 0); }), "ZipStructure") << bytes;
}

}  // namespace
}  // namespace qcts
