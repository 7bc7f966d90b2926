// SPDX-License-Identifier: BSD-3-Clause
// Protects: each kind of value in an object graph is compared and reported by path with both values; a
// different spelling of the same value is equal, and reported as spelling.
#include "reference/comparison/graph.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

namespace qcts {
namespace {

using pickle::Ref;

Tensor float_tensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_tensor(DType::float32, std::move(shape), std::move(bytes));
}

Ref object_of(std::vector<std::pair<std::string, Ref>> entries) {
  Ref node = pickle::dict();
  for (auto& [key, value] : entries) node->pairs.emplace_back(pickle::string(key), value);
  return node;
}

TorchObject holding(const Ref& root, std::vector<std::shared_ptr<const Storage>> storages = {}) {
  TorchObject object;
  object.root = root;
  object.storages = std::move(storages);
  for (size_t i = 0; i < object.storages.size(); ++i) {
    object.storage_index.emplace(Text(std::to_string(i)), i);
    object.storage_dtypes.emplace_back(DType::float32);
  }
  return object;
}

ContentFindings found(const TorchObject& a, const TorchObject& b) {
  ContentFindings out;
  const ElementPlace place = [](const Tensor&, uint64_t index) { return "element " + std::to_string(index); };
  compare_graphs({&a}, {&b}, "", place, out);
  return out;
}

std::string words(const ContentDifferences& differences) {
  std::string text;
  for (const ContentDifference& difference : differences.kept())
    text += difference.where() + ": " + difference.a + " | " + difference.b + "\n";
  return text;
}

std::string differences(const Ref& a, const Ref& b) { return words(found(holding(a), holding(b)).different); }

struct ValuePair {
  const char* name;
  Ref a, b;
  const char* where;  // below "x"
};
void PrintTo(const ValuePair& pair, std::ostream* out) { *out << pair.name; }

class GraphValues : public testing::TestWithParam<ValuePair> {};

TEST_P(GraphValues, DifferByPathWithBothValues) {
  const ValuePair& pair = GetParam();
  const auto at_x = [](const Ref& value) { return object_of({{"x", value}}); };
  EXPECT_EQ(differences(at_x(pair.a), at_x(pair.a)), "");
  EXPECT_EQ(differences(at_x(pair.a), at_x(pair.b)), std::string("x") + pair.where + "\n");
}

Ref bytes_node(const char* text) {
  Ref node = pickle::make_node(pickle::Kind::bytes);
  node->text = text;
  return node;
}
Ref set_node(pickle::Refs members) {
  Ref node = pickle::make_node(pickle::Kind::set);
  node->items = std::move(members);
  return node;
}
Ref instance(const char* name, int64_t number, Ref attribute) {
  Ref node = pickle::call(pickle::global("acme", name), {pickle::integer(number)});
  node->state = object_of({{"rate", std::move(attribute)}});
  return node;
}
Ref ordered(const char* key, int64_t number) {
  Ref node = pickle::call(pickle::global("collections", "OrderedDict"), {});
  node->pairs = {{pickle::string("k"), pickle::integer(1)}};
  node->state = object_of({{"_metadata", object_of({{key, pickle::integer(number)}})}});
  return node;
}

INSTANTIATE_TEST_SUITE_P(
    Graph, GraphValues,
    testing::Values(ValuePair{"integer", pickle::integer(1), pickle::integer(2), ": 1 | 2"},
                    ValuePair{"real", pickle::real(0.1), pickle::real(0.25), ": 0.1 | 0.25"},
                    ValuePair{"zero", pickle::real(0.0), pickle::real(-0.0), ": 0.0 | -0.0"},
                    ValuePair{"nan", pickle::real(std::numeric_limits<double>::quiet_NaN()),
                              pickle::real(std::bit_cast<double>(UINT64_C(0x7ff8000000000001))),
                              ": nan (0x7ff8000000000000) | nan (0x7ff8000000000001)"},
                    ValuePair{"kind", pickle::integer(1), pickle::real(1), ": 1 | 1.0"},
                    ValuePair{"flag", pickle::boolean(true), pickle::boolean(false), ": True | False"},
                    ValuePair{"flag_and_number", pickle::boolean(true), pickle::integer(1), ": True | 1"},
                    ValuePair{"none", pickle::none(), pickle::boolean(false), ": None | False"},
                    ValuePair{"string", pickle::string("a"), pickle::string("ab"), R"(: "a" | "ab")"},
                    ValuePair{"bytes", bytes_node("ab"), bytes_node("ac"),
                              ": 1 bytes 62, from byte 1 | 1 bytes 63, from byte 1"},
                    ValuePair{"list_and_tuple", pickle::list({pickle::none()}),
                              pickle::tuple({pickle::none()}), ": type: list | tuple"},
                    ValuePair{"item", pickle::list({pickle::none(), pickle::integer(3)}),
                              pickle::list({pickle::none(), pickle::integer(4)}), "[1]: 3 | 4"},
                    ValuePair{"length", pickle::list({pickle::none()}),
                              pickle::list({pickle::none(), pickle::none()}), ": length: 1 | 2"},
                    ValuePair{"member", set_node({pickle::integer(1)}),
                              set_node({pickle::integer(1), pickle::integer(2)}), ": member: absent | 2"},
                    ValuePair{"function", pickle::global("torch", "float16"),
                              pickle::global("torch", "bfloat16"), ": torch.float16 | torch.bfloat16"},
                    ValuePair{"argument", instance("Plan", 1, pickle::none()),
                              instance("Plan", 2, pickle::none()), ".arguments[0]: 1 | 2"},
                    ValuePair{"attribute", instance("Plan", 1, pickle::real(0.5)),
                              instance("Plan", 1, pickle::real(1.5)), ".rate: 0.5 | 1.5"},
                    ValuePair{"class", instance("Plan", 1, pickle::none()),
                              instance("Map", 1, pickle::none()), ": class: acme.Plan | acme.Map"},
                    ValuePair{"metadata", ordered("version", 1), ordered("version", 2),
                              "._metadata.version: 1 | 2"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Graph, KeysAreComparedByKindAndOrder) {
  const Ref one = pickle::dict(), flag = pickle::dict();
  one->pairs = {{pickle::integer(1), pickle::none()}};
  flag->pairs = {{pickle::boolean(true), pickle::none()}};
  EXPECT_EQ(differences(one, flag), "[1]: None | absent\n[True]: absent | None\n");
  const Ref ab = object_of({{"a", pickle::none()}, {"b", pickle::none()}}),
            ba = object_of({{"b", pickle::none()}, {"a", pickle::none()}});
  EXPECT_EQ(differences(ab, ba), "order, place 0: \"a\" | \"b\"\n");
}

TEST(Graph, OneObjectUnderTwoNamesIsNotTwo) {
  const auto list = [] { return pickle::list({pickle::integer(1)}); };
  const Ref shared = list();
  EXPECT_EQ(differences(object_of({{"a", shared}, {"b", shared}}), object_of({{"a", list()}, {"b", list()}})),
            "b: identity: the object a | a separate object\n");
  // Nobody can tell two equal immutable tuples apart.
  const Ref tuple = pickle::tuple({pickle::integer(1)});
  EXPECT_EQ(differences(pickle::list({tuple, tuple}), pickle::list({pickle::tuple({pickle::integer(1)}),
                                                                    pickle::tuple({pickle::integer(1)})})),
            "");
}

// Graphs of 2^60 paths each are walked by pairs of nodes.
TEST(Graph, SharedNodesAreComparedOnce) {
  Ref a = pickle::list({pickle::integer(1)}), b = pickle::list({pickle::integer(2)});
  for (int i = 0; i < 60; ++i) a = pickle::list({a, a}), b = pickle::list({b, b});
  EXPECT_EQ(found(holding(a), holding(b)).different.count(), 1u);
}

// x, four floats, under two names.
struct TwoViews {
  Tensor whole = float_tensor({4}, {1, 2, 3, 4});
  Tensor half = whole;
  Ref root;
  explicit TwoViews(bool tied) {
    half.shape = {2}, half.offset_elems = 2;
    root = object_of({{"whole", tensor_node(whole, "0")}, {"half", tensor_node(half, tied ? "0" : "1")}});
  }
};

std::string tensor_differences(const Tensor& a, const Ref& a_node, const Tensor& b, const Ref& b_node) {
  return words(found(holding(a_node, {a.storage}), holding(b_node, {b.storage})).different);
}

TEST(GraphTensors, TiesAreWhoSharesAStorageWithWhom) {
  const TwoViews tied(true), untied(false);
  const auto storage = tied.whole.storage, other = float_tensor({4}, {1, 2, 3, 4}).storage;
  EXPECT_EQ(words(found(holding(tied.root, {storage}), holding(untied.root, {storage, other})).different),
            "half: storage: that of whole | its own\n");
}

TEST(GraphTensors, EveryFieldIsCompared) {
  const Tensor x = float_tensor({2, 2}, {1, 2, 3, 4});
  const auto against = [&](const Tensor& other, const Ref& node) {
    return tensor_differences(x, tensor_node(x, "0"), other, node);
  };
  EXPECT_EQ(against(x, tensor_node(x, "0")), "");
  EXPECT_EQ(against(x, tensor_node(x, "0", true)), "requires_grad: False | True\n");
  Tensor other = x;
  other.shape = {4}, other.stride = {1};
  EXPECT_EQ(against(other, tensor_node(other, "0")), "shape: [2,2] | [4]\nstride: [2,1] | [1]\n");
  other = float_tensor({2, 2}, {1, 2, 3, -0.0f});
  EXPECT_EQ(against(other, tensor_node(other, "0")), "element 3: 0x40800000 (4) | 0x80000000 (-0)\n");
  const auto moved = std::make_shared<Storage>(*x.storage);
  moved->location = "cuda:1";
  other = x, other.storage = moved;
  EXPECT_EQ(against(other, tensor_node(other, "0")), "device: cpu | cuda:1\n");
  other = float_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  other.shape = {2, 2}, other.stride = {2, 1};
  EXPECT_EQ(against(other, tensor_node(other, "0")), "bytes of its storage: 16 | 24\n");
}

TEST(GraphTensors, BytesThatNoTensorSeesAreCompared) {
  Tensor a = float_tensor({3}, {1, 2, 3}), b = float_tensor({3}, {1, 2, 9});
  a.shape = b.shape = {2};
  EXPECT_EQ(tensor_differences(a, tensor_node(a, "0"), b, tensor_node(b, "0")),
            "byte 10 of its storage, which no tensor sees: 0x40 | 0x10\n");
}

TEST(GraphTensors, ConjAndNegAreMarksOfTheTensor) {
  const Tensor x = make_tensor(DType::complex64, {1}, std::vector<std::byte>(8));
  const Ref marked = tensor_node(x, "0");
  marked->items[1]->items.push_back(object_of({{"conj", pickle::boolean(true)}}));
  EXPECT_EQ(tensor_differences(x, tensor_node(x, "0"), x, marked), "conj: False | True\n");
}

TEST(GraphTensors, AParameterIsNoTensorAndHasItsOwnFlag) {
  const Tensor x = float_tensor({2}, {1, 2});
  const auto parameter = [&](bool flag) {
    return pickle::call(pickle::global("torch._utils", "_rebuild_parameter"),
                        {tensor_node(x, "0"), pickle::boolean(flag),
                         pickle::call(pickle::global("collections", "OrderedDict"), {})});
  };
  EXPECT_EQ(tensor_differences(x, parameter(true), x, parameter(false)), "requires_grad: True | False\n");
  EXPECT_NE(tensor_differences(x, parameter(true), x, tensor_node(x, "0")).find("type: Parameter | Tensor"),
            std::string::npos);
}

TEST(Spelling, TheSameByAnotherPathIsEqualAndNamed) {
  const std::pair<Ref, Ref> pairs[] = {
      {pickle::global("__builtin__", "set"), pickle::global("builtins", "set")},
      {pickle::global("numpy.core.multiarray", "scalar"), pickle::global("numpy._core.multiarray", "scalar")},
      {pickle::global("torchao.quantization", "Float8Tensor"),
       pickle::global("torchao.quantization.quantize_.workflows.float8.float8_tensor", "Float8Tensor")},
      {pickle::global("__torch__.net.___torch_mangle_3", "Net"), pickle::global("__torch__.net", "Net")}};
  for (const auto& [a, b] : pairs) {
    const ContentFindings out = found(holding(object_of({{"f", a}})), holding(object_of({{"f", b}})));
    EXPECT_TRUE(out.different.empty()) << words(out.different);
    ASSERT_EQ(out.spelling.count(), 1u) << a->text;
    EXPECT_EQ(out.spelling.kept()[0].path, "f");
  }
  EXPECT_NE(differences(pickle::global("acme.one", "f"), pickle::global("acme.two", "f")), "");
}

TEST(Spelling, BytesAndSetsWhateverCallMakesThem) {
  const Ref encoded = pickle::call(pickle::global("_codecs", "encode"),
                                   {pickle::string("a\xc3\xbf"), pickle::string("latin1")});
  EXPECT_EQ(differences(encoded, bytes_node("a\xff")), "");
  const Ref built = pickle::call(pickle::global("builtins", "set"),
                                 {pickle::list({pickle::integer(2), pickle::integer(1)})});
  EXPECT_EQ(differences(built, set_node({pickle::integer(1), pickle::integer(2)})), "");
}

}  // namespace
}  // namespace qcts
