// SPDX-License-Identifier: BSD-3-Clause
// qcts diff A B: are two checkpoints equal in meaning (E1), in payload and attributes (E2), in bytes (E3)?
// Tensors are matched by name, whatever their order, container and dialect.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <set>
#include <unordered_map>

#include "reference/dialects/dense.h"
#include "suites/cli/commands.h"
#include "suites/cli/file_command.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Difference {
  std::string tensor, field, a, b;
};

// One equality: the first difference, how many tensors differ, and those of which it cannot be said.
struct Equality {
  std::optional<Difference> first;
  uint64_t differing = 0;
  std::vector<std::string> undecided;

  void add(Difference difference) {
    if (!first) first = std::move(difference);
    ++differing;
  }
};

std::string sizes_word(const std::vector<int64_t>& shape) { return Json(shape).dump(); }

std::string element_word(const Plane& plane, uint64_t at) {
  const uint32_t width = std::max<uint32_t>(1, dtype_bytes(plane.dtype));
  std::string word = "0x";
  for (uint32_t i = width; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x",
                  std::to_integer<unsigned>(plane.bytes[at / width * width + i]));
    word += digits;
  }
  return word;
}

std::string place_of(const NamedTensor& tensor, const std::string& layout, const std::string& inner,
                     uint64_t at, DType dtype) {
  const Scheme* scheme = tensor.scheme.empty() ? nullptr : find_scheme(tensor.scheme);
  if (const std::optional<Layout> known = scheme ? scheme->find_layout(layout) : std::nullopt) {
    const std::string plane =
        inner == "tensor_impl.packed_weight" ? "qdata" : inner.substr(inner.rfind('.') + 1);
    return scheme->place({tensor.dtype, tensor.shape[0], tensor.shape[1]}, *known, plane, at);
  }
  return "element " + std::to_string(at / std::max<uint32_t>(1, dtype_bytes(dtype)));
}

Plane plane_of(const Tensor& tensor) { return {"", tensor.dtype, tensor.shape, row_major_bytes(tensor)}; }

// The first byte that differs, NaN payloads included: E2 is bitwise.
std::optional<uint64_t> first_byte(const Plane& a, const Plane& b) {
  const auto [at, other] = std::ranges::mismatch(a.bytes, b.bytes);
  if (at == a.bytes.end()) return std::nullopt;
  return at - a.bytes.begin();
}

std::optional<Difference> inner_difference(const NamedTensor& a, const InnerTensor& x, const InnerTensor& y,
                                           const std::string& layout) {
  const auto differ = [&](const std::string& what, std::string left, std::string right) {
    return Difference{a.name, x.name + (what.empty() ? "" : ": " + what), std::move(left), std::move(right)};
  };
  if (x.name != y.name) return Difference{a.name, "inner tensor", x.name, y.name};
  if (x.tensor.dtype != y.tensor.dtype)
    return differ("dtype", std::string(dtype_name(x.tensor.dtype)), std::string(dtype_name(y.tensor.dtype)));
  if (x.tensor.shape != y.tensor.shape)
    return differ("shape", sizes_word(x.tensor.shape), sizes_word(y.tensor.shape));
  if (x.tensor.stride != y.tensor.stride)
    return differ("stride", sizes_word(x.tensor.stride), sizes_word(y.tensor.stride));
  const Plane left = plane_of(x.tensor), right = plane_of(y.tensor);
  if (const auto at = first_byte(left, right))
    return differ(place_of(a, layout, x.name, *at, left.dtype), element_word(left, *at),
                  element_word(right, *at));
  return std::nullopt;
}

std::optional<Difference> attribute_difference(const NamedTensor& a, const NamedTensor& b) {
  for (const auto& [key, value] : a.attributes.items()) {
    const auto other = b.attributes.find(key);
    if (other == b.attributes.end()) return Difference{a.name, key, value.dump(), "absent"};
    if (*other != value) return Difference{a.name, key, value.dump(), other->dump()};
  }
  for (const auto& [key, value] : b.attributes.items())
    if (!a.attributes.contains(key)) return Difference{a.name, key, "absent", value.dump()};
  return std::nullopt;
}

std::optional<Difference> payload_difference(const NamedTensor& a, const NamedTensor& b,
                                             const std::string& layout) {
  if (a.type != b.type) return Difference{a.name, "type", a.type, b.type};
  if (a.dtype != b.dtype)
    return Difference{a.name, "dtype", std::string(dtype_name(a.dtype)), std::string(dtype_name(b.dtype))};
  if (a.shape != b.shape) return Difference{a.name, "shape", sizes_word(a.shape), sizes_word(b.shape)};
  if (const auto difference = attribute_difference(a, b)) return difference;
  for (size_t i = 0; i < std::min(a.payload.size(), b.payload.size()); ++i)
    if (const auto difference = inner_difference(a, a.payload[i], b.payload[i], layout)) return difference;
  if (a.payload.size() != b.payload.size())
    return Difference{a.name, "inner tensors", std::to_string(a.payload.size()),
                      std::to_string(b.payload.size())};
  return std::nullopt;
}

struct Layouts {
  std::string a, b;
};

void compare_meaning(const NamedTensor& a, const NamedTensor& b, const Layouts& layouts, bool same_payload,
                     Equality& e1) {
  if (same_payload && layouts.a == layouts.b) return;
  const std::optional<Tensor> left = dense_of(a, layouts.a), right = dense_of(b, layouts.b);
  if (!left || !right) {
    e1.undecided.push_back(a.name + ": " + why_not_dense(left ? b : a));
  } else if (left->dtype != right->dtype) {
    e1.add({a.name, "dtype", std::string(dtype_name(left->dtype)), std::string(dtype_name(right->dtype))});
  } else if (left->shape != right->shape) {
    e1.add({a.name, "shape", sizes_word(left->shape), sizes_word(right->shape)});
  } else {
    const Plane x = plane_of(*left), y = plane_of(*right);
    const std::optional<uint64_t> at = first_difference(x, y);
    if (!at) return;
    const uint64_t element = *at / std::max<uint32_t>(1, dtype_bytes(x.dtype));
    const uint64_t columns =
        x.shape.empty() || x.shape.back() == 0 ? 1 : static_cast<uint64_t>(x.shape.back());
    e1.add({a.name,
            "row " + std::to_string(element / columns) + ", column " + std::to_string(element % columns),
            element_word(x, *at), element_word(y, *at)});
  }
}

struct Result {
  Equality e1, e2;
};

Result compare(const Checkpoint& a, const Checkpoint& b, const Layouts& layouts) {
  Result result;
  std::unordered_map<std::string, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : b.tensors) by_name.emplace(tensor.name, &tensor);
  const auto absent = [&](Difference difference) {
    result.e1.add(difference);
    result.e2.add(std::move(difference));
  };
  for (const NamedTensor& tensor : a.tensors) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end()) {
      absent({tensor.name, "tensor", tensor.type, "absent"});
      continue;
    }
    const std::string layout = tensor.layout ? layout_name(tensor.layout) : layouts.a;
    const std::optional<Difference> difference = payload_difference(tensor, *found->second, layout);
    compare_meaning(tensor, *found->second, layouts, !difference, result.e1);
    if (difference) result.e2.add(*difference);
    by_name.erase(found);
  }
  for (const NamedTensor& tensor : b.tensors)
    if (by_name.contains(tensor.name)) absent({tensor.name, "tensor", "absent", tensor.type});
  return result;
}

std::vector<std::shared_ptr<const MappedFile>> files_of(const Checkpoint& checkpoint) {
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (const auto& zip : checkpoint.zips) files.push_back(zip->file);
  for (const auto& legacy : checkpoint.legacies) files.push_back(legacy->file);
  for (const auto& file : checkpoint.safetensors) files.push_back(file->file);
  if (checkpoint.script) files.push_back(checkpoint.script->file);
  return files;
}

Equality compare_files(const Checkpoint& a, const Checkpoint& b) {
  Equality e3;
  const auto left = files_of(a), right = files_of(b);
  if (left.size() != right.size())
    e3.add({"", "number of files", std::to_string(left.size()), std::to_string(right.size())});
  for (size_t i = 0; i < std::min(left.size(), right.size()) && !e3.first; ++i) {
    const auto x = left[i]->bytes(), y = right[i]->bytes();
    const auto at = std::ranges::mismatch(x, y).in1 - x.begin();
    const std::string name = left.size() > 1 ? fs::path(left[i]->path()).filename().string() : "";
    const auto word = [&](std::span<const std::byte> bytes) {
      return static_cast<size_t>(at) < bytes.size() ? std::to_string(std::to_integer<unsigned>(bytes[at]))
                                                    : std::string("end of file");
    };
    if (static_cast<size_t>(at) < std::max(x.size(), y.size()))
      e3.add({name, "byte " + std::to_string(at), word(x), word(y)});
  }
  return e3;
}

// true, false, or null where nothing differs but something could not be compared.
Json verdict(const Equality& equality) {
  if (equality.first) return false;
  return equality.undecided.empty() ? Json(true) : Json(nullptr);
}

Json equality_json(const Equality& equality) {
  Json json;
  json["equal"] = verdict(equality);
  json["differing"] = equality.differing;
  json["first"] = nullptr;
  if (const auto& first = equality.first)
    json["first"] = {{"tensor", first->tensor}, {"field", first->field}, {"a", first->a}, {"b", first->b}};
  json["undecided"] = equality.undecided;
  return json;
}

void print_equality(const char* title, const Equality& equality, const std::string& unit) {
  std::cout << title;
  if (equality.first) {
    const Difference& first = *equality.first;
    std::cout << "differs    " << first.tensor << (first.tensor.empty() ? "" : ": ") << first.field << ": "
              << first.a << " | " << first.b;
    if (!unit.empty()) std::cout << "  (" << equality.differing << " " << unit << ")";
  } else {
    std::cout << (equality.undecided.empty() ? "equal" : "undecided  " + equality.undecided.front());
  }
  std::cout << "\n";
}

struct DiffWords {
  FileOptions options;
  std::string a, b, pack_a, pack_b;
};

int run_diff(const DiffWords& words) {
  for (const std::string& pack : {words.pack_a, words.pack_b})
    if (!pack.empty()) cpu_layout(pack);
  const Checkpoint a = open_checkpoint(words.a, words.options.open),
                   b = open_checkpoint(words.b, words.options.open);
  const std::string pack_b = words.pack_b.empty() ? words.pack_a : words.pack_b;
  const Layouts layouts = {assumed_layout(a, words.pack_a), assumed_layout(b, pack_b)};
  const Result result = compare(a, b, layouts);
  const Equality e3 = compare_files(a, b);
  if (words.options.json) {
    const Json json = {{"a", words.a},
                       {"b", words.b},
                       {"e1", equality_json(result.e1)},
                       {"e2", equality_json(result.e2)},
                       {"e3", equality_json(e3)}};
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print_equality("E1 meaning  ", result.e1, "tensors");
    print_equality("E2 payload  ", result.e2, "tensors");
    print_equality("E3 file     ", e3, "");
  }
  return result.e2.first ? 1 : 0;
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<DiffWords>();
  CLI::App* command = app.add_subcommand(
      "diff", "two checkpoints: equal in meaning, in payload, in bytes? 1 when the payload differs");
  command->add_option("A", words->a, "a file or a directory")->required();
  command->add_option("B", words->b, "a file or a directory")->required();
  command->add_option("--cpu-pack", words->pack_a,
                      "which CPU packed int4 weights that do not say so: avx512, avx2 or default");
  command->add_option("--cpu-pack-b", words->pack_b, "the same for B alone");
  add_file_options(*command, words->options);
  command->callback(
      [words, &exit_code] { exit_code = guarded(words->options.json, [&] { return run_diff(*words); }); });
}

}  // namespace qcts::cli
