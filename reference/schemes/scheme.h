// A scheme: what quantized bytes mean. Recipe (float -> planes), layouts (planes -> packed planes), size law, meaning
// (planes -> float), and the exact weight that the oracle of `linear` sums. Scalar, bit-exact to the producer that each file names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formats/tensor.h"

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

// One weight before any rounding: product + zero, each exact in double (a code times a scale, and the zero-point term).
struct ExactWeight {
  double product = 0;
  double zero = 0;
};

struct LayoutInfo {
  std::string_view name;    // "plain" is every scheme's first
  std::string_view source;  // upstream file and version that defines the bytes
  bool confirmed = true;    // false: by index map, not confirmed on the hardware that writes it
};

// A linear layer's weight of a scheme: logical [n, k], dtype float32, float16 or bfloat16.
struct WeightShape {
  DType dtype = DType::bfloat16;
  int64_t n = 0, k = 0;
};

class Scheme {
 public:
  virtual ~Scheme() = default;

  // "int4_tinygemm_g128": family, then ordered parameters. Alphabet [a-z0-9_].
  virtual std::string_view name() const = 0;
  virtual std::string_view family() const = 0;   // "int4_tinygemm": the file, the list line, the kernels' key
  virtual std::string_view summary() const = 0;  // one line for `qcts schemes`
  virtual std::string_view source() const = 0;   // the recipe's origin: package, version, function
  virtual int64_t group() const = 0;             // elements along k that share a scale; 0: the whole row
  virtual std::span<const LayoutInfo> layouts() const = 0;

  // Why this weight cannot be taken in this layout; nullopt when it can. Everything below requires nullopt.
  virtual std::optional<std::string> refusal(const WeightShape& shape, std::string_view layout = "plain") const = 0;

  // The size law: planes of a layout in flatten order. The payload is the sum of their bytes, and nothing else.
  virtual std::vector<PlaneSpec> plane_specs(const WeightShape& shape, std::string_view layout = "plain") const = 0;

  // weight.dtype is the logical dtype; result in layout "plain".
  virtual Planes quantize(const Matrix& weight) const = 0;
  virtual Planes pack(const Planes& plain, const WeightShape& shape, std::string_view layout) const = 0;
  virtual Planes unpack(const Planes& packed, const WeightShape& shape, std::string_view layout) const = 0;
  // Row-major [n, k] in the logical dtype, from layout "plain".
  virtual std::vector<std::byte> dequantize(const Planes& plain, const WeightShape& shape) const = 0;

  // The k exact weights of one row, from layout "plain".
  virtual void exact_row(const Planes& plain, const WeightShape& shape, int64_t row, std::span<ExactWeight> out) const = 0;

  // "group 3, column 17": the place of byte `byte_offset` of plane `plane` in the scheme's own terms.
  virtual std::string place(const WeightShape& shape, std::string_view layout, std::string_view plane,
                            uint64_t byte_offset) const = 0;

  uint64_t payload_bytes(const WeightShape& shape, std::string_view layout = "plain") const;
  const LayoutInfo* find_layout(std::string_view layout) const;
};

// All schemes of schemes.inc in list order; built once, immutable.
std::span<const Scheme* const> schemes();
const Scheme* find_scheme(std::string_view name);  // nullptr when unknown

const Plane& plane(const Planes& planes, std::string_view name);  // throws std::out_of_range

// linear's oracle: y[m] = sum_k x[m,k] * w[row,k] + bias, exact where double is, with the sums that the bound needs.
struct LinearOracle {
  double y = 0;               // sum of x*(product+zero), plus bias
  double abs_product = 0;     // sum |x*product|
  double abs_zero = 0;        // sum |x*zero|
  double abs_bias = 0;
  double max_abs_x = 0;
  int64_t terms = 0;
};
// x: k values, already exact in double.
LinearOracle linear_oracle(std::span<const ExactWeight> row, std::span<const double> x, double bias);

}  // namespace qcts
