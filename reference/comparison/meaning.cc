// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/meaning.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "reference/comparison/words.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/input_scale.h"

namespace qcts {
namespace {

Plane plane_of(const Tensor& tensor) { return {"", tensor.dtype, tensor.shape, row_major_bytes(tensor)}; }

// The same parts, bit for bit: they mean the same, whatever it is.
bool is_same_payload(const NamedTensor& a, const NamedTensor& b) {
  if (a.type != b.type || a.dtype != b.dtype || a.shape != b.shape || a.attributes != b.attributes)
    return false;
  return std::ranges::equal(a.payload, b.payload, [](const InnerTensor& x, const InnerTensor& y) {
    if (x.name != y.name || x.tensor.dtype != y.tensor.dtype || x.tensor.shape != y.tensor.shape)
      return false;
    std::vector<std::byte> left, right;
    return std::ranges::equal(row_major_view(x.tensor, left), row_major_view(y.tensor, right));
  });
}

std::string input_scale_words(const std::optional<InputScale>& scale) {
  if (!scale) return "absent";
  if (!scale->misfit.empty()) return scale->misfit;
  return scale->factors.size() == 1 ? "one factor" : std::to_string(scale->factors.size()) + " factors";
}

bool is_of_unknown_pack(const NamedTensor& tensor, const std::string& cpu_layout) {
  return !tensor.scheme.empty() && !tensor.layout && cpu_layout.empty();
}

std::string dtype_word_of(DType dtype) { return std::string(dtype_name(dtype)); }

class Meanings {
 public:
  Meanings(const std::string& cpu_layout_a, const std::string& cpu_layout_b)
      : layout_a_(cpu_layout_a), layout_b_(cpu_layout_b) {}

  void compare(const NamedTensor& a, const NamedTensor& b) {
    if (layout_a_ == layout_b_ && is_same_payload(a, b)) return;
    if (is_of_unknown_pack(a, layout_a_) || is_of_unknown_pack(b, layout_b_)) {
      found.undecided.push_back(a.name + ": which CPU packed it is not known (--cpu-pack)");
      return;
    }
    const std::optional<Tensor> left = dense_of(a, layout_a_), right = dense_of(b, layout_b_);
    if (!left || !right) {
      found.undecided.push_back(a.name + ": " + why_not_dense(left ? b : a));
    } else if (left->dtype != right->dtype) {
      found.different.add({a.name, "dtype", dtype_word_of(left->dtype), dtype_word_of(right->dtype)});
    } else if (left->shape != right->shape) {
      found.different.add({a.name, "shape", shape_words(left->shape), shape_words(right->shape)});
    } else {
      compare_input_scales(a, b);
      compare_elements_of(a.name, plane_of(*left), plane_of(*right));
    }
  }

  MeaningFindings found;

 private:
  // The layer's weight is the dequantized one times the scale of x.
  void compare_input_scales(const NamedTensor& a, const NamedTensor& b) {
    const std::optional<InputScale> left = input_scale(a), right = input_scale(b);
    if (!left && !right) return;
    if (left && right && left->misfit.empty() && left->factors == right->factors) return;
    const std::string x = input_scale_words(left), y = input_scale_words(right);
    found.different.add({a.name, "scale of x", x, x == y ? "other values" : y});
  }

  void compare_elements_of(const std::string& name, const Plane& a, const Plane& b) {
    const std::optional<uint64_t> at = first_difference(a, b);
    if (!at) return;
    const uint64_t element = *at / std::max<uint32_t>(1, dtype_bytes(a.dtype));
    const uint64_t columns =
        a.shape.empty() || a.shape.back() == 0 ? 1 : static_cast<uint64_t>(a.shape.back());
    found.different.add(
        {name, "row " + std::to_string(element / columns) + ", column " + std::to_string(element % columns),
         element_words(a.dtype, a.bytes, element), element_words(b.dtype, b.bytes, element)});
  }

  const std::string &layout_a_, &layout_b_;
};

}  // namespace

MeaningFindings compare_meaning(const Checkpoint& a, const Checkpoint& b, const std::string& cpu_layout_a,
                                const std::string& cpu_layout_b) {
  Meanings meanings(cpu_layout_a, cpu_layout_b);
  std::unordered_map<std::string_view, const NamedTensor*> others;
  for (const NamedTensor& named : b.tensors) others.emplace(named.name, &named);
  PageRelease pages_of_a(a), pages_of_b(b);
  for (const NamedTensor& named : a.tensors) {
    const auto other = others.find(named.name);
    if (other == others.end()) {
      meanings.found.different.add({named.name, "", named.type, "absent"});
      continue;
    }
    meanings.compare(named, *other->second);
    pages_of_a.was_read(named);
    pages_of_b.was_read(*other->second);
    others.erase(other);
  }
  for (const NamedTensor& named : b.tensors)
    if (others.contains(named.name)) meanings.found.different.add({named.name, "", "absent", named.type});
  if (a.tensors.empty() && b.tensors.empty())
    meanings.found.undecided.emplace_back("there is no tensor in either file");
  return meanings.found;
}

}  // namespace qcts
