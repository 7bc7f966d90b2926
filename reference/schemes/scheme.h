// SPDX-License-Identifier: BSD-3-Clause
// A scheme defines the meaning of quantized bytes. It consists of
//   the recipe         float -> planes
//   the layouts        planes -> packed planes
//   the size formula
//   the meaning        planes -> float
//   the exact weights  that the oracle of `linear` sums
// A scheme is scalar code, and bit-exact to the producer that its file names.
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
#include "reference/schemes/written.h"

namespace qcts {

// A row-major [rows, cols] matrix of little-endian elements of `dtype`, without padding.
struct Matrix {
  DType dtype = DType::float32;
  int64_t rows = 0, cols = 0;
  std::span<const std::byte> bytes;
};

struct PlaneSpec {
  std::string name;  // name in the checkpoint: "qdata", "scale", "zero_point", "scale_and_zero"
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

// One weight before any rounding: product + zero, each exact in double.
// `product` is code * scale. `zero` is the floating zero-point term.
// An integer scheme has subtracted its zero point from the code (int8: q - zero_point, int4: q - 8).
struct ExactWeight {
  double product = 0;
  double zero = 0;
  double code = 0;
  double scale = 0;
};

// The logical shape [n, k] of a scheme's weight, and its dtype: float32, float16 or bfloat16.
struct WeightShape {
  DType dtype = DType::bfloat16;
  int64_t n = 0, k = 0;
};

// The codes of a scheme: the value of each code before scale and zero point, in the order of the code's bits.
struct CodeSet {
  std::vector<double> values;  // empty: the codes are not a finite set
  bool fixed = true;           // false: the checkpoint defines the values; `values` only names the codes
};
CodeSet integer_codes(int bits, bool is_signed);  // two's complement
CodeSet float_codes(DType element);               // NaN for codes that are NaN

enum class ZeroPointKind : uint8_t {
  none,
  integer,   // subtracted from the code before scaling
  floating,  // added after the scale
};
// Rounding of the stored scale: to nearest even in its dtype, or to a power of two (mx.cc).
enum class ScaleRounding : uint8_t { nearest, floor, ceil, even, rceil };

// A scheme's parameters as data, as its name states them. nullopt for a dtype means the weight's dtype.
struct SchemeParams {
  int bits = 8;                                 // number of bits of a code
  std::optional<DType> element = DType::int8;   // type of a code; int8 means an integer, uint8 an index
  int code_min = 0, code_max = 0;               // range of the codes
  std::optional<DType> scale = DType::float32;  // type of the stored scales
  ScaleRounding scale_rounding = ScaleRounding::nearest;
  int levels = 1;          // 2: the scales have their own scale
  int64_t group_rows = 1;  // rows that share a scale; 0: all rows
  ZeroPointKind zero_point = ZeroPointKind::none;
  Mapping mapping = Mapping::symmetric;
  bool codes_wrap = false;  // the recipe keeps the low bits of an out-of-range code
};

// The names of a scheme and its origin.
struct SchemeInfo {
  std::string name;     // "int4_tinygemm_g128": family, then ordered parameters, in the alphabet [a-z0-9_]
  std::string family;   // "int4_tinygemm": the name of the file, the list line and the kernels' key
  std::string summary;  // one line for `qcts schemes`
  std::string source;   // origin of the recipe: package, version, function
  int64_t group = 0;    // elements along k that share a scale; 0: the whole row
  SchemeParams params = {};
  // The part of the name that a file records.
  // Schemes that differ only in the choice of their planes share this part. Empty: the whole name.
  std::string meaning = {};
  std::vector<LayoutInfo> layouts;
};

// A scheme overrides the functions that its recipe, layouts, size formula and meaning need.
// The defaults are the common case.
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

  // Returns the reason why this weight cannot have this layout, or nullopt if it can.
  // All functions below require nullopt.
  virtual std::optional<std::string> refusal(const WeightShape& shape, Layout layout = kPlain) const = 0;

  // Returns the size formula: the planes of a layout in flatten order.
  // The payload is exactly the sum of the planes' bytes.
  virtual std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout = kPlain) const = 0;

  // Quantizes a weight of the logical dtype. The result has layout "plain".
  // Producers of different layouts may differ in the recipe (int4: the minimum scale).
  // `layout` selects the recipe, so pack(quantize(w, layout), layout) equals the producer's planes.
  virtual Planes quantize(const Matrix& weight, Layout layout = kPlain) const = 0;
  // Convert between "plain" and a layout. By default, every layout has the bytes of "plain".
  virtual Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const;
  virtual Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const;
  // Dequantizes layout "plain" to row-major [n, k] in the logical dtype.
  // Applies dequantized() to each weight of exact_row().
  std::vector<std::byte> dequantize(const Planes& plain, const WeightShape& shape) const;

  // Returns the k exact weights of one row of layout "plain".
  virtual void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                         std::span<ExactWeight> out) const = 0;

  // Returns the same scheme with groups of another length, or nullptr if its recipe or its layouts have none.
  // Called only if group() is positive.
  virtual std::unique_ptr<Scheme> with_group(int64_t length) const;

  // Returns false if the planes are the weight itself, and only x is quantized.
  virtual bool quantizes_weight() const { return true; }

  // Returns the values that quantize() writes for finite weights of these magnitudes, case by case.
  virtual Written written(const WeightShape& shape, Layout layout, Magnitudes of) const = 0;
  Written written(const WeightShape& shape, Layout layout = kPlain) const {
    return written(shape, layout, any_finite(shape.dtype));
  }
  // Returns the index in a plane of layout "plain" of the element that decodes weight [row, k].
  // Two codes of a byte are elements, counted as load_nibble() counts. A 2:4 sparse weight has k / 2 columns.
  virtual int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                             int64_t k) const = 0;

  virtual CodeSet codes() const = 0;
  // Returns the k codes of one row of layout "plain" as indices of codes().values.
  // -1 means that the element has no code (2:4 sparsity). Not available if codes() is empty.
  // The default reads the first plane, which has one or two codes per byte.
  // If there are two, the even k is in the low nibble. codes() gives the number of bits.
  virtual void row_codes(const Planes& plain, const WeightShape& shape, int64_t row,
                         std::span<int> out) const;

  // Returns the policies. "weight_only" is first if the producer has it. The default is only weight_only.
  virtual std::span<const ActivationInfo> activations() const;
  // Returns the planes that a policy stores in addition to the weight's, in flatten order.
  // Such planes are the scales of a static policy, and count in the size formula of a file.
  // The policy's planes follow the weight's planes wherever a policy reads them.
  virtual std::vector<PlaneSpec> policy_specs(const WeightShape& shape, Policy activation) const;
  // Returns the values that a calibration of finite x writes into the planes of policy_specs().
  virtual std::vector<WrittenRange> policy_ranges(const WeightShape& shape, Policy activation) const;
  // Quantizes x [m, k] under a policy of activations() other than weight_only.
  // x.dtype is float32, float16 or bfloat16; activation_specs does not read x.bytes.
  // Integer planes are "qdata" [m, k], "scale" and "zero_point" ([m, 1], or [1, 1] for all of x).
  // `weight` has the weight's planes in layout "plain" and the planes of policy_specs().
  // The defaults throw std::invalid_argument, which names the policy.
  virtual std::vector<PlaneSpec> activation_specs(const Matrix& x, Policy activation) const;
  virtual Planes quantize_activation(const Matrix& x, Policy activation, const Planes& weight) const;
  // Returns the values that the exact sum uses instead of row `row` of x: k values, each exact in double.
  virtual void exact_activation(const Planes& activation_planes, const Matrix& x, Policy activation,
                                int64_t row, std::span<double> out) const;

  // Returns where the producer's own `linear` rounds, for goldens that record its y of dtype `y`.
  // Each scheme cites the producer's code.
  // The default throws std::logic_error, which says that the stages of this scheme and policy are unknown.
  virtual LinearStages recorded_stages(const WeightShape& weight, Policy activation, DType y) const;

  // Describes byte `byte_offset` of plane `plane` in the scheme's terms: "group 3, column 17".
  virtual std::string place(const WeightShape& shape, Layout layout, std::string_view plane,
                            uint64_t byte_offset) const = 0;

  uint64_t payload_bytes(const WeightShape& shape, Layout layout = kPlain,
                         Policy activation = kWeightOnly) const;
  // Return nullopt if the scheme has no entry of that name.
  std::optional<Layout> find_layout(std::string_view name) const;
  std::optional<Policy> find_activation(std::string_view name) const;
  // Throw std::runtime_error, which names the scheme and the word, if the scheme has no entry of that name.
  Layout layout_named(std::string_view name) const;
  Policy policy_named(std::string_view name) const;

 protected:
  static constexpr std::initializer_list<DType> kUsualDtypes = {DType::float32, DType::float16,
                                                                DType::bfloat16};

  explicit Scheme(SchemeInfo info);

  // Returns one weight in the logical dtype, rounded as the producer's dequantize rounds.
  // The default is code * scale, a float32 product of two float32 numbers, then the cast.
  virtual double dequantized(DType dtype, const ExactWeight& weight) const;

  // Throws std::invalid_argument, which names the policy, unless activations() has it and it quantizes x.
  void require_policy(Policy activation) const;

  // Make the first checks of refusal(). The first check is for a layout that is not in layouts().
  // The next checks are for a dtype that is not in `dtypes` and for an empty weight.
  // The last check is for a K that `divisor` does not divide (0: any K).
  // `of` names the divisor in the message ("the group size ").
  std::optional<std::string> refused_type(const WeightShape& shape, Layout layout,
                                          std::initializer_list<DType> dtypes = kUsualDtypes) const;
  std::optional<std::string> refused_size(const WeightShape& shape, int64_t divisor = 0,
                                          std::string_view of = "the group size ") const;

 private:
  SchemeInfo info_;
};

// Returns all schemes of schemes.inc in list order. They are built once and immutable.
std::span<const Scheme* const> schemes();
// Returns the scheme of schemes() with this name, or one that differs from one of them only in the
// length of its groups ("intx_b4_g512_sym"). Such a scheme is in no plan and has no golden. Returns nullptr
// if unknown.
const Scheme* find_scheme(std::string_view name);
bool is_listed(const Scheme& scheme);  // in schemes()
// Returns true if both schemes are known and have the same Scheme::meaning().
bool same_meaning(std::string_view scheme, std::string_view other);

const Plane& plane(const Planes& planes, std::string_view name);  // throws std::out_of_range

// Makes zero-filled planes of these specs, in order.
Planes make_planes(const std::vector<PlaneSpec>& specs);
// Throws std::invalid_argument, which names the plane, if a plane is missing.
// Throws std::invalid_argument too if a plane differs from its spec in dtype, shape or size.
void require_planes(const Planes& planes, const std::vector<PlaneSpec>& specs);
// Returns the byte offset of the first element that differs between two planes of one spec.
// Returns nullopt if the planes are equal.
// In floating planes all NaNs are equal, because 0/0 has the sign bit on x86 and not on Arm.
// Everything else is compared bitwise.
std::optional<uint64_t> first_difference(const Plane& want, const Plane& got);

// Describes an index of [.., cols] by the names of its two parts: "row 3, k 17".
std::string named_indices(std::string_view row, std::string_view col, int64_t index, int64_t cols);
// Describes the weights [n, k] of a byte with two codes:
// "row 5, k 12 (low nibble of byte 326); row 5, k 13 (high nibble)".
// " (padding)" follows those that are in `stored` but not in `shape`.
// The result of nibble_of(n, k) is twice the code's byte, plus one for the high nibble.
std::string named_nibbles(const WeightShape& shape, const WeightShape& stored, int64_t byte,
                          const std::function<int64_t(int64_t, int64_t)>& nibble_of);

// The oracle of linear: y = sum_k x[k] * w[row,k] + bias in double.
// The struct includes the sums over k that the bound needs (reference/oracle/bound.h).
// Below, p = product, z = zero, c = code and s = scale of each weight.
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
  // For quantized x = (code - zero point) * scale. o = zero point * scale is subtracted after the sum.
  double group_coded = 0;   // sum over groups of |sum in the group of (x+o)*p|
  double group_offset = 0;  // sum over groups of |sum in the group of o*p|
  bool scaled_x = false;    // true if x is quantized: its scale is one more multiplication
  double max_abs_x = 0;
  int64_t terms = 0;      // the number of products, k
  int64_t groups = 0;     // number of scale groups
  bool has_zero = false;  // true if some z is not 0
};

// The part of the oracle that depends only on a row of weights.
struct OracleWeights {
  std::span<const ExactWeight> row;
  size_t group_elems = 0;                                          // elements that share a scale
  std::vector<double> group_weights;                               // sum of p in each group
  double sum_abs_weight = 0, sum_abs_scale = 0, sum_abs_code = 0;  // as in LinearOracle
  bool has_zero = false;
  bool finite = true;  // true if every p, z, p+z and c is finite, so that 0 times it is 0
};
// Prepares a row of weights, which must outlive the result.
// `group` is the number of elements along k that share a scale, or 0 for the whole row (Scheme::group()).
OracleWeights oracle_weights(std::span<const ExactWeight> row, int64_t group);

// The part of the oracle that depends only on a row of x.
struct OracleX {
  std::span<const double> row;
  std::vector<uint32_t> places;  // positions of nonzero elements, ascending
  double abs_x = 0, max_abs_x = 0;
};
// Prepares a row of x: k values, exact in double, which must outlive the result.
OracleX oracle_x(std::span<const double> row);

// Computes the oracle. `offset` is zero point times scale of a row of quantized x.
// `offset` is nullopt if x is not quantized.
LinearOracle linear_oracle(const OracleWeights& weights, const OracleX& x, double bias,
                           std::optional<double> offset = std::nullopt);
LinearOracle linear_oracle(std::span<const ExactWeight> row, std::span<const double> x, double bias,
                           int64_t group, std::optional<double> offset = std::nullopt);

}  // namespace qcts
