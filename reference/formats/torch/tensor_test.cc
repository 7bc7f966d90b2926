// SPDX-License-Identifier: BSD-3-Clause
// Tests inconsistent storages and tensors. Every case writes a well-formed archive around one bad graph; rows
// (P19 ...) are those of the malformed corpus.
#include <gtest/gtest.h>

#include <functional>

#include "reference/formats/testing.h"
#include "reference/formats/torch/zip.h"

namespace qcts {
namespace {

using pickle::boolean;
using pickle::call;
using pickle::global;
using pickle::integer;
using pickle::Ref;
using pickle::string;
using pickle::tuple;
using testing::outcome;

Ref dims(const std::vector<int64_t>& values) {
  pickle::Refs items;
  for (int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}

// The fields of one tensor in the pickle; each case changes one.
struct TensorFields {
  Ref kind = string("storage");
  Ref cls = global("torch", "FloatStorage");
  Ref key = string("0");
  Ref location = string("cpu");
  Ref numel = integer(6);
  Ref offset = integer(0);
  Ref size = dims({2, 3});
  Ref stride = dims({3, 1});
  Ref requires_grad = boolean(false);
  Ref hooks = call(global("collections", "OrderedDict"), {});
  pickle::Refs more;
  std::string function = "_rebuild_tensor_v2";

  Ref id() const { return pickle::persistent(tuple({kind, cls, key, location, numel})); }
  Ref node() const {
    pickle::Refs args = {id(), offset, size, stride, requires_grad, hooks};
    args.insert(args.end(), more.begin(), more.end());
    return call(global("torch._utils", function), args);
  }
};

// Reads an archive of `root` with two storages of 24 bytes.
std::string read_outcome(const Ref& root, const TorchZipOptions& options = {}) {
  const Tensor tensor = testing::float_tensor({6}, {0, 1, 2, 3, 4, 5});
  const auto bytes = write_torch_zip("archive", root, {tensor.storage, tensor.storage});
  return outcome([&] { read_torch_zip(MappedFile::from_bytes(bytes), options); });
}

// torch.save numbers storages in the order of the pickle; other writers need not.
TEST(TorchZip, FindsStoragesInWhateverOrderThePickleNamesThem) {
  const std::vector<Tensor> tensors = {testing::float_tensor({2}, {0, 1}), testing::float_tensor({2}, {2, 3}),
                                       testing::float_tensor({2}, {4, 5}),
                                       testing::float_tensor({2}, {6, 7})};
  std::vector<std::shared_ptr<const Storage>> storages;
  for (const Tensor& tensor : tensors) storages.push_back(tensor.storage);
  const std::vector<std::vector<size_t>> orders = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 0, 1, 3, 2}};
  for (const auto& order : orders) {
    pickle::Refs nodes;
    for (const size_t i : order) nodes.push_back(tensor_node(tensors[i], std::to_string(i)));
    const TorchZip zip =
        read_torch_zip(MappedFile::from_bytes(write_torch_zip("archive", pickle::list(nodes), storages)));
    for (size_t place = 0; place < order.size(); ++place)
      EXPECT_EQ(row_major_bytes(*tensor_of(zip, zip.root->items[place])),
                row_major_bytes(tensors[order[place]]));
  }
}

struct TensorCase {
  std::string name, required;
  std::function<void(TensorFields&)> change;
};
void PrintTo(const TensorCase& c, std::ostream* out) { *out << c.name; }

void as_v3(TensorFields& s, const char* dtype, int64_t bytes) {
  s.function = "_rebuild_tensor_v3";
  s.cls = global("torch.storage", "UntypedStorage");
  s.numel = integer(bytes);
  s.more = {global("torch", dtype)};
}

// Sets size or stride.
std::function<void(TensorFields&)> shaped(Ref TensorFields::*part, std::vector<int64_t> values) {
  return [=](TensorFields& s) { s.*part = dims(values); };
}

const std::vector<TensorCase> kTensorCases = {
    {"intact", "accepted", [](TensorFields&) {}},
    {"p19_other_kind", "StorageRef", [](TensorFields& s) { s.kind = string("module"); }},
    {"p19_wrong_class", "StorageRef", [](TensorFields& s) { s.cls = global("torch", "float32"); }},
    {"p19_class_is_text", "StorageRef", [](TensorFields& s) { s.cls = string("FloatStorage"); }},
    {"p20_negative_count", "Overflow", [](TensorFields& s) { s.numel = integer(-1); }},
    {"p20_count_2_62", "Overflow", [](TensorFields& s) { s.numel = integer(int64_t{1} << 62); }},
    {"p20_float_count", "Overflow", [](TensorFields& s) { s.numel = pickle::real(6); }},
    {"p21_key_is_a_path", "StorageRef", [](TensorFields& s) { s.key = string("../../version"); }},
    {"p21_key_with_parent", "StorageRef", [](TensorFields& s) { s.key = string("0/../0"); }},
    {"p21_key_without_record", "StorageRef", [](TensorFields& s) { s.key = string("7"); }},
    {"p21_key_is_a_number", "StorageRef", [](TensorFields& s) { s.key = integer(0); }},
    {"p22_cuda", "accepted", [](TensorFields& s) { s.location = string("cuda:0"); }},
    {"p22_meta", "accepted", [](TensorFields& s) { s.location = string("meta"); }},
    {"p22_privateuse", "accepted", [](TensorFields& s) { s.location = string("privateuseone:3"); }},
    {"p22_bogus", "StorageRef", [](TensorFields& s) { s.location = string("bogus"); }},
    {"p22_bad_index", "StorageRef", [](TensorFields& s) { s.location = string("cuda:x"); }},
    {"z35_count_beyond_record", "StorageRef", [](TensorFields& s) { s.numel = integer(100); }},
    {"p24_offset_beyond", "TensorBounds", [](TensorFields& s) { s.offset = integer(1); }},
    {"p24_size_beyond", "TensorBounds", shaped(&TensorFields::size, {3, 3})},
    {"p24_stride_beyond", "TensorBounds", shaped(&TensorFields::stride, {4, 1})},
    {"p24_negative_offset", "TensorBounds", [](TensorFields& s) { s.offset = integer(-1); }},
    {"p24_negative_stride", "TensorBounds", shaped(&TensorFields::stride, {-3, 1})},
    {"p24_negative_size", "Overflow", shaped(&TensorFields::size, {-2, 3})},
    {"p24_ranks_differ", "TensorBounds", [](TensorFields& s) { s.stride = dims({1}); }},
    {"p24_product_wraps", "Overflow", shaped(&TensorFields::size, {int64_t{1} << 32, int64_t{1} << 32})},
    {"p24_index_wraps", "TensorBounds",
     [](TensorFields& s) {
       s.size = dims({3, 3});
       s.stride = dims({INT64_MAX, INT64_MAX});
     }},
    {"p25_expanded", "accepted",
     [](TensorFields& s) {
       s.size = dims({int64_t{1} << 40});
       s.stride = dims({0});
     }},
    {"zero_size_at_the_end", "accepted",
     [](TensorFields& s) {
       s.size = dims({0, 3});
       s.offset = integer(6);
     }},
    {"zero_size_beyond_the_end", "accepted",
     [](TensorFields& s) {
       s.size = dims({0, 3});
       s.offset = integer(7);
     }},
    {"p26_64_dims", "accepted",
     [](TensorFields& s) {
       s.size = dims(std::vector<int64_t>(64, 1));
       s.stride = s.size;
     }},
    {"p26_70_dims", "LimitExceeded",
     [](TensorFields& s) {
       s.size = dims(std::vector<int64_t>(70, 1));
       s.stride = s.size;
     }},
    {"p27_float_gradient", "accepted", [](TensorFields& s) { s.requires_grad = boolean(true); }},
    {"p27_integer_gradient", "PickleType",
     [](TensorFields& s) {
       s.cls = global("torch", "IntStorage");
       s.requires_grad = boolean(true);
     }},
    {"p27_gradient_is_a_number", "PickleType", [](TensorFields& s) { s.requires_grad = integer(1); }},
    {"p27_hooks", "PickleType", [](TensorFields& s) { s.hooks = integer(3); }},
    {"p27_metadata", "PickleType",
     [](TensorFields& s) {
       Ref metadata = pickle::dict();
       metadata->pairs = {{string("evil"), integer(1)}};
       s.more = {metadata};
     }},
    {"p27_conjugated", "accepted",
     [](TensorFields& s) {
       Ref metadata = pickle::dict();
       metadata->pairs = {{string("conj"), boolean(true)}};
       s.more = {metadata};
     }},
    {"size_is_a_list", "PickleType", [](TensorFields& s) { s.size = pickle::list({integer(2)}); }},
    {"size_holds_text", "PickleType", [](TensorFields& s) { s.size = tuple({string("2")}); }},
    {"size_as_torch_size", "accepted",
     [](TensorFields& s) {
       s.size = call(global("torch", "Size"), {dims({2, 3})});
     }},
    {"p28_v3", "accepted", [](TensorFields& s) { as_v3(s, "uint32", 24); }},
    {"p28_v3_too_wide", "TensorBounds", [](TensorFields& s) { as_v3(s, "uint64", 24); }},
    {"p28_v3_without_dtype", "Dtype", [](TensorFields& s) { as_v3(s, "per_tensor_affine", 24); }},
    {"p28_v3_typed_storage", "Dtype",
     [](TensorFields& s) {
       as_v3(s, "uint32", 6);
       s.cls = global("torch", "FloatStorage");
     }},
    {"p28_v2_untyped_storage", "Dtype",
     [](TensorFields& s) {
       s.cls = global("torch.storage", "UntypedStorage");
       s.numel = integer(24);
     }},
};

class BadTensor : public ::testing::TestWithParam<TensorCase> {};

// Arguments are also checked where a function is only passed by name.
TEST_P(BadTensor, HasTheRequiredOutcome) {
  TensorFields fields;
  GetParam().change(fields);
  EXPECT_EQ(read_outcome(fields.node()), GetParam().required);
  const Ref tensor = fields.node();
  const Ref typed = call(global("torch._tensor", "_rebuild_from_type_v2"),
                         {tensor->items[0], global("torch", "Tensor"), tensor->items[1], pickle::dict()});
  EXPECT_EQ(read_outcome(typed), GetParam().required) << "through _rebuild_from_type_v2";
  const Ref parameter = call(global("torch._utils", "_rebuild_parameter"),
                             {tensor, boolean(false), call(global("collections", "OrderedDict"), {})});
  EXPECT_EQ(read_outcome(parameter), GetParam().required) << "inside a parameter";
}

INSTANTIATE_TEST_SUITE_P(Corpus, BadTensor, ::testing::ValuesIn(kTensorCases),
                         [](const ::testing::TestParamInfo<TensorCase>& info) { return info.param.name; });

TEST(BadStorage, PersistentIdsOfOtherShapes) {
  for (const Ref& id : {integer(3), string("storage"), tuple({}), tuple({string("storage")})}) {
    EXPECT_EQ(read_outcome(pickle::list({pickle::persistent(id)})), "StorageRef");
  }
}

TEST(BadStorage, OneKeyHasOneTypeAndOneDevice) {
  TensorFields first, second;
  second.cls = global("torch", "IntStorage");
  EXPECT_EQ(read_outcome(pickle::list({first.node(), second.node()})), "StorageRef");
  second = {};
  second.location = string("cuda:0");
  EXPECT_EQ(read_outcome(pickle::list({first.node(), second.node()})), "StorageRef");
  second = {};
  second.numel = integer(5);
  EXPECT_EQ(read_outcome(pickle::list({first.node(), second.node()})), "StorageRef");
  second = {};
  second.cls = global("torch.storage", "UntypedStorage");
  second.numel = integer(24);
  EXPECT_EQ(read_outcome(pickle::list({first.node(), second.id()})), "accepted")
      << "typed and untyped may share";
}

TEST(BadStorage, UnknownDevicesMayBeAllowed) {
  TensorFields fields;
  fields.location = string("bogus:1");
  TorchZipOptions options;
  options.allow_locations = {"bogus:1"};
  EXPECT_EQ(read_outcome(fields.node(), options), "accepted");
}

TEST(BadStorage, Z31OrderOfKeysIsFree) {
  TensorFields first, second;
  first.key = string("1");
  EXPECT_EQ(read_outcome(pickle::list({first.node(), second.node()})), "accepted");
}

TEST(Parameter, HooksAndStateHaveTheirTypes) {
  const Ref tensor = TensorFields().node(), hooks = call(global("collections", "OrderedDict"), {});
  const Ref parameter = global("torch._utils", "_rebuild_parameter");
  EXPECT_EQ(read_outcome(call(parameter, {tensor, boolean(true), hooks})), "accepted");
  EXPECT_EQ(read_outcome(call(parameter, {tensor, boolean(true), integer(3)})), "PickleType");
  EXPECT_EQ(read_outcome(call(parameter, {integer(1), boolean(true), hooks})), "PickleType");
  const Ref typed = global("torch._tensor", "_rebuild_from_type_v2");
  const auto from_type = [&](Ref function, Ref cls, Ref state) {
    return read_outcome(call(typed, {function, cls, tensor->items[1], state}));
  };
  const Ref cls = global("torch", "Tensor"), function = tensor->items[0];
  EXPECT_EQ(from_type(function, cls, pickle::dict()), "accepted");
  EXPECT_EQ(from_type(function, cls, integer(1)), "PickleType");
  EXPECT_EQ(from_type(function, integer(1), pickle::dict()), "PickleType");
  EXPECT_EQ(from_type(typed, cls, pickle::dict()), "PickleType");
  EXPECT_EQ(from_type(parameter, cls, pickle::dict()), "PickleType") << "six arguments for three";
}

TEST(BadTensorCount, IsLimited) {
  TorchZipOptions options;
  options.limits.tensors = 1;
  EXPECT_EQ(read_outcome(pickle::list({TensorFields().node(), TensorFields().node()}), options),
            "LimitExceeded");
}

// An expanded view is accepted; materialising it is refused.
TEST(ExpandedTensor, IsNotMaterialisedBeyondTheLimit) {
  Tensor tensor = testing::float_tensor({1}, {1});
  tensor.shape = {int64_t{1} << 40};
  tensor.stride = {0};
  EXPECT_EQ(outcome([&] { row_major_bytes(tensor); }), "LimitExceeded");
  tensor.shape = {1000};
  EXPECT_EQ(row_major_bytes(tensor).size(), 4000u);
}

Ref long_tensor(const char* key, std::vector<int64_t> shape) {
  TensorFields fields;
  fields.cls = global("torch", "LongStorage");
  fields.key = string(key);
  fields.numel = integer(4);
  fields.stride = dims(contiguous_stride(shape));
  fields.size = dims(shape);
  return fields.node();
}

std::string special_outcome(const std::string& function, const pickle::Refs& args,
                            const std::vector<int64_t>& values) {
  const Tensor numbers = make_tensor(DType::int64, {4}, testing::raw(values));
  const auto bytes = write_torch_zip("archive", call(global("torch._utils", function), args),
                                     {numbers.storage, numbers.storage});
  return outcome([&] { read_torch_zip(MappedFile::from_bytes(bytes)); });
}

// The indices [[1, 0], [0, 1]] or, in the bad case, one of 2^30 in a 2x2 matrix.
TEST(SparseTensor, IndicesLieInside) {
  const pickle::Refs args = {call(global("torch.serialization", "_get_layout"), {string("torch.sparse_coo")}),
                             tuple({long_tensor("0", {2, 2}), long_tensor("1", {2}), dims({2, 2})})};
  EXPECT_EQ(special_outcome("_rebuild_sparse_tensor", args, {1, 0, 0, 1}), "accepted");
  EXPECT_EQ(special_outcome("_rebuild_sparse_tensor", args, {1, 0, 0, int64_t{1} << 30}), "TensorBounds");
  EXPECT_EQ(special_outcome("_rebuild_sparse_tensor", args, {1, -1, 0, 1}), "TensorBounds");
}

TEST(SparseTensor, CompressedIndicesAreOrdered) {
  const auto args = [](int64_t columns) {
    return pickle::Refs{
        call(global("torch.serialization", "_get_layout"), {string("torch.sparse_csr")}),
        tuple({long_tensor("0", {4}), long_tensor("1", {3}), long_tensor("1", {3}), dims({3, columns})})};
  };
  EXPECT_EQ(special_outcome("_rebuild_sparse_tensor", args(4), {0, 1, 2, 3}), "accepted");
  EXPECT_EQ(special_outcome("_rebuild_sparse_tensor", args(2), {0, 1, 2, 3}), "TensorBounds")
      << "a column outside";
  EXPECT_EQ(special_outcome("_rebuild_sparse_tensor", args(9), {0, 2, 1, 3}), "TensorBounds")
      << "rows go back";
  EXPECT_EQ(special_outcome("_rebuild_sparse_tensor", args(9), {0, 1, 2, 4}), "TensorBounds")
      << "more than there are";
}

TEST(NestedTensor, ComponentsLieInTheBuffer) {
  const auto args = [] {
    return pickle::Refs{long_tensor("0", {4}), long_tensor("1", {1, 2}), long_tensor("1", {1, 2}),
                        long_tensor("1", {1})};
  };
  EXPECT_EQ(special_outcome("_rebuild_nested_tensor", args(), {1, 1, 0, 0}), "accepted");
  EXPECT_EQ(special_outcome("_rebuild_nested_tensor", args(), {2, 2, 0, 0}), "TensorBounds");
}

TEST(QuantizedTensor, AxisAndScalesFitTheShape) {
  const auto args = [](Ref parameters) {
    TensorFields fields;
    fields.cls = global("torch", "QInt8Storage");
    fields.numel = integer(32);
    return pickle::Refs{fields.id(), integer(0),     dims({2, 3}), dims({3, 1}),
                        parameters,  boolean(false), fields.hooks};
  };
  const Ref scheme = global("torch", "per_channel_affine");
  const auto channel = [&](int64_t count, int64_t axis) {
    return args(tuple({scheme, long_tensor("1", {count}), long_tensor("1", {count}), integer(axis)}));
  };
  EXPECT_EQ(special_outcome("_rebuild_qtensor",
                            args(tuple({global("torch", "per_tensor_affine"), pickle::real(1), integer(0)})),
                            {0, 0, 0, 0}),
            "accepted");
  EXPECT_EQ(special_outcome("_rebuild_qtensor", channel(2, 0), {0, 0, 0, 0}), "accepted");
  EXPECT_EQ(special_outcome("_rebuild_qtensor", channel(2, 1), {0, 0, 0, 0}), "SubclassSchema");
  EXPECT_EQ(special_outcome("_rebuild_qtensor", channel(2, 5), {0, 0, 0, 0}), "SubclassSchema");
  EXPECT_EQ(special_outcome("_rebuild_qtensor", args(tuple({integer(1)})), {0, 0, 0, 0}), "SubclassSchema");
}

}  // namespace
}  // namespace qcts
