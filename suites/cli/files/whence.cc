// SPDX-License-Identifier: BSD-3-Clause
// qcts whence DENSE QUANTIZED: which library, versions and recipe make exactly these codes, scales and zero
// points of these weights? Tensors are matched by name, whatever the containers.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "reference/comparison/ties.h"
#include "reference/comparison/words.h"
#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/input_scale.h"
#include "reference/schemes/pre_scale.h"
#include "suites/base/json_document.h"
#include "suites/base/terminal.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/file_command.h"
#include "suites/cli/files/recipe_search.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

struct WhenceArguments {
  FileOptions options;
  std::string dense, quantized, pack;
};

// One quantized tensor that has an original.
struct Origin {
  std::string name, scheme;
  std::string cpu_pack;  // that the weight shows, if the file does not record it: "cpu_avx2"
  DType dense_dtype = DType::float32;
  RecipeSearch found;
};

// A tensor whose recipe does not follow from the weight.
struct Undecided {
  std::string name, what, why;  // `what`: format and scheme
};

struct Skipped {
  std::string name, why;
};

struct Origins {
  std::vector<Origin> compared;
  std::vector<Undecided> undecided;
  std::vector<Skipped> skipped;      // tensors of QUANTIZED
  std::vector<std::string> missing;  // names that only DENSE has

  size_t fitting() const {
    return static_cast<size_t>(
        std::ranges::count_if(compared, [](const Origin& origin) { return !origin.found.fits.empty(); }));
  }
};

// Compares every quantized tensor with the tensor of the same name, or the one that it is tied to.
class OriginFinder {
 public:
  OriginFinder(const Checkpoint& dense, const Checkpoint& quantized, std::string cpu_layout)
      : dense_(dense),
        quantized_(quantized),
        originals_(dense, quantized),
        counterparts_(quantized, dense),
        cpu_layout_(std::move(cpu_layout)) {}

  Origins find() && {
    for (const NamedTensor& tensor : quantized_.tensors) look_at(tensor);
    for (const NamedTensor& tensor : dense_.tensors)
      if (counterparts_.find(tensor) == nullptr) found_.missing.push_back(tensor.name);
    return std::move(found_);
  }

 private:
  void skip(const NamedTensor& tensor, std::string why) {
    found_.skipped.push_back({tensor.name, std::move(why)});
  }

  void look_at(const NamedTensor& tensor) {
    const NamedTensor* original = originals_.find(tensor);
    if (is_plain(tensor)) {
      if (original == nullptr) skip(tensor, "DENSE has no tensor of this name");
      return;
    }
    if (tensor.coded) return leave_open(tensor);
    const std::optional<NamedTensor> inside = weight_behind_input_scale(tensor);
    const NamedTensor& weight = inside ? *inside : tensor;
    const std::vector<std::string> packs = possible_packs(weight);
    const std::optional<SchemeTensor> held = scheme_tensor(weight, packs.front());
    if (!held) return skip(tensor, without_scheme(tensor));
    if (!held->scheme->quantizes_weight()) return skip(tensor, "its weight is not quantized, only x is");
    if (original == nullptr) return skip(tensor, "DENSE has no tensor of this name");
    if (const std::string why = misfit(*original, tensor); !why.empty()) return skip(tensor, why);
    const Tensor& dense = original->payload[0].tensor;
    Origin origin = {tensor.name, std::string(held->scheme->name()), "", dense.dtype,
                     find_recipes(*held, dense)};
    if (packs.size() > 1) decide_pack(weight, packs, dense, origin);
    if (origin.found.fits.empty() && (inside || is_pre_scaled(held->activation)))
      found_.undecided.push_back({tensor.name, tensor.type + " (" + origin.scheme + ")",
                                  "its columns were scaled by calibration data before they were quantized: "
                                  "the weight is not enough to decide"});
    else
      found_.compared.push_back(std::move(origin));
  }

  // The CPU packs in which the codes may be. One for a file that records the pack, "" if there is none.
  std::vector<std::string> possible_packs(const NamedTensor& tensor) const {
    if (tensor.scheme.empty() || tensor.layout || !cpu_layout_.empty()) return {cpu_layout_};
    return {"cpu_avx512", "cpu_avx2", "cpu_default"};
  }

  // Unpacks the codes in each way, and keeps the one that a recipe makes, or else the nearest.
  static void decide_pack(const NamedTensor& tensor, const std::vector<std::string>& packs,
                          const Tensor& dense, Origin& origin) {
    const auto share = [](const RecipeSearch& found) {
      return !found.fits.empty() ? 2 : found.nearest ? found.nearest->code_share() : -1;
    };
    origin.cpu_pack = packs.front();
    for (size_t i = 1; i < packs.size() && origin.found.fits.empty(); ++i) {
      RecipeSearch found = find_recipes(*scheme_tensor(tensor, packs[i]), dense);
      if (share(found) <= share(origin.found)) continue;
      origin.cpu_pack = packs[i];
      origin.found = std::move(found);
    }
  }

  static std::string without_scheme(const NamedTensor& tensor) {
    if (!tensor.foreign.empty()) return why_not_dense(tensor);
    return tensor.type + " belongs to no scheme whose recipe is known";
  }

  // The joins' libraries choose codes with the help of calibration data, or by recipes that no scheme has.
  void leave_open(const NamedTensor& tensor) {
    const bool calibrated = tensor.type == "gptq" || tensor.type == "awq";
    found_.undecided.push_back({tensor.name, tensor.type + " (" + tensor.coded->scheme + ")",
                                calibrated ? "its codes depend on calibration data: the weight is not "
                                             "enough to decide who chose them"
                                           : "qcts knows no recipe of this library, and its codes may depend "
                                             "on calibration data: the weight is not enough to decide"});
  }

  static std::string misfit(const NamedTensor& original, const NamedTensor& tensor) {
    if (!is_plain(original)) return "DENSE has a " + original.type + ", which is not a dense weight";
    const DType dtype = original.payload[0].tensor.dtype;
    if (dtype != DType::float32 && dtype != DType::float16 && dtype != DType::bfloat16)
      return "DENSE has elements of " + std::string(dtype_name(dtype));
    if (original.shape != tensor.shape)
      return "DENSE has the shape " + shape_words(original.shape) + ", this " + shape_words(tensor.shape);
    return "";
  }

  const Checkpoint &dense_, &quantized_;
  const TensorsByName originals_, counterparts_;
  const std::string cpu_layout_;
  Origins found_;
};

std::string count_words(uint64_t count) { return with_commas(static_cast<double>(count)); }

// Two digits, never rounded up to 1.
std::string share_words(double share) { return fixed(std::floor(share * 100) / 100, 2); }

// The recipes of one scheme that fit, as "int8_row: torchao 0.18.0".
std::string scheme_words(const Scheme& scheme, const Origin& origin) {
  std::vector<Recipe> recipes;
  std::string words;
  bool today = false;
  for (const RecipeMatch& match : origin.found.fits) {
    if (match.recipe.scheme != &scheme) continue;
    recipes.push_back(match.recipe);
    const std::string more = recipe_words(match.recipe);
    today = today || more.empty();
    words += (words.empty() ? "" : ", ") + more;
  }
  std::string text = std::string(scheme.name()) + ": " + recipe_versions(recipes);
  if (!today) text += " (" + words + ")";
  if (recipes.front().dtype != origin.dense_dtype)
    text += ", from DENSE in " + std::string(dtype_name(recipes.front().dtype));
  return text;
}

std::string fits_words(const Origin& origin) {
  std::string text;
  std::vector<const Scheme*> told;
  for (const RecipeMatch& match : origin.found.fits) {
    if (std::ranges::find(told, match.recipe.scheme) != told.end()) continue;
    text += (told.empty() ? "" : "; or ") + scheme_words(*match.recipe.scheme, origin);
    told.push_back(match.recipe.scheme);
  }
  return text + (origin.cpu_pack.empty() ? "" : ", packed as " + origin.cpu_pack);
}

std::string recipe_name(const Recipe& recipe) {
  const std::string more = recipe_words(recipe);
  return std::string(recipe.scheme->name()) + (more.empty() ? "" : " with " + more);
}

// "4,095 of 4,096 codes and all scales are equal, first difference: a.weight, qdata, row 3, column 17".
std::string nearest_words(const std::string& name, const RecipeMatch& nearest) {
  std::string text = recipe_name(nearest.recipe) + ": " + count_words(nearest.equal_codes) + " of " +
                     count_words(nearest.codes) + " codes";
  if (nearest.scales != 0)
    text += " and " + count_words(nearest.equal_scales) + " of " + count_words(nearest.scales) +
            " scales and zero points";
  return text + " are equal; first difference: " + name + ", " + nearest.plane +
         (nearest.place.empty() ? "" : ", " + nearest.place);
}

// Tensors with the same answer, which are one line.
struct Group {
  std::string key, text;
  size_t tensors = 0;
  std::string other;                    // the nearest recipe that does not fit, of the first tensor
  uint64_t codes = 0, equal_codes = 0;  // by that recipe, in the tensors where it is the nearest
};

class Groups {
 public:
  void add(const Origin& origin) {
    const RecipeSearch& found = origin.found;
    const std::string other = found.nearest ? recipe_name(found.nearest->recipe) : "";
    if (found.fits.empty() && !found.nearest)
      add("none", "no recipe has such planes: " + origin.name);
    else if (found.fits.empty())
      add("near " + other, "no recipe makes it; nearest is " + nearest_words(origin.name, *found.nearest));
    else
      count(add(fits_words(origin), fits_words(origin)), other, found.nearest);
  }

  void add(const Undecided& open) {
    const std::string text = open.what + ": " + open.why;
    add(text, text);
  }

  void print(size_t all, Printout& out) const {
    for (const Group& group : groups_) {
      std::string text = count_words(group.tensors) + " of " + count_words(all) + ": " + group.text;
      if (group.codes != 0)
        text += "; " +
                share_words(static_cast<double>(group.equal_codes) / static_cast<double>(group.codes)) +
                " of the codes by " + group.other;
      out.text(text);
    }
  }

 private:
  Group& add(const std::string& key, const std::string& text) {
    auto found = std::ranges::find(groups_, key, &Group::key);
    if (found == groups_.end()) found = groups_.insert(groups_.end(), {key, text, 0, "", 0, 0});
    ++found->tensors;
    return *found;
  }

  static void count(Group& group, const std::string& other, const std::optional<RecipeMatch>& nearest) {
    if (!nearest) return;
    if (group.other.empty()) group.other = other;
    if (group.other != other) return;
    group.codes += nearest->codes;
    group.equal_codes += nearest->equal_codes;
  }

  std::vector<Group> groups_;
};

std::string verdict_words(const Origins& origins) {
  const size_t compared = origins.compared.size(), fitting = origins.fitting();
  if (compared == 0) return "NOT COMPARED: no quantized weight can be compared with a dense one";
  const std::string of = count_words(compared) + (compared == 1 ? " weight" : " weights");
  const std::string open = origins.undecided.empty()
                               ? ""
                               : "; " + count_words(origins.undecided.size()) + " more cannot be decided";
  if (fitting == compared) return "KNOWN: recipes make all codes and scales of " + of + open;
  return "UNKNOWN: no recipe makes " + count_words(compared - fitting) + " of " + of + open;
}

void print_origins(const Origins& origins) {
  Printout out(screen_of(STDOUT_FILENO));
  const size_t all = origins.compared.size() + origins.undecided.size();
  Groups groups;
  for (const Origin& origin : origins.compared) groups.add(origin);
  for (const Undecided& open : origins.undecided) groups.add(open);
  groups.print(all, out);
  out.text(verdict_words(origins));
  std::cout << out.str();
}

void print_skipped(const Origins& origins) {
  std::vector<std::string> notes;
  for (const Skipped& skipped : origins.skipped) notes.push_back(skipped.name + ": " + skipped.why);
  for (const std::string& name : origins.missing)
    notes.push_back(name + ": only DENSE has a tensor of this name");
  print_notes(notes);
}

std::string_view how_name(WeightRecipe how) {
  constexpr std::string_view kNames[] = {"current", "least_scale_2_23", "least_scale_eps", "reciprocal",
                                         "narrow_reciprocal"};
  return kNames[static_cast<size_t>(how)];
}

Json match_json(const RecipeMatch& match) {
  const Recipe& recipe = match.recipe;
  Json json = {{"scheme", recipe.scheme->name()},
               {"recipe", how_name(recipe.how)},
               {"layout", recipe.layout.name()},
               {"dtype", dtype_name(recipe.dtype)},
               {"versions", recipe_versions({recipe})},
               {"source", recipe.scheme->source()},
               {"rows", match.rows},
               {"codes", match.codes},
               {"equal_codes", match.equal_codes},
               {"scales", match.scales},
               {"equal_scales", match.equal_scales},
               {"first_difference", nullptr}};
  const auto or_null = [](const std::optional<int64_t>& index) {
    return index ? Json(*index) : Json(nullptr);
  };
  if (!match.fits)
    json["first_difference"] = {{"plane", match.plane},
                                {"place", match.place},
                                {"row", or_null(match.row)},
                                {"column", or_null(match.column)}};
  return json;
}

Json origins_json(const WhenceArguments& words, const Origins& origins) {
  Json json = {
      {"dense", words.dense},          {"quantized", words.quantized}, {"compared", origins.compared.size()},
      {"fitting", origins.fitting()},  {"tensors", Json::array()},     {"undecided", Json::array()},
      {"not_compared", Json::array()}, {"missing", origins.missing}};
  for (const Origin& origin : origins.compared) {
    Json fits = Json::array();
    for (const RecipeMatch& match : origin.found.fits) fits.push_back(match_json(match));
    json["tensors"].push_back(
        {{"name", origin.name},
         {"scheme", origin.scheme},
         {"cpu_pack", origin.cpu_pack.empty() ? Json(nullptr) : Json(origin.cpu_pack)},
         {"fits", std::move(fits)},
         {"nearest", origin.found.nearest ? match_json(*origin.found.nearest) : Json(nullptr)}});
  }
  for (const Undecided& open : origins.undecided)
    json["undecided"].push_back({{"name", open.name}, {"what", open.what}, {"reason", open.why}});
  for (const Skipped& skipped : origins.skipped)
    json["not_compared"].push_back({{"name", skipped.name}, {"reason", skipped.why}});
  return json;
}

int run_whence(const WhenceArguments& words) {
  OpenOptions dense_options = words.options.open;
  dense_options.dialect.clear();
  dense_options.config_is_a_plan = true;
  dense_options.config.clear();
  const std::string layout = words.pack.empty() ? "" : cpu_layout(words.pack);
  const Checkpoint dense = open_checkpoint(words.dense, dense_options),
                   quantized = open_checkpoint(words.quantized, words.options.open);
  print_notes(dense.warnings);
  print_findings(quantized);
  const Origins origins = OriginFinder(dense, quantized, layout).find();
  if (words.options.json)
    print_json("whence", origins_json(words, origins));
  else
    print_origins(origins);
  print_skipped(origins);
  if (origins.compared.empty()) return 3;
  return origins.fitting() == origins.compared.size() ? 0 : 1;
}

}  // namespace

void add_whence(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<WhenceArguments>();
  CLI::App* command = app.add_subcommand(
      "whence",
      "say which library, versions and recipe turn the dense weights into exactly these quantized ones: exit "
      "code 1 if "
      "no recipe makes one of them, 3 if none can be compared, 5 if a file cannot be read");
  command->add_option("DENSE", words->dense, "the original: a file or a directory")->required();
  command->add_option("QUANTIZED", words->quantized, "made from DENSE: a file or a directory")->required();
  command->add_option("--cpu-pack", words->pack,
                      "the CPU layout of packed int4 weights, if the file does not record it: avx512, avx2 "
                      "or default; default: DENSE decides");
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    bool compared = false;
    const int code = guarded(words->options.json, [&] {
      const int result = run_whence(*words);
      compared = true;
      return result;
    });
    exit_code = code == 1 && !compared ? 5 : code;  // 1 says that no recipe fits, and nothing else does
  });
}

}  // namespace qcts::cli
