// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/transcode/output.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>

#include <unistd.h>

#include "reference/dialects/dense.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/input_scale.h"
#include "reference/dialects/transcode/exact_values.h"
#include "suites/base/json_document.h"
#include "suites/base/terminal.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool is_set(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && !found->is_null() && !(found->is_structured() && found->empty());
}

std::string compressed_tensors_about_input(const Json& said) {
  if (is_set(said, "kv_cache_scheme")) return "kv_cache_scheme";
  if (!is_set(said, "config_groups") || !said["config_groups"].is_object()) return "";
  for (const auto& [name, group] : said["config_groups"].items())
    for (const char* key : {"input_activations", "output_activations"})
      if (is_set(group, key)) return std::string(key) + " of " + name;
  return "";
}

bool same_elements(const NamedTensor& in, const NamedTensor& out) {
  const Tensor &a = in.payload[0].tensor, &b = out.payload[0].tensor;
  return a.dtype == b.dtype && a.shape == b.shape && row_major_bytes(a) == row_major_bytes(b);
}

// Counts what is rounded differently, over all weights.
class OtherRounding {
 public:
  void add(const NamedTensor& tensor, const WeightComparison& found) {
    if (!found.rounds_otherwise()) return;
    if (weights_++ == 0) first_ = tensor.name + ": " + found.first_rounded;
    rounded_ += found.rounded_otherwise;
    elements_ += found.elements;
  }
  void require(const ConvertArguments& words) const {
    if (weights_ == 0 || words.other_rounding) return;
    throw Failure(words.out + " would mean the same numbers, but its format rounds " + grouped(rounded_) +
                  " of " + grouped(elements_) + " elements of " + grouped(weights_) +
                  (weights_ > 1 ? " weights" : " weight") + " differently, first " + first_ +
                  ": --other-rounding writes it");
  }

 private:
  uint64_t weights_ = 0, rounded_ = 0, elements_ = 0;
  std::string first_;
};

}  // namespace

NamedTensor plain_tensor(const std::string& name, const Tensor& elements) {
  NamedTensor tensor;
  tensor.name = name;
  tensor.type = "Tensor";
  tensor.shape = elements.shape;
  tensor.dtype = elements.dtype;
  tensor.payload.push_back({"data", elements});
  return tensor;
}

void require_new_folder(const std::string& out) {
  if (fs::exists(out)) throw UsageError(out + ": exists; the new folder needs a new name");
}

void require_no_findings(const Checkpoint& checkpoint) {
  if (!checkpoint.findings.empty()) throw Failure(finding_text(checkpoint.findings[0]));
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (!tensor.foreign.empty())
      throw Failure(tensor.name + ": in the format of " + std::string(tensor.foreign) +
                    ", which qcts cannot read");
}

void require_no_input_parts(const Checkpoint& checkpoint, const std::string& target) {
  for (const NamedTensor& tensor : checkpoint.tensors)
    for (const std::string& part : parts_for_input(tensor))
      throw Failure(tensor.name + "." + part + ": it acts on x, and a " + target + " weight cannot store it");
}

std::string said_about_input(const Checkpoint& checkpoint, const OpenOptions& options) {
  const QuantConfig config = checkpoint.format == Format::directory
                                 ? quant_config(checkpoint.config, checkpoint.path)
                                 : quant_config_of_file(checkpoint.path, options);
  if (config.method.find("compressed") != std::string::npos)
    return compressed_tensors_about_input(config.said);
  if (config.method == "fp8" && is_set(config.said, "activation_scheme")) return "activation_scheme";
  if (config.method == "modelopt" && config.said.contains("quant_algo") &&
      config.said["quant_algo"].is_string() &&
      !config.said["quant_algo"].get<std::string>().starts_with("W4A16"))
    return "quant_algo " + config.said["quant_algo"].get<std::string>();
  return "";
}

void note_further_attributes(const Checkpoint& checkpoint) {
  std::vector<std::string> notes;
  for (const NamedTensor& tensor : checkpoint.tensors)
    for (const auto& [name, value] : tensor.attributes.items())
      if (name.starts_with(kFurther))
        notes.push_back("OUT cannot store " + tensor.name + "." + name.substr(kFurther.size()));
  print_notes(notes);
}

ComparedWeights compare_written(const Checkpoint& checkpoint, const fs::path& written,
                                const ConvertArguments& words) {
  const Checkpoint out = read_back(written, words);
  const auto fail = [&](const std::string& what) {
    throw Failure(what + " in the file that would become " + words.out + ", so OUT is not written");
  };
  if (!out.findings.empty()) fail(finding_text(out.findings[0]));
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : out.tensors) by_name.emplace(tensor.name, &tensor);
  if (by_name.size() != checkpoint.tensors.size())
    fail(std::to_string(checkpoint.tensors.size()) + " tensors in " + words.in + ", but " +
         std::to_string(by_name.size()));
  ComparedWeights compared;
  OtherRounding other;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end()) fail(tensor.name + ": is not");
    const NamedTensor& made = *found->second;
    if (is_plain(tensor)) {
      if (!is_plain(made) || !same_elements(tensor, made)) fail(tensor.name + ": other elements");
      continue;
    }
    const WeightComparison comparison = compare_weights(tensor, made);
    if (!comparison.unequal.empty()) fail(tensor.name + ": " + comparison.unequal);
    other.add(tensor, comparison);
    ++compared.weights;
    compared.elements += comparison.elements;
    compared.rounded_otherwise += comparison.rounded_otherwise;
  }
  other.require(words);
  return compared;
}

ComparedWeights write_compared(const ConvertArguments& words, bool folder,
                               const std::function<void(const fs::path&)>& write,
                               const std::function<ComparedWeights(const fs::path&)>& compare) {
  Part part(words.out, folder ? "" : fs::path(words.out).extension().string());
  try {
    write(part.path());
  } catch (const fs::filesystem_error& error) {
    throw WriteFailure(error.what());
  }
  const ComparedWeights compared = compare(part.path());
  part.rename(words.out);
  return compared;
}

void report_conversion(const ConvertArguments& words, const Checkpoint& checkpoint, const std::string& format,
                       const std::string& dialect, const ComparedWeights& compared, const std::string& what) {
  if (words.options.json) {
    print_json("convert", {{"out", words.out},
                           {"format", format},
                           {"dialect", dialect},
                           {"tensors", checkpoint.tensors.size()},
                           {"converted", compared.weights},
                           {"rounded_otherwise", compared.rounded_otherwise},
                           {"no_place", Json::array()}});
    return;
  }
  std::string text = grouped(compared.weights) + " of " + grouped(checkpoint.tensors.size()) +
                     " tensors are in " + words.out + " " + what;
  if (compared.rounded_otherwise > 0)
    text += "; " + grouped(compared.rounded_otherwise) + " of " + grouped(compared.elements) +
            " elements are rounded differently";
  Printout out(screen_of(STDOUT_FILENO));
  out.text(text);
  std::cout << out.str();
}

}  // namespace qcts::cli
