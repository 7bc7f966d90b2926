// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/expected/coverage.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

using CoverageJson = nlohmann::ordered_json;

// The finite values of a set in order, each once, and the place of each code among them; -1: none.
struct OrderedCodes {
  std::vector<double> values;
  std::vector<int> places;

  explicit OrderedCodes(const CodeSet& codes) {
    for (const double value : codes.values)
      if (std::isfinite(value)) values.push_back(value + 0.0);  // one zero
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (const double value : codes.values) {
      const auto found = std::ranges::lower_bound(values, value + 0.0);
      places.push_back(std::isfinite(value) ? static_cast<int>(found - values.begin()) : -1);
    }
  }
};

void note_special(DType dtype, double value, std::set<std::string>& seen) {
  const FloatFormat& format = float_format(dtype);
  if (std::isnan(value)) seen.insert("nan");
  if (std::isinf(value)) seen.insert("inf");
  if (value == 0) seen.insert(std::signbit(value) ? "-zero" : "zero");
  if (value != 0 && std::fabs(value) < format.min_normal) seen.insert("subnormal");
  if (std::fabs(value) == format.max) seen.insert("largest");
}

// The plane that scales codes, and how many of its elements belong together, the first of which is the scale.
const Plane* scale_plane(const Planes& planes, size_t& stride) {
  for (const Plane& candidate : planes) {
    if (candidate.name != "scale" && candidate.name != "scales" && candidate.name != "scale_and_zero")
      continue;
    stride = candidate.name == "scale_and_zero" ? 2 : 1;
    return &candidate;
  }
  return nullptr;
}

void note_scales(const Planes& planes, Touched& touched) {
  size_t stride = 1;
  const Plane* scales = scale_plane(planes, stride);
  if (!scales || !is_float(scales->dtype)) return;
  std::set<int>& exponents = touched.exponents[std::string(dtype_name(scales->dtype))];
  for (size_t i = 0; i < scales->bytes.size() / dtype_bytes(scales->dtype); i += stride) {
    const double scale = load_float(scales->dtype, scales->bytes, i);
    note_special(scales->dtype, scale, touched.scales);
    if (std::isfinite(scale) && scale != 0) exponents.insert(std::ilogb(scale));
  }
}

// Does w lie exactly halfway between what its code means and what a neighbouring code would? The lower one's
// place.
std::optional<int> halfway_place(const OrderedCodes& ordered, int code, double value,
                                 const ExactWeight& exact, double w) {
  const int place = ordered.places[static_cast<size_t>(code)];
  if (place < 0 || exact.scale == 0 || !std::isfinite(exact.scale) || !std::isfinite(w)) return std::nullopt;
  const double taken_off = value - exact.code;  // an integer zero point
  for (const int lower : {place - 1, place}) {
    if (lower < 0 || lower + 1 >= static_cast<int>(ordered.values.size())) continue;
    const size_t at = static_cast<size_t>(lower);
    const double middle = (ordered.values[at] + ordered.values[at + 1]) / 2 - taken_off;
    if (middle * exact.scale == w - exact.zero) return lower;
  }
  return std::nullopt;
}

// `floats`: what was quantized, row-major, in `dtype`; empty when the planes are only read.
void note_planes(const Scheme& scheme, const Planes& planes, const WeightShape& shape,
                 std::span<const std::byte> floats, Touched& touched) {
  note_scales(planes, touched);
  const CodeSet codes = scheme.codes();
  if (codes.values.empty()) return;
  const OrderedCodes ordered(codes);
  std::vector<char> seen(codes.values.size());
  std::vector<int> row(static_cast<size_t>(shape.k));
  std::vector<ExactWeight> exact(row.size());
  for (int64_t n = 0; n < shape.n; ++n) {
    scheme.row_codes(planes, shape, n, row);
    for (const int code : row)
      if (code >= 0) seen[static_cast<size_t>(code)] = 1;
    if (floats.empty() || !codes.fixed) continue;
    scheme.exact_row(planes, shape, n, exact);
    for (size_t k = 0; k < row.size(); ++k) {
      if (row[k] < 0) continue;
      const double w = load_float(shape.dtype, floats, static_cast<size_t>(n * shape.k) + k);
      const double value = codes.values[static_cast<size_t>(row[k])];
      if (const auto place = halfway_place(ordered, row[k], value, exact[k], w))
        touched.halfway.insert(*place);
    }
  }
  std::set<int>& noted = floats.empty() ? touched.codes_read : touched.codes_written;
  for (size_t code = 0; code < seen.size(); ++code)
    if (seen[code]) noted.insert(static_cast<int>(code));
}

bool are_of(const Planes& planes, const std::vector<PlaneSpec>& specs) {
  return std::ranges::all_of(specs, [&](const PlaneSpec& spec) {
    return std::ranges::any_of(planes, [&](const Plane& plane) {
      return plane.name == spec.name && plane.dtype == spec.dtype && plane.shape == spec.shape;
    });
  });
}

// Of activations: eight bits of their own, or the scheme's. Empty where a policy leaves x in floating point.
CodeSet activation_codes(const Scheme& scheme, Policy activation) {
  for (const PlaneSpec& spec : scheme.activation_specs({DType::bfloat16, 1, 256, {}}, activation)) {
    if (spec.name != "qdata") continue;
    if (spec.dtype == DType::int8) return integer_codes(8, true);
    const bool as_weight = scheme.plane_specs({DType::bfloat16, 1, 256}).front().dtype == spec.dtype;
    if (spec.dtype == DType::uint8 && !as_weight) return integer_codes(8, false);
    return spec.dtype == DType::uint8 ? scheme.codes() : float_codes(spec.dtype);
  }
  return {};
}

// Quantized activations that are stored as a weight of the scheme would be; otherwise codes of one byte
// alone.
void note_activation(const Question& question, Touched& touched) {
  const KernelInput& input = question.input;
  const Planes& planes = question.expected.planes;
  const WeightShape rows{input.x_dtype, input.m, input.weight.k};
  const size_t count = activation_codes(*input.scheme, input.activation).values.size();
  if (count == input.scheme->codes().values.size() && !input.scheme->refusal(rows) &&
      are_of(planes, input.scheme->plane_specs(rows)))
    return note_planes(*input.scheme, planes, rows, input.x, touched);
  note_scales(planes, touched);
  for (const Plane& plane : planes)
    if (plane.name == "qdata" && count == 256)
      for (const std::byte byte : plane.bytes) touched.codes_written.insert(std::to_integer<int>(byte));
}

template <typename T>
std::set<T> news(std::set<T>& known, const std::set<T>& other) {
  std::set<T> fresh;
  for (const T& value : other)
    if (known.insert(value).second) fresh.insert(value);
  return fresh;
}

CoverageJson touched_json(const Touched& touched) {
  CoverageJson json = CoverageJson::object();
  const auto put = [&](const char* key, const auto& values) {
    if (!values.empty()) json[key] = values;
  };
  put("codes_written", touched.codes_written);
  put("codes_read", touched.codes_read);
  put("halfway", touched.halfway);
  put("exponents", touched.exponents);
  put("weights", touched.weights);
  put("scales", touched.scales);
  put("k_mod_32", touched.k_mod_32);
  put("n_mod_16", touched.n_mod_16);
  put("m", touched.m);
  return json;
}

Touched from_json(const CoverageJson& json) {
  Touched touched;
  const auto get = [&]<typename T>(const char* key, T& values) {
    if (json.contains(key)) values = json.at(key).get<T>();
  };
  get("codes_written", touched.codes_written);
  get("codes_read", touched.codes_read);
  get("halfway", touched.halfway);
  get("exponents", touched.exponents);
  get("weights", touched.weights);
  get("scales", touched.scales);
  get("k_mod_32", touched.k_mod_32);
  get("n_mod_16", touched.n_mod_16);
  get("m", touched.m);
  return touched;
}

}  // namespace

bool Touched::empty() const {
  return codes_written.empty() && codes_read.empty() && halfway.empty() && exponents.empty() &&
         weights.empty() && scales.empty() && k_mod_32.empty() && n_mod_16.empty() && m.empty();
}

Touched Touched::take_new(const Touched& other) {
  Touched fresh;
  fresh.codes_written = news(codes_written, other.codes_written);
  fresh.codes_read = news(codes_read, other.codes_read);
  fresh.halfway = news(halfway, other.halfway);
  for (const auto& [dtype, values] : other.exponents)
    if (const std::set<int> more = news(exponents[dtype], values); !more.empty())
      fresh.exponents[dtype] = more;
  fresh.weights = news(weights, other.weights);
  fresh.scales = news(scales, other.scales);
  fresh.k_mod_32 = news(k_mod_32, other.k_mod_32);
  fresh.n_mod_16 = news(n_mod_16, other.n_mod_16);
  fresh.m = news(m, other.m);
  return fresh;
}

std::string touched_name(const Question& question) {
  const std::string name(question.input.scheme->name());
  return question.input.op == Op::quantize_activation
             ? name + ":" + std::string(question.input.activation.name())
             : name;
}

Touched touched_by(const Question& question) {
  const KernelInput& input = question.input;
  Touched touched;
  const auto note_floats = [&](DType dtype) {
    for (size_t i = 0; i < input.x.size() / dtype_bytes(dtype); ++i)
      note_special(dtype, load_float(dtype, input.x, i), touched.weights);
  };
  if (input.op == Op::quantize_activation) {
    note_floats(input.x_dtype);
    note_activation(question, touched);
  } else if (input.op == Op::quantize) {
    note_floats(input.weight.dtype);
    note_planes(*input.scheme, question.expected.planes, input.weight, input.x, touched);
  } else {
    const Planes& plain = input.op == Op::unpack ? question.expected.planes : input.planes;
    note_planes(*input.scheme, plain, input.weight, {}, touched);
  }
  touched.k_mod_32.insert(static_cast<int>(input.weight.k % 32));
  if (input.op != Op::quantize_activation) touched.n_mod_16.insert(static_cast<int>(input.weight.n % 16));
  if (input.has_rows_of_x()) touched.m.insert(static_cast<int>(input.m));
  return touched;
}

CoverageJson CoverageLog::note(const std::string& case_id, const Question& question) {
  if (!noted_.insert(case_id).second) return nullptr;
  const std::string name = touched_name(question);
  const Touched fresh = said_[name].take_new(touched_by(question));
  if (fresh.empty()) return nullptr;
  return {{"of", name}, {"new", touched_json(fresh)}};
}

namespace {

std::string code_text(double value, int code) {
  if (std::isfinite(value)) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return value == 0 && std::signbit(value) ? "-0" : text;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%s (0x%02x)",
                std::isnan(value) ? "NaN"
                : value > 0       ? "Inf"
                                  : "-Inf",
                code);
  return text;
}

// "a to b" for runs of what `names` lists in order and `hit` lacks.
CoverageJson holes_of(const std::vector<std::string>& names, const std::vector<bool>& hit) {
  CoverageJson holes = CoverageJson::array();
  for (size_t i = 0; i < names.size(); ++i) {
    if (hit[i]) continue;
    size_t last = i;
    while (last + 1 < names.size() && !hit[last + 1]) ++last;
    holes.push_back(last == i ? names[i] : names[i] + " to " + names[last]);
    i = last;
  }
  return holes;
}

CoverageJson counted(const std::vector<std::string>& names, const std::vector<bool>& hit) {
  return {{"hit", std::ranges::count(hit, true)}, {"of", names.size()}, {"holes", holes_of(names, hit)}};
}

CoverageJson codes_json(const CodeSet& codes, const std::set<int>& seen) {
  std::vector<int> order(codes.values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto rank = [&](int code) {
    const double value = codes.values[static_cast<size_t>(code)];
    return std::tuple(std::isnan(value), std::isnan(value) ? 0.0 : value, !std::signbit(value));
  };
  std::ranges::stable_sort(order, [&](int a, int b) { return rank(a) < rank(b); });
  std::vector<std::string> names;
  std::vector<bool> hit;
  for (const int code : order) {
    names.push_back(code_text(codes.values[static_cast<size_t>(code)], code));
    hit.push_back(seen.contains(code));
  }
  return counted(names, hit);
}

CoverageJson halfway_json(const CodeSet& codes, const std::set<int>& seen) {
  const OrderedCodes ordered(codes);
  std::vector<std::string> names;
  std::vector<bool> hit;
  for (size_t i = 0; i + 1 < ordered.values.size(); ++i) {
    names.push_back(code_text((ordered.values[i] + ordered.values[i + 1]) / 2, 0));
    hit.push_back(seen.contains(static_cast<int>(i)));
  }
  return counted(names, hit);
}

CoverageJson exponents_json(const std::string& dtype_text, const std::set<int>& seen) {
  const FloatFormat& format = float_format(dtype_from_name(dtype_text).value());
  std::vector<std::string> names;
  std::vector<bool> hit;
  for (int e = std::ilogb(format.min_subnormal); e <= std::ilogb(format.max); ++e) {
    names.push_back(std::to_string(e));
    hit.push_back(seen.contains(e));
  }
  CoverageJson json = counted(names, hit);
  json["dtype"] = dtype_text;
  return json;
}

CoverageJson entry_json(const std::string& name, const Touched& touched) {
  const size_t colon = name.find(':');
  const Scheme* scheme = find_scheme(name.substr(0, colon));
  if (!scheme) throw std::runtime_error("coverage of an unknown scheme: " + name);
  CoverageJson json = {{"scheme", name.substr(0, colon)},
                       {"activation", colon == name.npos ? "" : name.substr(colon + 1)}};
  const CodeSet codes = colon == name.npos
                            ? scheme->codes()
                            : activation_codes(*scheme, scheme->policy_named(name.substr(colon + 1)));
  const bool finite = !codes.values.empty();
  json["codes_written"] = finite ? codes_json(codes, touched.codes_written) : CoverageJson();
  json["codes_read"] = finite && colon == name.npos ? codes_json(codes, touched.codes_read) : CoverageJson();
  json["halfway"] = finite && codes.fixed ? halfway_json(codes, touched.halfway) : CoverageJson();
  json["scale_exponents"] = CoverageJson::array();
  for (const auto& [dtype, seen] : touched.exponents)
    json["scale_exponents"].push_back(exponents_json(dtype, seen));
  json["special_inputs"] = touched.weights;
  json["special_scales"] = touched.scales;
  json["k_mod_32"] = touched.k_mod_32;
  json["n_mod_16"] = touched.n_mod_16;
  json["m"] = touched.m;
  return json;
}

}  // namespace

CoverageJson coverage_json(std::span<const Verdict> verdicts) {
  std::map<std::string, Touched> joined;
  for (const Verdict& verdict : verdicts)
    if (verdict.coverage.is_object())
      joined[verdict.coverage.at("of").get<std::string>()].take_new(from_json(verdict.coverage.at("new")));
  CoverageJson list = CoverageJson::array();
  for (const auto& [name, touched] : joined) list.push_back(entry_json(name, touched));
  return list;
}

}  // namespace qcts
