// SPDX-License-Identifier: BSD-3-Clause
// Protects what `check` says about values: a planted one is found in every family, layout and container,
// unless the recipe can write it; files of real libraries have no finding.
#include "reference/values/values.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures/golden.h"
#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/formats/io/mapped_file.h"
#include "reference/numerics/soft_float.h"
#include "suites/base/paths.h"

namespace qcts {
namespace {

const Fixtures& all_fixtures() {
  static const Fixtures all = load_fixtures(fixtures_folder());
  return all;
}

OpenOptions options_of(const Golden& golden, CrcPolicy crc) {
  OpenOptions options;
  options.allow = golden.allow;
  options.crc = crc;
  return options;
}

std::string cpu_layout_of(const Golden& golden) {
  for (const Golden::TensorInfo& info : golden.tensors)
    if (info.layout.starts_with("cpu_")) return info.layout;
  return "";
}

TEST(Values, GoldensHaveNoFinding) {
  for (const Golden& golden : all_fixtures().goldens) {
    const Checkpoint checkpoint = open_checkpoint(golden.file, options_of(golden, CrcPolicy::skip));
    for (const ValueFinding& finding : judge_values(checkpoint, cpu_layout_of(golden)).findings)
      ADD_FAILURE() << golden.id << ": " << value_rule_name(finding.rule) << ": "
                    << value_finding_text(finding);
  }
}

// A quantized tensor of a golden, in memory.
struct Sample {
  const Golden* golden = nullptr;
  std::string tensor, family, layout, container;
};

// Rows of zeros and extremes hold some of the planted values already.
bool is_ordinary(const Golden& golden) {
  return std::ranges::none_of(golden.flags, [](const std::string& flag) {
    return flag == "zero_row" || flag == "constant_row" || flag == "extremes" || flag == "non_finite" ||
           flag == "outlier";
  });
}

// One for each family, layout and container: an ordinary one if there is any.
std::vector<Sample> samples() {
  std::vector<Sample> all;
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  std::vector<const Golden*> goldens;
  for (const Golden& golden : all_fixtures().goldens) goldens.push_back(&golden);
  std::ranges::stable_partition(goldens, [](const Golden* golden) { return is_ordinary(*golden); });
  for (const Golden* each : goldens) {
    const Golden& golden = *each;
    const std::string ending = golden.file.extension().string();
    if (ending != ".pt" && ending != ".pth" && ending != ".safetensors") continue;
    for (const Golden::TensorInfo& info : golden.tensors) {
      const Scheme* scheme = find_scheme(info.scheme);
      if (!scheme) continue;
      const std::string container = ending == ".safetensors" ? "safetensors" : "pickle";
      if (seen.emplace(scheme->family(), info.layout, container).second)
        all.push_back({&golden, info.name, std::string(scheme->family()), info.layout, container});
    }
  }
  return all;
}

struct PlantedValue {
  std::string plane, poison;
  size_t index = 0;  // element of the part
  std::vector<std::byte> bytes;
};

std::vector<std::byte> encoded(DType dtype, double value) {
  std::vector<std::byte> bytes(dtype_bytes(dtype));
  if (has_float_elements(dtype)) {
    store_float(dtype, bytes, 0, value);
  } else {
    const int64_t integer = static_cast<int64_t>(value);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(integer >> (8 * i));
  }
  return bytes;
}

bool is_scale_plane(const std::string& plane) {
  return plane.find("scale") != plane.npos || plane == "scaler_mean" || plane == "quantization_factor";
}

class Poisons {
 public:
  explicit Poisons(const SchemeTensor& tensor) : tensor_(tensor) {}

  std::vector<PlantedValue> all() {
    for (const Planes* planes : {&tensor_.planes, &tensor_.policy_planes})
      for (const Plane& plane : *planes) {
        if (plane.name == "scale_and_zero") {
          add_floats(plane, 0, "");
          add_floats(plane, 1, "zero ");
        } else if (plane.name == "quantized_scalers" || plane.name == "sparse_metadata") {
          continue;
        } else if (plane.name.find("zero_point") != plane.name.npos) {
          add_zero_point(plane);
        } else if (is_scale_plane(plane.name)) {
          add_floats(plane, 0, "");
        } else {
          add_code(plane);
        }
      }
    add_padding();
    return std::move(planted_);
  }

 private:
  void add(const Plane& plane, size_t index, const std::string& poison, double value) {
    planted_.push_back({plane.name, poison, index, encoded(plane.dtype, value)});
  }

  // The last element, whose row is an ordinary one in every golden; of pairs, the first or second. Packed
  // planes may end with padding.
  size_t place_of(const Plane& plane, size_t of_pair) const {
    if (tensor_.layout != kPlain) return of_pair;
    const size_t count = plane.bytes.size() / dtype_bytes(plane.dtype);
    return plane.name == "scale_and_zero" ? count - 2 + of_pair : count - 1;
  }

  void add_floats(const Plane& plane, size_t of_pair, const std::string& what) {
    const size_t at = place_of(plane, of_pair);
    const FloatFormat& format = float_format(plane.dtype);
    if (format.has_nan) add(plane, at, what + "NaN", NAN);
    if (format.has_infinity) add(plane, at, what + "infinity", INFINITY);
    if (format.max >= 3e38) add(plane, at, what + "3e38", 3e38);
    if (!what.empty() || !format.has_sign) return;
    add(plane, at, "0", 0);
    const double value = load_float(plane.dtype, plane.bytes, at);
    add(plane, at, "negative", value == 0 ? -0.125 : -value);
  }

  void add_zero_point(const Plane& plane) {
    const size_t at = place_of(plane, 0);
    if (has_float_elements(plane.dtype)) return add_floats(plane, 0, "zero ");
    const SchemeParams& params = tensor_.scheme->params();
    if (params.mapping != Mapping::asymmetric) add(plane, at, "zero point 1", 1);
    if (params.bits < 8) add(plane, at, "zero point 100", 100);
  }

  void add_code(const Plane& plane) {
    const std::optional<DType> element = tensor_.scheme->params().element;
    const size_t at = place_of(plane, 0);
    if (has_float_elements(plane.dtype)) {
      add(plane, at, "NaN code", NAN);
    } else if (element == DType::float6_e2m3fn || element == DType::float6_e3m2fn) {
      add(plane, at, "idle bit", std::to_integer<int>(plane.bytes[at]) | 0x40);
    } else if (tensor_.scheme->family() == "intx" && tensor_.scheme->params().bits < 8) {
      add(plane, at, "idle bit", 64);
    }
  }

  // A byte of a packed plane that holds nothing.
  void add_padding() {
    if (tensor_.layout == kPlain) return;
    const WeightShape shape = {tensor_.dtype, tensor_.n, tensor_.k};
    for (const Plane& plane : tensor_.planes) {
      const size_t size = dtype_bytes(plane.dtype);
      for (size_t at = plane.bytes.size(); at >= size; at -= size) {
        const std::string place = tensor_.scheme->place(shape, tensor_.layout, plane.name, at - size);
        if (place.find("padding") == place.npos) continue;
        planted_.push_back(
            {plane.name, "idle bit", at / size - 1, std::vector<std::byte>(size, std::byte{1})});
        break;
      }
    }
  }

  const SchemeTensor& tensor_;
  std::vector<PlantedValue> planted_;
};

std::optional<SchemeTensor> sampled_tensor(const Checkpoint& checkpoint, const Sample& sample) {
  for (const NamedTensor& named : checkpoint.tensors)
    if (named.name == sample.tensor) return scheme_tensor(named, sample.layout);
  return std::nullopt;
}

// Returns the position in the file of the part that holds a plane; nullopt for a plane that is converted.
std::optional<size_t> offset_of(const Checkpoint& checkpoint, const Sample& sample, const Plane& plane,
                                std::span<const std::byte> file) {
  for (const NamedTensor& named : checkpoint.tensors) {
    if (named.name != sample.tensor) continue;
    for (const InnerTensor& inner : named.payload) {
      if (inner.tensor.dtype != plane.dtype || !inner.tensor.is_contiguous()) continue;
      std::vector<std::byte> scratch;
      const auto bytes = row_major_view(inner.tensor, scratch);
      if (std::ranges::equal(bytes, plane.bytes)) return static_cast<size_t>(bytes.data() - file.data());
    }
  }
  return std::nullopt;
}

const Plane& plane_of(const SchemeTensor& tensor, const std::string& name) {
  for (const Plane& candidate : tensor.policy_planes)
    if (candidate.name == name) return candidate;
  return plane(tensor.planes, name);
}

// Is there a finding, or is the file refused?
bool is_found(const Sample& sample, std::vector<std::byte> bytes) {
  try {
    const Checkpoint checkpoint = read_checkpoint(MappedFile::from_bytes(std::move(bytes)),
                                                  options_of(*sample.golden, CrcPolicy::skip));
    const CheckpointValues values = judge_values(checkpoint, sample.layout);
    return std::ranges::find(values.findings, sample.tensor, &ValueFinding::tensor) != values.findings.end();
  } catch (const Refused&) {
    return true;
  }
}

// Values that a recipe writes for some finite weight, so that nobody can tell them from poison.
struct Writable {
  const char *family, *plane, *poison, *evidence;
};
constexpr Writable kWritable[] = {
    {"int4_tinygemm", "scale_and_zero", "zero 3e38",
     "a group of weights 3e38 has this zero: min + 8 * scale"},
    {"int4_plain", "zero_point", "zero 3e38", "a group of weights 3e38 has this zero: min + 8 * scale"},
    {"intx", "zero_point", "zero point 1",
     "the file does not tell a symmetric recipe from an asymmetric one"},
    {"gguf_proto", "super_block_min_scale", "0",
     "a minimum below 63 times the smallest number divided by 63 is 0"},
    {"nf4", "scaler_mean", "0", "float16: one scaler of 2^-9 among 2^16 blocks has a mean that rounds to 0"},
    {"nf4", "quantization_factor", "3e38", "256 / (2 * d) for scalers that are d = 4.3e-37 from their mean"},
};

TEST(Values, PlantedOnesAreFoundUnlessTheRecipeWritesThem) {
  static_assert(std::size(kWritable) <= 10);
  std::set<const Writable*> met;
  std::set<std::string> kinds, families;
  size_t planted = 0;
  for (const Sample& sample : samples()) {
    const auto file = MappedFile::open(sample.golden->file);
    const std::vector<std::byte> original(file->bytes().begin(), file->bytes().end());
    const auto held = MappedFile::from_bytes(original);
    const Checkpoint checkpoint = read_checkpoint(held, options_of(*sample.golden, CrcPolicy::skip));
    const std::optional<SchemeTensor> tensor = sampled_tensor(checkpoint, sample);
    ASSERT_TRUE(tensor) << sample.golden->id;
    for (const PlantedValue& one : Poisons(*tensor).all()) {
      const std::optional<size_t> at =
          offset_of(checkpoint, sample, plane_of(*tensor, one.plane), held->bytes());
      if (!at) continue;
      std::vector<std::byte> bytes = original;
      std::ranges::copy(one.bytes,
                        bytes.begin() + static_cast<std::ptrdiff_t>(*at + one.index * one.bytes.size()));
      if (bytes == original) continue;
      const bool found = is_found(sample, std::move(bytes));
      ++planted;
      kinds.insert(one.poison);
      families.insert(sample.family);
      const auto listed = std::ranges::find_if(kWritable, [&](const Writable& w) {
        return sample.family == w.family && one.plane == w.plane && one.poison == w.poison;
      });
      if (listed == std::end(kWritable)) {
        EXPECT_TRUE(found) << sample.golden->id << " (" << sample.container << "): " << one.plane << ": "
                           << one.poison;
        continue;
      }
      met.insert(listed);
      EXPECT_FALSE(found) << sample.golden->id << ": " << one.plane << ": " << one.poison
                          << " is listed as writable";
    }
  }
  for (const Writable& one : kWritable) EXPECT_TRUE(met.contains(&one)) << one.family << ": " << one.poison;
  EXPECT_GE(planted, 200u);
  EXPECT_GE(families.size(), 19u);
  EXPECT_THAT(kinds, testing::IsSupersetOf({"NaN", "infinity", "0", "negative", "3e38", "NaN code",
                                            "zero point 1", "zero point 100", "idle bit"}));
}

}  // namespace
}  // namespace qcts
