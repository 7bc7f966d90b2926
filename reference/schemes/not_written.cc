// SPDX-License-Identifier: BSD-3-Clause
#include "reference/schemes/not_written.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// Are two elements in each byte?
bool has_nibbles(const Scheme& scheme, const PlaneSpec& spec, const WeightShape& shape) {
  if (spec.name == "sparse_metadata") return true;
  return scheme.params().bits == 4 && !has_float_elements(spec.dtype) &&
         spec.bytes() * 2 == static_cast<uint64_t>(shape.n * shape.k);
}

double nibble_value(const Scheme& scheme, const PlaneSpec& spec, int nibble) {
  const std::optional<DType> element = scheme.params().element;
  if (spec.name == "sparse_metadata" || element == DType::uint8) return nibble;
  if (element == DType::float4_e2m1fn_x2)
    return decode_float(DType::float4_e2m1fn_x2, static_cast<uint64_t>(nibble));
  return nibble >= 8 ? nibble - 16 : nibble;
}

// NaN for a byte with bits besides its code.
double byte_value(const Scheme& scheme, DType dtype, int byte) {
  if (dtype == DType::int8) return static_cast<int8_t>(byte);
  if (has_float_elements(dtype)) return decode_float(dtype, static_cast<uint64_t>(byte));
  const std::optional<DType> element = scheme.params().element;
  if (element == DType::float6_e2m3fn || element == DType::float6_e3m2fn)
    return byte < 64 ? decode_float(*element, static_cast<uint64_t>(byte)) : std::nan("");
  return byte;
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// One plane as elements with numbers.
class Elements {
 public:
  Elements(const Scheme& scheme, const PlaneSpec& spec, const WeightShape& shape,
           std::span<const std::byte> bytes)
      : name_(spec.name),
        dtype_(spec.dtype),
        bytes_(bytes),
        nibbles_(has_nibbles(scheme, spec, shape)),
        count_(numel_of(spec.shape)) {
    if (nibbles_) count_ = static_cast<int64_t>(spec.bytes()) * 2;
    for (int raw = 0; raw < codes(); ++raw)
      values_[static_cast<size_t>(raw)] =
          nibbles_ ? nibble_value(scheme, spec, raw) : byte_value(scheme, dtype_, raw);
  }

  const std::string& name() const { return name_; }
  int64_t count() const { return count_; }
  // The number of different elements, or 0 for an element of more than a byte.
  int codes() const { return nibbles_ ? 16 : dtype_bytes(dtype_) == 1 ? 256 : 0; }
  int raw(int64_t index) const {
    return nibbles_ ? load_nibble(bytes_, index) : std::to_integer<int>(bytes_[static_cast<size_t>(index)]);
  }
  double value_of(int raw) const { return values_[static_cast<size_t>(raw)]; }
  double number(int64_t index) const {
    if (codes() > 0) return value_of(raw(index));
    if (has_float_elements(dtype_)) return load_float(dtype_, bytes_, static_cast<size_t>(index));
    int32_t word = 0;
    for (int i = 3; i >= 0; --i)
      word = static_cast<int32_t>(static_cast<uint32_t>(word) << 8 |
                                  std::to_integer<uint32_t>(bytes_[static_cast<size_t>(4 * index + i)]));
    return word;
  }
  uint64_t byte_offset(int64_t index) const {
    return static_cast<uint64_t>(nibbles_ ? index / 2 : index * static_cast<int64_t>(dtype_bytes(dtype_)));
  }
  std::string text(int64_t index) const {
    const double value = number(index);
    if (!std::isnan(value) || has_float_elements(dtype_)) return number_text(value);
    char text[32];
    std::snprintf(text, sizeof text, "0x%02x with idle bits", static_cast<unsigned>(raw(index)));
    return text;
  }

 private:
  std::string name_;
  DType dtype_;
  std::span<const std::byte> bytes_;
  bool nibbles_;
  int64_t count_;
  std::array<double, 256> values_{};
};

using Cases = uint32_t;  // a set of cases, one bit each

// The elements first, first + step, ... of one plane, and their ranges in each case.
struct PlanePart {
  int first = 0, step = 1;
  std::vector<std::vector<ValueRange>> in_case;

  Cases holding(double value) const {
    Cases found = 0;
    for (size_t c = 0; c < in_case.size(); ++c)
      if (std::ranges::any_of(in_case[c], [&](const ValueRange& range) { return range.holds(value); }))
        found |= Cases{1} << c;
    return found;
  }
  std::string text(Cases cases) const {
    std::vector<std::string> words;
    for (size_t c = 0; c < in_case.size(); ++c)
      for (const ValueRange& range : in_case[c])
        if (const std::string word = described(range);
            (cases >> c & 1) && std::ranges::find(words, word) == words.end())
          words.push_back(word);
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }
};

std::vector<PlanePart> parts_of(const Written& written, std::string_view plane) {
  std::vector<PlanePart> parts;
  for (size_t c = 0; c < written.size(); ++c)
    for (const WrittenRange& range : written[c].ranges) {
      if (range.plane != plane) continue;
      auto part = std::ranges::find(parts, range.first, &PlanePart::first);
      if (part == parts.end())
        part = parts.insert(part,
                            {range.first, range.step, std::vector<std::vector<ValueRange>>(written.size())});
      part->in_case[c].push_back(range.values);
    }
  return parts;
}

bool depends_on_case(const PlanePart& part) {
  return std::ranges::any_of(part.in_case,
                             [&](const auto& ranges) { return ranges != part.in_case.front(); });
}

struct Column {
  Elements elements;
  std::vector<PlanePart> parts;
};

class Finder {
 public:
  Finder(const Scheme& scheme, const Written& written, const WeightShape& shape)
      : scheme_(scheme), shape_(shape), all_((Cases{1} << written.size()) - 1), written_(written) {}

  void add(const PlaneSpec& spec, std::span<const std::byte> bytes) {
    columns_.push_back({Elements(scheme_, spec, shape_, bytes), parts_of(written_, spec.name)});
    if (columns_.back().parts.empty())
      throw std::logic_error(std::string(scheme_.name()) + " does not say what it writes into " + spec.name);
  }

  // Checks every value on its own.
  std::vector<NotWritten> run_values() {
    for (const Column& column : columns_) check_values(column);
    return std::move(found_);
  }

  // Checks every parameter, then every element of the weight.
  std::vector<NotWritten> run() {
    const auto largest =
        std::ranges::max_element(columns_, {}, [](const Column& column) { return column.elements.count(); });
    std::iter_swap(largest, columns_.begin());
    for (const Column& column : std::span(columns_).subspan(1)) check_values(column);
    check_elements(columns_.front());
    return std::move(found_);
  }

 private:
  void check_values(const Column& column) {
    for (const PlanePart& part : column.parts)
      for (int64_t i = part.first; i < column.elements.count(); i += part.step)
        if (part.holding(column.elements.number(i)) == 0)
          report(column, i, part, 0, "the recipe writes " + part.text(all_));
  }

  void report(const Column& column, int64_t index, const PlanePart& part, Cases cases,
              const std::string& why) {
    const auto key = std::tuple(column.elements.name(), part.first, cases);
    const auto [at, is_new] = places_.try_emplace(key, found_.size());
    if (is_new)
      found_.push_back(
          {column.elements.name(), column.elements.byte_offset(index), column.elements.text(index), why, 0});
    ++found_[at->second].count;
  }

  static int64_t index_of(const PlanePart& part, int64_t index) {
    return index - index % part.step + part.first;
  }

  // Returns the cases of an element's parameters: none if the recipe writes one of them in no case, or not
  // all together, which is reported at the first that does not fit those before it.
  Cases cases_of_parameters(int64_t row, int64_t k) {
    Cases cases = all_;
    for (const Column& column : std::span(columns_).subspan(1)) {
      const int64_t index = scheme_.element_of(shape_, column.elements.name(), row, k);
      for (const PlanePart& part : column.parts) {
        if (!depends_on_case(part)) continue;
        const int64_t at = index_of(part, index);
        const Cases here = part.holding(column.elements.number(at));
        if (here == 0) return 0;  // reported by check_values
        if ((cases & here) == 0) {
          report(column, at, part, cases, beside(row, k, column) + "the recipe writes " + part.text(cases));
          return 0;
        }
        cases &= here;
      }
    }
    return cases;
  }

  // Names the parameters that decide the case, up to `end`: "with scale 0, ".
  std::string beside(int64_t row, int64_t k, const Column& end) const {
    std::string text;
    for (const Column& column : std::span(columns_).subspan(1)) {
      if (&column == &end) break;
      for (const PlanePart& part : column.parts)
        if (depends_on_case(part))
          text += (text.empty() ? "with " : " and ") + column.elements.name() + " " +
                  column.elements.text(
                      index_of(part, scheme_.element_of(shape_, column.elements.name(), row, k)));
    }
    return text.empty() ? text : text + ", ";
  }

  void check_elements(const Column& codes) {
    const int64_t columns = codes.elements.count() / shape_.n;  // k / 2 if two of four are stored
    const int64_t group = columns < shape_.k ? 2 : scheme_.group() == 0 ? columns : scheme_.group();
    const int64_t step = columns % group == 0 ? group : 1;
    for (int64_t row = 0; row < shape_.n; ++row)
      for (int64_t k = 0; k < columns; k += step) {
        const Cases cases = cases_of_parameters(row, k);
        if (cases != 0) check_codes(codes, cases, row, k, std::min(k + step, columns));
      }
  }

  void check_codes(const Column& codes, Cases cases, int64_t row, int64_t k, int64_t end) {
    const std::vector<uint8_t>& allowed = allowed_codes(codes, cases);
    if (allowed.empty() && codes.elements.codes() > 0) return;  // all of them
    for (; k < end; ++k) {
      const int64_t index = scheme_.element_of(shape_, codes.elements.name(), row, k);
      const PlanePart& part = codes.parts[static_cast<size_t>(index % codes.parts.front().step)];
      const bool fits = codes.elements.codes() > 0
                            ? allowed[static_cast<size_t>(part.first * 256 + codes.elements.raw(index))] != 0
                            : (part.holding(codes.elements.number(index)) & cases) != 0;
      if (fits) continue;
      const bool ever = part.holding(codes.elements.number(index)) != 0;
      report(codes, index, part, ever ? cases : 0,
             (ever ? beside(row, k, codes) : "") + "the recipe writes " + part.text(ever ? cases : all_));
    }
  }

  // Which codes fit these cases, by part and raw code. Empty if all do.
  const std::vector<uint8_t>& allowed_codes(const Column& codes, Cases cases) {
    const auto [at, is_new] = allowed_.try_emplace(cases);
    if (!is_new) return at->second;
    std::vector<uint8_t> allowed(codes.parts.size() * 256);
    bool all = true;
    for (const PlanePart& part : codes.parts)
      for (int raw = 0; raw < codes.elements.codes(); ++raw) {
        const bool fits = (part.holding(codes.elements.value_of(raw)) & cases) != 0;
        allowed[static_cast<size_t>(part.first * 256 + raw)] = fits;
        all = all && fits;
      }
    if (!all) at->second = std::move(allowed);
    return at->second;
  }

  const Scheme& scheme_;
  const WeightShape shape_;
  const Cases all_;
  const Written& written_;
  std::vector<Column> columns_;
  std::map<Cases, std::vector<uint8_t>> allowed_;
  std::map<std::tuple<std::string, int, Cases>, size_t> places_;
  std::vector<NotWritten> found_;
};

}  // namespace

int64_t stored_elements(const Scheme& scheme, const PlaneSpec& spec, const WeightShape& shape) {
  return Elements(scheme, spec, shape, {}).count();
}

std::vector<double> stored_numbers(const Scheme& scheme, const PlaneSpec& spec, const WeightShape& shape,
                                   std::span<const std::byte> bytes) {
  const Elements elements(scheme, spec, shape, bytes);
  std::vector<double> numbers(static_cast<size_t>(elements.count()));
  for (int64_t i = 0; i < elements.count(); ++i) numbers[static_cast<size_t>(i)] = elements.number(i);
  return numbers;
}

std::vector<NotWritten> not_written(const Scheme& scheme, const Planes& plain, const WeightShape& shape,
                                    Layout layout, Policy activation) {
  std::vector<PlaneSpec> specs = scheme.plane_specs(shape);
  require_planes(plain, specs);
  const Written written = scheme.written(shape, layout);
  Finder finder(scheme, written, shape);
  for (const PlaneSpec& spec : specs) finder.add(spec, plane(plain, spec.name).bytes);
  std::vector<NotWritten> found = finder.run();

  const Written of_x = {{"", "", scheme.policy_ranges(shape, activation)}};
  for (const PlaneSpec& spec : scheme.policy_specs(shape, activation)) {
    const auto given = std::ranges::find(plain, spec.name, &Plane::name);
    if (given == plain.end()) continue;
    require_planes(plain, {spec});
    Finder values(scheme, of_x, shape);
    values.add(spec, given->bytes);
    for (NotWritten& each : values.run_values()) found.push_back(std::move(each));
  }
  return found;
}

}  // namespace qcts
