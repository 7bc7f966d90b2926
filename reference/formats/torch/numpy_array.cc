// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/torch/numpy_array.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "reference/formats/pickle/graph.h"
#include "reference/formats/pickle/numpy_arrays.h"
#include "reference/formats/torch/tensor.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

struct ElementType {
  std::string_view code;
  DType dtype;
};
constexpr ElementType kElementTypes[] = {
    {"f2", DType::float16},   {"f4", DType::float32},     {"f8", DType::float64}, {"i1", DType::int8},
    {"i2", DType::int16},     {"i4", DType::int32},       {"i8", DType::int64},   {"u1", DType::uint8},
    {"u2", DType::uint16},    {"u4", DType::uint32},      {"u8", DType::uint64},  {"b1", DType::boolean},
    {"c8", DType::complex64}, {"c16", DType::complex128},
};

class ArrayReader {
 public:
  ArrayReader(const Ref& array, const Limits& limits) : array_(array), limits_(limits) {}

  Tensor read(DType wanted) {
    const auto& state = state_of(array_, 5, "the array");
    if (state[3]->kind != Kind::boolean) fail(RefusalClass::PickleType, "the array's order is not a bool");
    read_dtype(state[2]);
    std::vector<int64_t> shape = dims_of(state[1], limits_.dims);
    if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; }))
      fail(RefusalClass::TensorBounds, "a negative size");
    std::vector<std::byte> bytes = bytes_of_text(state[4], bytes_of(dtype_, shape));
    if (swapped_) swap(bytes);
    if (wanted != dtype_) bytes = converted(bytes, wanted);
    Tensor tensor = make_tensor(wanted, shape, std::move(bytes), "array");
    if (state[3]->boolean) {  // Fortran's order: the first index runs fastest
      int64_t step = 1;
      for (size_t d = 0; d < shape.size(); ++d)
        tensor.stride[d] = step, step *= std::max<int64_t>(1, shape[d]);
    }
    return tensor;
  }

 private:
  [[noreturn]] void fail(RefusalClass cls, const std::string& what) const {
    refuse(cls, "data.pkl: the numpy array of a device's tensor: " + what, array_->offset);
  }

  const pickle::Refs& state_of(const Ref& node, size_t least, const std::string& what) const {
    const bool right = node->kind == Kind::call && node->appended().empty() && node->pairs.empty() &&
                       node->state != nullptr && node->state->kind == Kind::tuple &&
                       node->state->items.size() >= least;
    if (!right) fail(RefusalClass::PickleType, what + " has no state");
    return node->state->items;
  }

  // dtype("f4", False, True) with the state (3, "<", None, None, None, -1, -1, 0)
  void read_dtype(const Ref& node) {
    if (!pickle::is_call(node, "numpy", "dtype") || node->items[1]->kind != Kind::tuple ||
        node->items[1]->items.empty() || node->items[1]->items[0]->kind != Kind::string)
      fail(RefusalClass::PickleType, "it has no dtype");
    const std::string code = node->items[1]->items[0]->text;
    const auto* known = std::ranges::find(kElementTypes, code, &ElementType::code);
    if (known == std::end(kElementTypes)) fail(RefusalClass::Dtype, "no tensor has elements of " + code);
    dtype_ = known->dtype;
    const auto& state = state_of(node, 5, "its dtype");
    if (state[1]->kind != Kind::string) fail(RefusalClass::PickleType, "its byte order is not a string");
    swapped_ = state[1]->text == ">";
  }

  std::vector<std::byte> bytes_of_text(const Ref& node, uint64_t count) const {
    std::vector<std::byte> bytes;
    if (pickle::is_call(node, "_codecs", "encode")) {
      const std::string_view text = node->items[1]->items[0]->text;
      bytes.reserve(text.size());
      for (size_t i = 0; i < text.size(); ++i) {  // the reader has checked that it is Latin-1
        const auto lead = static_cast<uint8_t>(text[i]);
        bytes.push_back(std::byte{
            lead < 0x80 ? lead
                        : static_cast<uint8_t>((lead & 3) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3f))});
      }
    } else if (!pickle::is_call(node, "builtins", "bytes") &&
               !pickle::is_call(node, "__builtin__", "bytes")) {
      fail(RefusalClass::PickleType, "its elements are not bytes");
    }
    if (bytes.size() != count)
      fail(RefusalClass::TensorBounds,
           "it has " + std::to_string(bytes.size()) + " bytes, its shape takes " + std::to_string(count));
    return bytes;
  }

  void swap(std::vector<std::byte>& bytes) const {
    const bool complex = dtype_ == DType::complex64 || dtype_ == DType::complex128;
    const auto width = static_cast<ptrdiff_t>(dtype_bytes(dtype_) / (complex ? 2 : 1));
    for (auto at = bytes.begin(); at != bytes.end(); at += width) std::reverse(at, at + width);
  }

  // numpy has no bfloat16: torch saved the values as float32, of which the lower half is zero.
  std::vector<std::byte> converted(const std::vector<std::byte>& bytes, DType wanted) const {
    std::vector<std::byte> result;
    for (size_t at = 0; wanted == DType::bfloat16 && dtype_ == DType::float32 && at < bytes.size(); at += 4) {
      if (bytes[at] != std::byte{} || bytes[at + 1] != std::byte{})
        fail(RefusalClass::Dtype, "its float32 elements are not bfloat16 values, as the tensor's are");
      result.insert(result.end(), {bytes[at + 2], bytes[at + 3]});
    }
    if (result.size() * 2 != bytes.size())
      fail(RefusalClass::Dtype, "it has elements of " + std::string(dtype_name(dtype_)) +
                                    " for a tensor of " + std::string(dtype_name(wanted)));
    return result;
  }

  const Ref& array_;
  const Limits& limits_;
  DType dtype_ = DType::float32;
  bool swapped_ = false;
};

}  // namespace

uint64_t decode_arrays(TorchObject& object, uint64_t pickle_bytes, const Limits& limits) {
  uint64_t total = 0;
  pickle::for_each_holder(object.root, [&](const Ref& node) {
    const Ref* arguments = pickle::numpy_arguments_of(node);
    if (arguments == nullptr) return;
    const auto& [array, type] = std::tie((*arguments)->items[0], (*arguments)->items[1]);
    const auto dtype = dtype_of_global(type);
    if (!dtype) refuse(RefusalClass::Dtype, "data.pkl: a device's tensor has no dtype", node->offset);
    if (const auto known = object.arrays.find(array.get()); known != object.arrays.end()) {
      if (known->second.dtype == *dtype) return;
      refuse(RefusalClass::Dtype, "data.pkl: two tensors of different types have one numpy array",
             node->offset);
    }
    Tensor tensor = ArrayReader(array, limits).read(*dtype);
    total += tensor.storage->bytes.size();
    if (total > pickle_bytes)  // each array has its own bytes
      refuse(RefusalClass::LimitExceeded, "data.pkl: its numpy arrays share their bytes", node->offset);
    object.arrays.emplace(array.get(), std::move(tensor));
  });
  return total;
}

const Tensor* array_of(const TorchObject& object, const Ref& call) {
  const Ref* arguments = call ? pickle::numpy_arguments_of(call) : nullptr;
  const auto found =
      arguments == nullptr ? object.arrays.end() : object.arrays.find((*arguments)->items[0].get());
  return found == object.arrays.end() ? nullptr : &found->second;
}

}  // namespace qcts
