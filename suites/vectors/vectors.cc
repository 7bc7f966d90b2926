// SPDX-License-Identifier: BSD-3-Clause
#include "suites/vectors/vectors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

#include "reference/formats/io/sha256.h"
#include "reports/waivers.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/run_error.h"
#include "suites/inputs/inputs.h"
#include "suites/judge/expected/test_vector.h"
#include "suites/vectors/special_rows.h"

namespace qcts {
namespace {

constexpr DType kVectorDtypes[] = {DType::bfloat16, DType::float32, DType::float16};
constexpr size_t kMostDtypes = 2;  // the first two that a scheme takes
constexpr int64_t kMostElems = 2048, kMostGoldenElems = 1024;
constexpr int64_t kRowsOfGolden = 2;

std::vector<std::byte> slice(std::span<const std::byte> bytes, int64_t rows, int64_t row) {
  const size_t each = bytes.size() / static_cast<size_t>(rows);
  const auto part = bytes.subspan(each * static_cast<size_t>(row), each);
  return {part.begin(), part.end()};
}

// Are the planes of a row the rows of the planes?
bool rows_stand_alone(const Scheme& scheme, const Planes& planes, int64_t n) {
  return scheme.params().group_rows == 1 && scheme.params().levels == 1 &&
         std::ranges::all_of(
             planes, [n](const Plane& plane) { return !plane.shape.empty() && plane.shape.front() == n; });
}

bool are_equal(const Planes& a, const Planes& b) {
  return std::ranges::equal(a, b, [](const Plane& one, const Plane& other) {
    return one.name == other.name && one.bytes.size() == other.bytes.size() && !first_difference(one, other);
  });
}

// The smallest weight with two groups, or else the smallest one.
std::optional<WeightShape> shape_for(const Scheme& scheme, DType dtype) {
  const int64_t group = std::max<int64_t>(scheme.group(), 0);
  for (const int64_t n : {1, 2, 4, 8, 16})
    for (const int64_t k : {std::max<int64_t>(2 * group, 32), group, int64_t{256}})
      if (const WeightShape shape = {dtype, n, k}; k > 0 && n * k <= kMostElems && !scheme.refusal(shape))
        return shape;
  return std::nullopt;
}

bool has_vectors(const Scheme& scheme) {
  return scheme.quantizes_weight() && std::ranges::any_of(kVectorDtypes, [&](DType dtype) {
           return shape_for(scheme, dtype).has_value();
         });
}

// Collects the vectors of one scheme.
class VectorMaker {
 public:
  VectorMaker(const Scheme& scheme, const Fixtures& fixtures) : scheme_(scheme), fixtures_(fixtures) {}

  std::vector<VectorGroup> make() && {
    for (const DType dtype : kVectorDtypes)
      if (const std::optional<WeightShape> shape = shape_for(scheme_, dtype);
          shape && groups_.size() < kMostDtypes) {
        groups_.push_back({&scheme_, dtype, {}});
        add_special(*shape);
        if (groups_.back().vectors.empty())
          throw std::logic_error(std::string(scheme_.name()) + " takes none of the special rows");
      }
    for (const Golden& golden : fixtures_.goldens)
      for (const Golden::TensorInfo& tensor : golden.tensors)
        if (tensor.scheme == scheme_.name() && has_answer(tensor)) add_golden(golden, tensor);
    return std::move(groups_);
  }

 private:
  // Does the golden record the float weight, and the codes by the producer's own unpacking?
  static bool has_answer(const Golden::TensorInfo& tensor) {
    const auto records = [&](std::string_view what) {
      return std::ranges::find(tensor.expected, what) != tensor.expected.end();
    };
    return (tensor.w_seed || records("w")) && (tensor.layout == kPlain.name() || records("codes"));
  }

  VectorGroup* group_of(DType dtype) {
    const auto found = std::ranges::find(groups_, dtype, &VectorGroup::dtype);
    return found == groups_.end() ? nullptr : &*found;
  }

  // Makes the vector of a weight; nullopt if the scheme cannot hold it.
  std::optional<ExportedVector> vector_of(const WeightShape& shape, std::vector<std::byte> x) const {
    ExportedVector made;
    made.shape = shape;
    made.x = std::move(x);
    try {
      made.planes = scheme_.quantize(made.weight());
    } catch (const std::invalid_argument&) {
      return std::nullopt;
    }
    made.y = scheme_.dequantize(made.planes, shape);
    made.flags = flags_of(scheme_, made.weight(), made.planes);
    return made;
  }

  void add(ExportedVector made, const std::string& name) {
    VectorGroup& group = *group_of(made.shape.dtype);
    made.id = std::string(scheme_.name()) + "/" + std::string(short_dtype(made.shape.dtype)) + "/" + name;
    group.vectors.push_back(std::move(made));
  }

  void add_special(const WeightShape& shape) {
    for (SpecialRow& row : special_rows(scheme_, shape))
      if (std::optional<ExportedVector> made = vector_of(shape, std::move(row.weight))) {
        made->hunts = row.hunts;
        add(std::move(*made), row.name);
      }
  }

  void add_golden(const Golden& golden, const Golden::TensorInfo& tensor) {
    Case question;
    question.id = {Kind::numerics, Op::quantize, tensor.scheme, golden.id};
    question.scheme = &scheme_;
    question.question = TensorQuestion{&golden, tensor.name};
    const TestVector known = make_test_vector(question, 0);
    const WeightShape& shape = known.input.weight;
    if (!group_of(shape.dtype) || scheme_.refusal(shape)) return;
    const std::string whose = golden.id + ", tensor " + tensor.name;
    if (shape.n * shape.k <= kMostGoldenElems) {
      add_of_golden(golden, whose, shape, known.input.x, known.expected.planes,
                    tensor.layout == kPlain.name());
      return;
    }
    if (!rows_stand_alone(scheme_, known.expected.planes, shape.n) || shape.k > kMostGoldenElems) return;
    for (int64_t row = 0; row < std::min(kRowsOfGolden, shape.n); ++row) {
      Planes planes = known.expected.planes;
      for (Plane& plane : planes) {
        plane.shape.front() = 1;
        plane.bytes = slice(plane.bytes, shape.n, row);
      }
      if (!scheme_.refusal({shape.dtype, 1, shape.k}))
        add_of_golden(golden, whose + ", row " + std::to_string(row), {shape.dtype, 1, shape.k},
                      slice(known.input.x, shape.n, row), planes, tensor.layout == kPlain.name());
    }
  }

  // Layouts of some producers have their own recipes. Their weights are vectors only if the recipe of
  // "plain" makes the same.
  void add_of_golden(const Golden& golden, const std::string& whose, const WeightShape& shape,
                     std::vector<std::byte> x, const Planes& planes, bool is_plain) {
    std::optional<ExportedVector> made = vector_of(shape, std::move(x));
    if (!made || !are_equal(made->planes, planes)) {
      if (is_plain) throw std::runtime_error(whose + ": the reference makes other planes of this weight");
      return;
    }
    made->hunts = "a recipe that differs from the library's own: " + golden.producer + " wrote these codes";
    made->golden = whose;
    VectorGroup& group = *group_of(shape.dtype);
    if (std::ranges::any_of(group.vectors, [&](const ExportedVector& other) {
          return other.shape.n == shape.n && other.shape.k == shape.k && other.x == made->x;
        }))
      return;
    add(std::move(*made), "golden_" + std::to_string(goldens_[shape.dtype]++));
  }

  const Scheme& scheme_;
  const Fixtures& fixtures_;
  std::vector<VectorGroup> groups_;
  std::map<DType, int> goldens_;
};

}  // namespace

size_t codes_plane_of(const Planes& planes) {
  constexpr std::string_view kNames[] = {"qdata", "int_data", "quantized_data"};
  for (size_t i = 0; i < planes.size(); ++i)
    if (std::ranges::find(kNames, std::string_view(planes[i].name)) != std::end(kNames)) return i;
  return 0;
}

std::string VectorGroup::sha256() const {
  std::vector<std::byte> all;
  const auto append = [&](std::span<const std::byte> bytes) {
    const uint64_t size = bytes.size();
    all.insert(all.end(), reinterpret_cast<const std::byte*>(&size),
               reinterpret_cast<const std::byte*>(&size) + sizeof size);
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  for (const ExportedVector& vector : vectors) {
    append(std::as_bytes(std::span(vector.id)));
    append(vector.x);
    for (const Plane& plane : vector.planes) append(plane.bytes);
    append(vector.y);
  }
  return sha256_hex(all);
}

std::vector<VectorGroup> make_vectors(const Scheme& scheme, const Fixtures& fixtures) {
  if (!scheme.quantizes_weight()) return {};
  return VectorMaker(scheme, fixtures).make();
}

std::vector<const Scheme*> schemes_matching(std::string_view patterns) {
  std::vector<std::string> names;
  for (const Scheme* scheme : schemes())
    if (has_vectors(*scheme)) names.emplace_back(scheme->name());
  std::vector<bool> wanted(names.size());
  for (size_t first = 0; first <= patterns.size();) {
    const size_t end = std::min(patterns.find(',', first), patterns.size());
    const std::string_view pattern = patterns.substr(first, end - first);
    bool matches = false;
    for (size_t i = 0; i < names.size(); ++i)
      if (glob_match(pattern, names[i])) wanted[i] = matches = true;
    if (!matches)
      throw UsageError("no scheme with vectors matches '" + std::string(pattern) + "'" +
                       did_you_mean(std::string(pattern), names));
    first = end + 1;
  }
  std::vector<const Scheme*> found;
  for (size_t i = 0; i < names.size(); ++i)
    if (wanted[i]) found.push_back(find_scheme(names[i]));
  return found;
}

}  // namespace qcts
