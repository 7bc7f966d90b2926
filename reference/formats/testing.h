// Helpers of the format tests. Included by *_test.cc only.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/formats/byte_io.h"
#include "reference/formats/torch_zip.h"

namespace qcts::testing {

using Bytes = std::vector<std::byte>;

inline std::filesystem::path testdata(const std::string& name) {
  return std::filesystem::path(QCTS_SOURCE_DIR) / "reference/formats/testdata" / name;
}

inline Bytes bytes_of_file(const std::string& name) {
  const auto file = MappedFile::open(testdata(name));
  return {file->bytes().begin(), file->bytes().end()};
}

inline Bytes to_bytes(std::string_view text) { return {as_bytes(text).begin(), as_bytes(text).end()}; }

// The class of the refusal that `run` ends in, as text; "accepted" when it returns.
template <typename Run>
std::string outcome(Run&& run) {
  try {
    run();
  } catch (const Refused& refused) {
    return std::string(refusal_class_name(refused.refusal().cls));
  }
  return "accepted";
}

template <typename T>
Bytes raw(const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

inline Tensor float_tensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  return make_tensor(DType::float32, std::move(shape), raw(values));
}

// {"x": [1, 1], "y": [2, 2, 2]} as torch.save would write it to a buffer.
inline Bytes small_archive() {
  const Tensor x = float_tensor({2}, {1, 1}), y = float_tensor({3}, {2, 2, 2});
  pickle::Ref root = pickle::dict();
  root->pairs = {{pickle::string("x"), tensor_node(x, "0")}, {pickle::string("y"), tensor_node(y, "1")}};
  return write_torch_zip("archive", root, {x.storage, y.storage});
}

}  // namespace qcts::testing
