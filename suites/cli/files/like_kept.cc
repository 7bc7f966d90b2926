// SPDX-License-Identifier: BSD-3-Clause
// Compares what quantize wrote with the file of --like.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "reference/dialects/dense.h"
#include "reference/numerics/soft_float.h"
#include "suites/cli/files/quantize.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;
using ByName = std::unordered_map<std::string_view, const NamedTensor*>;

ByName by_name(const Checkpoint& checkpoint) {
  ByName names;
  for (const NamedTensor& tensor : checkpoint.tensors) names.emplace(tensor.name, &tensor);
  return names;
}

// Follows from the shape of the weight, which need not be that of --like.
bool follows_from_shape(std::string_view attribute, const NamedTensor& a, const NamedTensor& b) {
  const bool size = attribute == "shape" || attribute.ends_with("block_size");
  return attribute == "shape" || (size && a.shape != b.shape);
}

void compare_kept(const NamedTensor& like, const NamedTensor& out, std::vector<std::string>& notes) {
  const auto differ = [&](const std::string& what, const std::string& has, const std::string& made) {
    notes.push_back(out.name + ": not as in --like: its " + what + " is " + has + " there and " + made +
                    " in OUT");
  };
  if (like.type != out.type) return differ("class", like.type, out.type);
  if (like.scheme != out.scheme) return differ("scheme", like.scheme, out.scheme);
  if (like.activation != out.activation)
    differ("policy", std::string(like.activation.name()), std::string(out.activation.name()));
  const auto value_in = [](const NamedTensor& tensor, const std::string& key) {
    return tensor.attributes.value(key, Json());
  };
  for (const NamedTensor* side : {&like, &out})
    for (const auto& [key, value] : side->attributes.items()) {
      const bool told = side == &out && like.attributes.contains(key);
      const Json has = value_in(like, key), made = value_in(out, key);
      if (!told && has != made && !follows_from_shape(key, like, out)) differ(key, has.dump(), made.dump());
    }
}

double noise_of(const Tensor& original, const Tensor& dense) {
  const std::vector<double> w = load_doubles(original.dtype, row_major_bytes(original)),
                            v = load_doubles(dense.dtype, row_major_bytes(dense));
  double noise = 0;
  for (size_t i = 0; i < w.size(); ++i) noise += (v[i] - w[i]) * (v[i] - w[i]);
  return noise;
}

// Was the tensor of --like made from the same weight by another recipe? Its error then is about as small.
bool is_another_recipe(const NamedTensor& original, const NamedTensor& like, const NamedTensor& out,
                       const std::string& layout) {
  constexpr double kAboutAsSmall = 16;
  if (like.shape != out.shape || like.shape != original.shape || !is_plain(original) ||
      !is_float(original.dtype))
    return false;
  const auto has_unknown_pack = [](const NamedTensor& tensor) {
    return !tensor.scheme.empty() && !tensor.layout;
  };
  if ((has_unknown_pack(like) || has_unknown_pack(out)) && !layout.starts_with("cpu_")) return false;
  const std::optional<Tensor> had = dense_of(like, layout), made = dense_of(out, layout);
  if (!had || !made || had->dtype != made->dtype || row_major_bytes(*had) == row_major_bytes(*made))
    return false;
  const Tensor& weight = original.payload[0].tensor;
  const double noise = noise_of(weight, *had);
  return std::isfinite(noise) && noise <= kAboutAsSmall * noise_of(weight, *made);
}

}  // namespace

std::vector<std::string> not_as_like(const QuantizeArguments& words, const Checkpoint& in) {
  OpenOptions options = words.options.open;
  options.dialect.clear();
  const Checkpoint like = open_checkpoint(words.like, options), out = open_checkpoint(words.out, options);
  const ByName originals = by_name(in), made = by_name(out);
  std::vector<std::string> notes;
  size_t other_recipe = 0;
  std::string first;
  for (const NamedTensor& tensor : like.tensors) {
    const auto there = made.find(tensor.name);
    if (is_plain(tensor) || there == made.end() || is_plain(*there->second)) continue;
    compare_kept(tensor, *there->second, notes);
    const auto original = originals.find(tensor.name);
    if (original == originals.end() ||
        !is_another_recipe(*original->second, tensor, *there->second, words.layout))
      continue;
    if (++other_recipe == 1) first = tensor.name;
  }
  if (other_recipe > 0)
    notes.push_back(
        "--like has other codes for the same weights in " + std::to_string(other_recipe) +
        " of its tensors, such as " + first +
        ": they were made by a recipe that its file does not record (HQQ, GPTQ, ...), not by this one");
  return notes;
}

}  // namespace qcts::cli
