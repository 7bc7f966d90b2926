// SPDX-License-Identifier: BSD-3-Clause
// Finds the scales, zero points and other parts of quantized weights whose codes a file lacks.
#include <algorithm>
#include <map>

#include "reference/dialects/directory/directory_files.h"
#include "reference/dialects/foreign/foreign.h"
#include "reference/dialects/foreign/scaled_codes.h"
#include "reference/dialects/foreign/words.h"

namespace qcts {
namespace {

// No module without a quantized weight has a parameter of such a name.
bool is_only_of_codes(std::string_view word) {
  return is_one_of(word, {"weight_scale", "weight_scale_inv", "weight_scale_2", "weight_scales",
                          "weight_zero_point", "weight_shape", "weight_g_idx", "weight_global_scale",
                          "weights_scaling_factor", "weights_scaling_factor_2", "qscale_weight",
                          "scale_weight", "comfy_quant", "qzeros", "g_idx", "SCB", "weight_format"}) ||
         (word.starts_with("_weight_") && names_scale(word));
}

bool may_be_weight(std::string_view word) {
  return (names_weight(word) || hints_at_codes(word) || is_one_of(word, {"B", "B_24"})) &&
         !is_only_of_codes(word);
}

class LonePartSearch {
 public:
  // `format`: the ForeignFormat of other weights of the checkpoint or of its config.json, or nothing.
  LonePartSearch(const Checkpoint& checkpoint, std::string_view format)
      : tensors_(checkpoint.tensors), format_(format) {}

  // Returns a finding for each weight, in the order of the file.
  std::vector<CheckpointFinding> find() {
    if (std::ranges::none_of(tensors_, [&](const auto& tensor) { return is_candidate(tensor); })) return {};
    for (const NamedTensor& tensor : tensors_) {
      names_.push_back(tensor.name);
      note_weight(tensor.name);
    }
    std::ranges::sort(names_);
    std::ranges::sort(modules_);
    std::map<std::string_view, size_t> parts;  // by the stem of the weight
    for (const NamedTensor& tensor : tensors_)
      if (is_candidate(tensor) && !has_codes(tensor)) ++parts[stem_of(tensor.name)];
    std::vector<CheckpointFinding> findings;
    for (const NamedTensor& tensor : tensors_) {
      if (!is_candidate(tensor)) continue;
      const auto found = parts.find(stem_of(tensor.name));
      if (found == parts.end()) continue;
      findings.push_back(
          {CheckpointFinding::Kind::contradiction, tensor.name, finding_text(tensor.name, found->second)});
      parts.erase(found);
    }
    return findings;
  }

 private:
  // The weight itself may be a container: "fc.weight.0" for a tuple.
  void note_weight(std::string_view name) {
    constexpr int kDeepest = 3;
    for (int depth = 0; depth < kDeepest && !name.empty(); ++depth, name = module_name(name))
      if (may_be_weight(last_part(name))) modules_.push_back(module_name(name));
  }

  static bool is_state(std::string_view name) { return name.find(".quant_state.") != name.npos; }

  static std::string finding_text(const std::string& name, size_t count) {
    if (count == 1) return name + ": a part of a quantized weight whose codes are missing";
    return name + " and " + std::to_string(count - 1) +
           " more: parts of a quantized weight whose codes are missing";
  }

  static bool is_of_bitsandbytes(std::string_view name) {
    const std::string_view word = last_part(name), weight = last_part(module_name(name));
    return is_state(name) || is_one_of(word, {"quant_map", "nested_absmax", "nested_quant_map"}) ||
           (word == "absmax" && names_weight(weight));
  }

  // "gate_up_proj_scale_inv" or "gate_up_proj_scales" of a stack of experts.
  static std::string_view ending_of_stack(const NamedTensor& tensor) {
    if (tensor.shape.size() > 1 && tensor.name.ends_with("_scale_inv")) return "_scale_inv";
    const bool bytes = tensor.dtype == DType::uint8 && tensor.shape.size() > 2;
    return bytes && tensor.name.ends_with("_scales") ? "_scales" : "";
  }

  bool is_candidate(const NamedTensor& tensor) const {
    if (!tensor.foreign.empty() || tensor.coded != nullptr) return false;
    if (tensor.type != "Tensor" && tensor.type != "Parameter") return false;
    const std::string_view word = last_part(tensor.name);
    if (is_only_of_codes(word) || is_of_bitsandbytes(tensor.name) || !ending_of_stack(tensor).empty())
      return true;
    // Such names are common: they need more parts, or another weight of their format.
    if (word == "scales" || word == "biases") return !format_.empty() || has_both(tensor.name);
    return word == "scale" && format_ == "fp8" && tensor.shape.size() > 1;
  }

  bool has_both(std::string_view name) const {
    if (names_.empty()) return true;  // not known yet
    const std::string module(name.substr(0, name.rfind('.') + 1));
    return holds(module + "scales") && holds(module + "biases");
  }

  static std::string_view stem_of(std::string_view name) {
    if (const size_t state = name.find(".quant_state."); state != name.npos) return name.substr(0, state);
    return module_name(name);
  }

  bool has_codes(const NamedTensor& tensor) const {
    const std::string_view name = tensor.name;
    if (is_of_bitsandbytes(name)) return holds(std::string(stem_of(name)));
    if (std::ranges::binary_search(modules_, module_name(name))) return true;
    const std::string_view ending = ending_of_stack(tensor);
    if (ending.empty() || is_only_of_codes(last_part(name))) return false;
    const std::string stem(name.substr(0, name.size() - ending.size()));
    return holds(stem) || holds(stem + "_blocks");
  }

  bool holds(const std::string& name) const {
    return std::ranges::binary_search(names_, std::string_view(name));
  }

  const std::vector<NamedTensor>& tensors_;
  const std::string_view format_;
  std::vector<std::string_view> names_, modules_;  // all names; the modules that hold a weight
};

}  // namespace

void report_lone_parts(Checkpoint& checkpoint, const std::string& method, ReadBudget& budget) {
  // A single shard lacks the parts of its layers that are in another shard.
  if (checkpoint.format != Format::directory && names_one_of_several(checkpoint.path.filename().string()))
    return;
  const uint64_t bytes = 4 * sizeof(std::string_view) * checkpoint.tensors.size();
  budget.take_bytes(bytes);
  const ForeignFormat* said = foreign_by_method(method);
  const bool is_read = checkpoint.dialect == "tinyq" ||
                       std::ranges::find(foreign_formats(), checkpoint.dialect, &ForeignFormat::name) !=
                           foreign_formats().end();
  const std::string_view format = said ? said->name : is_read ? checkpoint.dialect : std::string_view();
  std::vector<CheckpointFinding> findings = LonePartSearch(checkpoint, format).find();
  budget.give_back_bytes(bytes);
  std::ranges::move(findings, std::back_inserter(checkpoint.findings));
}

}  // namespace qcts
