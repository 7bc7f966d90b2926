// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/recipe_search.h"

#include <algorithm>
#include <set>

#include "reference/dialects/dense.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/dialects/encoders/quantize_decision.h"
#include "suites/cli/files/version_ranges.h"

namespace qcts::cli {
namespace {

constexpr std::string_view kTiles = "tile_packed_4d";

// Versions that quantize to a family by today's recipe, but whose class qcts does not write.
struct FurtherVersions {
  std::string_view family, versions;
};
constexpr FurtherVersions kFurtherVersions[] = {
    {"int4_plain", "torchao 0.12.0"}};  // FbgemmConfig: the goldens torchao_0_12_0/int4_plain_*

// The producers of int4_tinygemm's layouts differ in the minimum scale: 2^-126 for tile_packed_4d, else 1e-6.
bool has_recipe_of_tiles(const Scheme& scheme) { return scheme.family() == "int4_tinygemm"; }

// Calls visit(class, layout of the recipe) for each way in which torchao writes the scheme.
template <typename Visit>
void for_each_class(const Scheme& scheme, const Visit& visit) {
  for (std::string_view dialect : write_dialects())
    for (const LayoutInfo& layout : scheme.layouts())
      for (const ActivationInfo& policy : scheme.activations())
        if (const TorchaoClass* cls = torchao_class(scheme, layout, policy, dialect))
          visit(*cls, has_recipe_of_tiles(scheme) && layout.name == kTiles ? Layout(layout) : kPlain);
}

// The recipes of a scheme for a dense weight of this dtype and shape.
std::vector<Recipe> recipes_of(const Scheme& scheme, const WeightShape& shape) {
  std::vector<Recipe> recipes = {{&scheme, WeightRecipe::current, kPlain, shape.dtype}};
  const std::optional<Layout> tiles = scheme.find_layout(kTiles);
  if (has_recipe_of_tiles(scheme) && tiles && !scheme.refusal(shape, *tiles))
    recipes.push_back({&scheme, WeightRecipe::current, *tiles, shape.dtype});
  std::set<WeightRecipe> older;
  for_each_class(scheme, [&](const TorchaoClass& cls, Layout) { older.insert(cls.recipe); });
  older.erase(WeightRecipe::current);
  for (WeightRecipe how : older) recipes.push_back({&scheme, how, kPlain, shape.dtype});
  return recipes;
}

bool has_specs(const Planes& planes, const std::vector<PlaneSpec>& specs) {
  return std::ranges::equal(planes, specs, [](const Plane& plane, const PlaneSpec& spec) {
    return plane.name == spec.name && plane.dtype == spec.dtype && plane.shape == spec.shape;
  });
}

// Are the schemes alike but for their groups, which are the same for this row length?
bool are_twins(const Scheme& a, const Scheme& b, int64_t k) {
  const auto group = [k](const Scheme& scheme) { return scheme.group() == 0 ? k : scheme.group(); };
  const SchemeParams &p = a.params(), &q = b.params();
  return a.family() == b.family() && group(a) == group(b) && p.code_min == q.code_min &&
         p.code_max == q.code_max && p.scale == q.scale && p.scale_rounding == q.scale_rounding &&
         p.group_rows == q.group_rows && p.mapping == q.mapping && p.codes_wrap == q.codes_wrap;
}

bool is_quantized_dtype(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

// Counts what is equal in the planes of a file and those that a recipe made.
class PlaneComparison {
 public:
  PlaneComparison(const Scheme& scheme, const WeightShape& shape, const Planes& held, const Planes& made)
      : scheme_(scheme), shape_(shape), held_(held), made_(made) {}

  RecipeMatch compare(const Recipe& recipe) && {
    match_.recipe = recipe;
    match_.rows = shape_.n;
    match_.fits = true;
    for (size_t i = 0; i < held_.size(); ++i)
      match_.fits = match_.fits && !first_difference(held_[i], made_[i]);
    const size_t codes = codes_plane();
    if (scheme_.codes().values.empty())
      count_elements(codes, match_.codes, match_.equal_codes);
    else
      count_codes(codes);
    for (size_t i = 0; i < held_.size(); ++i)
      if (i != codes) count_elements(i, match_.scales, match_.equal_scales);
    for (size_t i = 0; i < held_.size() && !match_.fits; ++i) note_difference((codes + i) % held_.size());
    return std::move(match_);
  }

 private:
  // The plane that row_codes() reads; for codes that are not a finite set, the plane with one per weight.
  size_t codes_plane() const {
    if (!scheme_.codes().values.empty()) return 0;
    const std::vector<int64_t> whole = {shape_.n, shape_.k};
    const auto found = std::ranges::find(held_, whole, &Plane::shape);
    return found == held_.end() ? 0 : static_cast<size_t>(found - held_.begin());
  }

  void count_codes(size_t plane) {
    std::vector<int> held(static_cast<size_t>(shape_.k)), made(held.size());
    for (int64_t row = 0; row < shape_.n; ++row) {
      scheme_.row_codes(held_, shape_, row, held);
      scheme_.row_codes(made_, shape_, row, made);
      for (size_t k = 0; k < held.size(); ++k) {
        if (held[k] < 0 && made[k] < 0) continue;
        ++match_.codes;
        match_.equal_codes += held[k] == made[k];
        if (held[k] != made[k] && match_.place.empty()) set_place(plane, row, static_cast<int64_t>(k));
      }
    }
  }

  void set_place(size_t plane, int64_t row, int64_t column) {
    match_.plane = held_[plane].name;
    match_.place = "row " + std::to_string(row) + ", column " + std::to_string(column);
    match_.row = row;
    match_.column = column;
  }

  void count_elements(size_t index, uint64_t& all, uint64_t& equal) const {
    const Plane& held = held_[index];
    const auto count = static_cast<size_t>(numel_of(held.shape));
    if (count == 0) return;
    const size_t size = std::max<size_t>(1, held.bytes.size() / count);
    all += held.bytes.size() / size;
    for (size_t at = 0; at + size <= held.bytes.size(); at += size)
      equal += std::equal(held.bytes.begin() + at, held.bytes.begin() + at + size,
                          made_[index].bytes.begin() + at);
  }

  void note_difference(size_t index) {
    if (!match_.place.empty()) return;
    const std::optional<uint64_t> at = first_difference(held_[index], made_[index]);
    if (!at) return;
    match_.plane = held_[index].name;
    match_.place = scheme_.place(shape_, kPlain, match_.plane, *at);
  }

  const Scheme& scheme_;
  const WeightShape shape_;
  const Planes &held_, &made_;
  RecipeMatch match_;
};

bool is_nearer(const RecipeMatch& a, const RecipeMatch& b) {
  return std::pair(a.code_share(), a.scale_share()) > std::pair(b.code_share(), b.scale_share());
}

class RecipeFinder {
 public:
  RecipeFinder(const SchemeTensor& held, const Tensor& dense)
      : held_(*held.scheme),
        shape_{held.dtype, held.n, held.k},
        planes_(held.layout == kPlain ? held.planes : held_.unpack(held.planes, shape_, held.layout)) {
    weights_.emplace_back(held.dtype, in_dtype(dense, held.dtype));
    if (dense.dtype != held.dtype && is_quantized_dtype(dense.dtype))
      weights_.emplace_back(dense.dtype, in_dtype(dense, dense.dtype));
  }

  RecipeSearch find() && {
    std::vector<RecipeMatch> matches;
    const std::vector<Recipe> recipes = candidates();
    for (const Recipe& recipe : recipes) {
      const int64_t first = recipes.size() > 1 && is_local(*recipe.scheme) ? first_rows() : shape_.n;
      RecipeMatch match = compare(recipe, first);
      if (match.fits && first < shape_.n) match = compare(recipe, shape_.n);
      matches.push_back(std::move(match));
    }
    return sorted(std::move(matches));
  }

 private:
  std::vector<Recipe> candidates() const {
    std::vector<Recipe> all = recipes_with_planes(held_);
    for (const Scheme* scheme : schemes()) {
      if (scheme == &held_ || !scheme->quantizes_weight() || scheme->params().bits != held_.params().bits ||
          scheme->params().element != held_.params().element)
        continue;
      if (std::ranges::none_of(
              all, [&](const Recipe& recipe) { return are_twins(*recipe.scheme, *scheme, shape_.k); }))
        std::ranges::copy(recipes_with_planes(*scheme), std::back_inserter(all));
    }
    return all;
  }

  std::vector<Recipe> recipes_with_planes(const Scheme& scheme) const {
    std::vector<Recipe> all;
    for (const auto& [dtype, bytes] : weights_) {
      const WeightShape shape = {dtype, shape_.n, shape_.k};
      if (recipe_dtype(scheme, dtype) == dtype && !scheme.refusal(shape) &&
          has_specs(planes_, scheme.plane_specs(shape)))
        std::ranges::copy(recipes_of(scheme, shape), std::back_inserter(all));
    }
    return all;
  }

  // Are the planes of some rows the rows of the planes?
  bool is_local(const Scheme& scheme) const {
    return scheme.params().group_rows == 1 && scheme.params().levels == 1 &&
           std::ranges::all_of(planes_, [&](const Plane& plane) {
             return !plane.shape.empty() && plane.shape.front() == shape_.n;
           });
  }

  // As many rows as tell most recipes apart.
  int64_t first_rows() const {
    constexpr int64_t kElements = 1 << 16;
    return std::min(shape_.n, std::max<int64_t>(1, kElements / shape_.k));
  }

  RecipeMatch compare(const Recipe& recipe, int64_t rows) const {
    const auto weight =
        std::ranges::find(weights_, recipe.dtype, &std::pair<DType, std::vector<std::byte>>::first);
    const auto bytes = std::span(weight->second).first(weight->second.size() / shape_.n * rows);
    const Planes made =
        quantize_by(recipe.how, *recipe.scheme, {recipe.dtype, rows, shape_.k, bytes}, recipe.layout);
    const WeightShape shape = {shape_.dtype, rows, shape_.k};
    if (rows == shape_.n) return PlaneComparison(held_, shape, planes_, made).compare(recipe);
    Planes held;
    for (const Plane& plane : planes_) {
      held.push_back({plane.name, plane.dtype, plane.shape, {}});
      held.back().shape.front() = rows;
      held.back().bytes.assign(plane.bytes.begin(),
                               plane.bytes.begin() + plane.bytes.size() / shape_.n * rows);
    }
    return PlaneComparison(held_, shape, held, made).compare(recipe);
  }

  RecipeSearch sorted(std::vector<RecipeMatch> matches) const {
    RecipeSearch found;
    std::vector<RecipeMatch> others;
    for (RecipeMatch& match : matches) (match.fits ? found.fits : others).push_back(std::move(match));
    drop_second_dtypes(found.fits);
    std::erase_if(others, [&](const RecipeMatch& other) {
      return std::ranges::any_of(
          found.fits, [&](const RecipeMatch& fit) { return fit.recipe.scheme == other.recipe.scheme; });
    });
    std::ranges::stable_sort(others, is_nearer);
    if (found.fits.empty()) compare_whole(others);
    if (!others.empty()) found.nearest = others.front();
    return found;
  }

  // Drops a fit in DENSE's dtype if the same recipe fits in the file's.
  static void drop_second_dtypes(std::vector<RecipeMatch>& fits) {
    std::vector<RecipeMatch> kept;
    for (RecipeMatch& match : fits) {
      const auto same = [&](const RecipeMatch& other) {
        return other.recipe.scheme == match.recipe.scheme && other.recipe.how == match.recipe.how &&
               other.recipe.layout == match.recipe.layout;
      };
      if (std::ranges::none_of(kept, same)) kept.push_back(std::move(match));
    }
    fits = std::move(kept);
  }

  // Nothing fits: the recipes that are nearest in the first rows are compared in all rows.
  void compare_whole(std::vector<RecipeMatch>& others) const {
    constexpr size_t kCompared = 4;
    others.resize(std::min(others.size(), kCompared));
    for (RecipeMatch& match : others)
      if (match.rows < shape_.n) match = compare(match.recipe, shape_.n);
    std::ranges::stable_sort(others, is_nearer);
  }

  const Scheme& held_;
  const WeightShape shape_;
  const Planes planes_;
  std::vector<std::pair<DType, std::vector<std::byte>>> weights_;  // DENSE in each dtype that is tried
};

}  // namespace

std::string recipe_words(const Recipe& recipe) {
  if (recipe.layout == kTiles) return "scales of at least 2^-126";
  switch (recipe.how) {
    case WeightRecipe::current:
      return "";
    case WeightRecipe::least_scale_2_23:
      return "scales of at least 2^-23";
    case WeightRecipe::least_scale_eps:
      return "scales of at least the weight's eps";
    case WeightRecipe::reciprocal:
      return "times the reciprocal of the scale";
    case WeightRecipe::narrow_reciprocal:
      return "times the reciprocal of the scale in the weight's dtype";
  }
  return "";
}

std::string recipe_versions(const std::vector<Recipe>& recipes) {
  VersionRanges versions;
  for (const Recipe& recipe : recipes) {
    bool written = false;
    for_each_class(*recipe.scheme, [&](const TorchaoClass& cls, Layout layout) {
      if (cls.recipe != recipe.how || layout != recipe.layout) return;
      versions.add(cls.writers);
      written = true;
    });
    if (recipe.how != WeightRecipe::current) continue;
    if (!written) versions.add(recipe.scheme->source());
    for (const FurtherVersions& further : kFurtherVersions)
      if (further.family == recipe.scheme->family()) versions.add(further.versions);
  }
  return versions.text();
}

RecipeSearch find_recipes(const SchemeTensor& held, const Tensor& dense) {
  return RecipeFinder(held, dense).find();
}

}  // namespace qcts::cli
