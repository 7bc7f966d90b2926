// SPDX-License-Identifier: BSD-3-Clause
// A scheme: what quantized bytes mean. Recipe (float -> planes), layouts (planes -> packed planes), size law,
// meaning (planes -> float), and the exact weight that the oracle of `linear` sums. Scalar, bit-exact to the
// producer that each file names.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/tensor.h"
#include "reference/numerics/affine.h"
#include "reference/schemes/linear_stages.h"
#include "reference/schemes/scheme_tables.h"

namespace qcts {

// Row-major [rows, cols], little-endian elements of `dtype`, no padding.
struct Matrix {
  DType dtype = DType::float32;
  int64_t rows = 0, cols = 0;
  std::span<const std::byte> bytes;
};

struct PlaneSpec {
  std::string name;  // the checkpoint's own: "qdata", "scale", "zero_point", "scale_and_zero"
  DType dtype = DType::uint8;
  std::vector<int64_t> shape;
  uint64_t bytes() const { return bytes_of(dtype, shape); }
};

// One inner tensor of a quantized weight, row-major.
struct Plane {
  std::string name;
  DType dtype = DType::uint8;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};
using Planes = std::vector<Plane>;

// One weight before any rounding: product + zero, each exact in double. product = code * scale, code with the
// zero point of an integer scheme already taken off (int8: q - zero_point, int4: q - 8); zero is the floating
// zero-point term.
struct ExactWeight {
  double product = 0;
  double zero = 0;
  double code = 0;
  double scale = 0;
};

// A linear layer's weight of a scheme: logical [n, k], dtype float32, float16 or bfloat16.
struct WeightShape {
  DType dtype = DType::bfloat16;
  int64_t n = 0, k = 0;
};

// The codes of a scheme: what each stands for before scale and zero point, in the order of its bits.
struct CodeSet {
  std::vector<double> values;  // empty: the codes are no finite set
  bool fixed = true;           // false: what a code stands for is in the checkpoint; `values` only names it
};
CodeSet integer_codes(int bits, bool is_signed);  // two's complement
CodeSet float_codes(DType element);               // a NaN for each code that is one

enum class ZeroPointKind : uint8_t {
  none,
  integer,   // taken off the code, before the scale
  floating,  // added after the scale
};
// How a recipe makes the stored scale: to nearest even in its dtype, or as a power of two (mx.cc).
enum class ScaleRounding : uint8_t { nearest, floor, ceil, even, rceil };

// The parameters of a scheme as data: what its name says in words. A dtype without a value is the weight's.
struct SchemeParams {
  int bits = 8;                                 // of a code
  std::optional<DType> element = DType::int8;   // of a code; int8, uint8: an integer, an index
  int code_min = 0, code_max = 0;               // of these
  std::optional<DType> scale = DType::float32;  // as stored
  ScaleRounding scale_rounding = ScaleRounding::nearest;
  int levels = 1;          // 2: scales have a scale of their own
  int64_t group_rows = 1;  // that share a scale; 0: all
  ZeroPointKind zero_point = ZeroPointKind::none;
  Mapping mapping = Mapping::symmetric;
  bool codes_wrap = false;  // the recipe keeps the low bits of a code that is out of range
};

// What a scheme is called and where it comes from.
struct SchemeInfo {
  std::string name;     // "int4_tinygemm_g128": family, then ordered parameters. Alphabet [a-z0-9_].
  std::string family;   // "int4_tinygemm": the file, the list line, the kernels' key
  std::string summary;  // one line for `qcts schemes`
  std::string source;   // the recipe's origin: package, version, function
  int64_t group = 0;    // elements along k that share a scale; 0: the whole row
  SchemeParams params = {};
  // What a file can tell: schemes that differ only in how their planes are chosen share it. Empty: the name.
  std::string meaning = {};
  std::vector<LayoutInfo> layouts;
};

// A scheme overrides what its recipe, layouts, size law and meaning need. The defaults are what most share.
class Scheme {
 public:
  virtual ~Scheme() = default;

  std::string_view name() const { return info_.name; }
  std::string_view family() const { return info_.family; }
  std::string_view summary() const { return info_.summary; }
  std::string_view source() const { return info_.source; }
  int64_t group() const { return info_.group; }
  const SchemeParams& params() const { return info_.params; }
  std::string_view meaning() const { return info_.meaning; }
  std::span<const LayoutInfo> layouts() const { return info_.layouts; }

  // Why this weight cannot be taken in this layout; nullopt when it can. Everything below requires nullopt.
  virtual std::optional<std::string> refusal(const WeightShape& shape, Layout layout = kPlain) const = 0;

  // The size law: planes of a layout in flatten order. The payload is the sum of their bytes, and nothing
  // else.
  virtual std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout = kPlain) const = 0;

  // weight.dtype is the logical dtype; result in layout "plain". Producers of different layouts may differ in
  // the recipe (int4: the least scale); `layout` says whose recipe, so that pack(quantize(w, layout), layout)
  // is what that producer writes.
  virtual Planes quantize(const Matrix& weight, Layout layout = kPlain) const = 0;
  // The defaults: every layout has the bytes of "plain".
  virtual Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const;
  virtual Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const;
  // Row-major [n, k] in the logical dtype, from layout "plain": dequantized() of each of exact_row().
  std::vector<std::byte> dequantize(const Planes& plain, const WeightShape& shape) const;

  // The k exact weights of one row, from layout "plain".
  virtual void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                         std::span<ExactWeight> out) const = 0;

  virtual CodeSet codes() const = 0;
  // The k codes of one row, from layout "plain", as indices of codes().values; -1: the element has none (2:4
  // sparsity). The default: the first plane, one code a byte, or two with the even k low, and with the bits
  // that codes() needs. Not where codes() is empty.
  virtual void row_codes(const Planes& plain, const WeightShape& shape, int64_t row,
                         std::span<int> out) const;

  // Policies, "weight_only" first where the producer has it. Default: weight_only alone.
  virtual std::span<const ActivationInfo> activations() const;
  // Planes that a policy stores beside the weight's, in flatten order: scales of a static policy. They count
  // for the size law of a file and follow the weight's planes wherever a policy reads them.
  virtual std::vector<PlaneSpec> policy_specs(const WeightShape& shape, Policy activation) const;
  // Planes of x [m, k] (x.dtype float32, float16 or bfloat16; x.bytes not read) under a policy of
  // activations() other than weight_only. Where they are integers they are called "qdata" [m, k], "scale" and
  // "zero_point" ([m, 1], or [1, 1] for all of x). `weight`: the planes of the weight in layout "plain" and
  // those of policy_specs(). The defaults throw std::invalid_argument naming the policy.
  virtual std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const;
  virtual Planes quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const;
  // What the exact sum takes in place of row `row` of x: k values, each exact in double.
  virtual void exact_activation(const Planes& activation_planes, const Matrix& x, Policy activation,
                                int64_t row, std::span<double> out) const;

  // Where the producer's own `linear` rounds, whose y of dtype `y` a golden records; each scheme names the
  // producer's code. Throws std::logic_error naming the scheme and the policy where nothing is known, which
  // is the default.
  virtual LinearStages recorded_stages(const WeightShape& weight, Policy activation, DType y) const;

  // "group 3, column 17": the place of byte `byte_offset` of plane `plane` in the scheme's own terms.
  virtual std::string place(const WeightShape& shape, Layout layout, std::string_view plane,
                            uint64_t byte_offset) const = 0;

  uint64_t payload_bytes(const WeightShape& shape, Layout layout = kPlain,
                         Policy activation = kWeightOnly) const;
  // nullopt when the scheme has none of that name.
  std::optional<Layout> find_layout(std::string_view name) const;
  std::optional<Policy> find_activation(std::string_view name) const;
  // The same; throws std::runtime_error naming the scheme and the word.
  Layout layout_named(std::string_view name) const;
  Policy policy_named(std::string_view name) const;

 protected:
  static constexpr std::initializer_list<DType> kUsualDtypes = {DType::float32, DType::float16,
                                                                DType::bfloat16};

  explicit Scheme(SchemeInfo info);

  // One weight with the roundings of the producer's dequantize, in the logical dtype. The default: code *
  // scale, a float32 product of two float32 numbers, then the cast.
  virtual double dequantized(DType dtype, const ExactWeight& weight) const;

  // Throws std::invalid_argument naming the policy unless activations() has it and it quantizes x.
  void require_policy(Policy activation) const;

  // What refusal() begins with, in this order: a layout that is not of layouts() and a dtype that is not of
  // `dtypes`; then an empty weight and a K that `divisor` does not divide, which `of` names in the message
  // ("the group size "; 0: every K is taken).
  std::optional<std::string> refused_type(const WeightShape& shape, Layout layout,
                                          std::initializer_list<DType> dtypes = kUsualDtypes) const;
  std::optional<std::string> refused_size(const WeightShape& shape, int64_t divisor = 0,
                                          std::string_view of = "the group size ") const;

 private:
  SchemeInfo info_;
};

// All schemes of schemes.inc in list order; built once, immutable.
std::span<const Scheme* const> schemes();
const Scheme* find_scheme(std::string_view name);  // nullptr when unknown
// Both known, and one Scheme::meaning().
bool same_meaning(std::string_view scheme, std::string_view other);

const Plane& plane(const Planes& planes, std::string_view name);  // throws std::out_of_range

// Zero-filled planes of these specs, in their order.
Planes make_planes(const std::vector<PlaneSpec>& specs);
// Throws std::invalid_argument naming the plane when one is missing or its dtype, shape or size is not the
// spec's.
void require_planes(const Planes& planes, const std::vector<PlaneSpec>& specs);
// Byte offset of the first element that differs between two planes of one spec; nullopt when equal. In
// floating planes NaN equals NaN whatever its sign and payload bits (0/0 has the sign bit on x86 and not on
// Arm); everything else is bitwise.
std::optional<uint64_t> first_difference(const Plane& want, const Plane& got);

// "row 3, k 17": an index of [.., cols] by the names of its two parts.
std::string named_indices(std::string_view row, std::string_view col, int64_t index, int64_t cols);
// "row 5, k 12 (low nibble of byte 326); row 5, k 13 (high nibble)": the weights [n, k] of a byte that holds
// two codes; " (padding)" behind those that `stored` has beyond `shape`. nibble_of(n, k): twice the byte of
// the code, and one more for the high nibble.
std::string named_nibbles(const WeightShape& shape, const WeightShape& stored, int64_t byte,
                          const std::function<int64_t(int64_t, int64_t)>& nibble_of);

// linear's oracle: y = sum_k x[k] * w[row,k] + bias in double, with the sums over k that the bound needs
// (reference/oracle/bound.h). p = product, z = zero, c = code, s = scale of each weight.
struct LinearOracle {
  double y = 0;  // sum x*(p+z), plus bias
  double bias = 0;
  double abs_product = 0;     // sum |x*p|
  double abs_zero = 0;        // sum |x*z|
  double abs_weight = 0;      // sum |x*(p+z)|
  double abs_code = 0;        // sum |x*c|
  double abs_x = 0;           // sum |x|
  double sum_abs_weight = 0;  // sum |p| + |z|
  double sum_abs_scale = 0;   // sum |s|
  double sum_abs_code = 0;    // sum |c|
  double group_product = 0;   // sum over groups of |sum in the group of x*p|
  double group_zero = 0;      // sum over groups of |sum in the group of x*z|
  // Of quantized x = (code - zero point) * scale: with o = zero point * scale, taken off after the sum.
  double group_coded = 0;   // sum over groups of |sum in the group of (x+o)*p|
  double group_offset = 0;  // sum over groups of |sum in the group of o*p|
  bool scaled_x = false;    // x is quantized: its scale is one more multiplication
  double max_abs_x = 0;
  int64_t terms = 0;      // k
  int64_t groups = 0;     // sums that share a scale
  bool has_zero = false;  // some z is not 0
};

// Of a row of weights, what all rows of x find the same.
struct OracleWeights {
  std::span<const ExactWeight> row;
  size_t group_elems = 0;                                          // that share a scale
  std::vector<double> group_weights;                               // sum of p of each group
  double sum_abs_weight = 0, sum_abs_scale = 0, sum_abs_code = 0;  // as LinearOracle's
  bool has_zero = false;
  bool finite = true;  // every p, z, p+z and c: times 0 they are 0
};
// group: elements along k that share a scale, 0 for the whole row (Scheme::group()). `row` outlives the
// result.
OracleWeights oracle_weights(std::span<const ExactWeight> row, int64_t group);

// Of a row of x, what all rows of weights find the same.
struct OracleX {
  std::span<const double> row;
  std::vector<uint32_t> places;  // of the elements that are not 0, in order
  double abs_x = 0, max_abs_x = 0;
};
// k values, exact in double, which outlive the result.
OracleX oracle_x(std::span<const double> row);

// offset: zero point times scale of a row of quantized x; nullopt where x is not quantized.
LinearOracle linear_oracle(const OracleWeights& weights, const OracleX& x, double bias,
                           std::optional<double> offset = std::nullopt);
LinearOracle linear_oracle(std::span<const ExactWeight> row, std::span<const double> x, double bias,
                           int64_t group, std::optional<double> offset = std::nullopt);

}  // namespace qcts
