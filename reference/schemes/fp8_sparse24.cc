// SPDX-License-Identifier: BSD-3-Clause
// fp8_sparse24_row: torchao 0.18.0 Float8DynamicActivationFloat8WeightConfig(packing_format=
// SPARSE_2D_DATA_2D_METADATA), Float8Sparse2x4_2DData2DMetadataTensor.from_hp of
// torchao/quantization/quantize_/workflows/float8/float8_sparse_2x4_2d_data_2d_metadata_tensor.py. At most
// two of every four codes along k are not zero; these are stored with their positions, and one float32 scale
// per row.
//
// Values and metadata: torchao/csrc/cuda/to_sparse_semi_structured_cutlass_sm9x, after CUTLASS
// sm90_sparse_gemm_compressor.hpp and sm90_sparse_config.inl. A chunk of four is two values and a nibble: the
// position of the first in its low two bits, of the second in its high two.
//   none: values 0, 0 and positions 0, 0;  one at i < 3: (x, 0) and i, 3;  one at 3: (0, x) and 0, 3;
//   two: in order, with their positions
// -0 counts as zero. "plain" stores the nibbles by rows, the even chunk in the low half of a byte;
// "cutlass_sm90" as the kernel reads them: rows padded to 64, k to 128, 16 bytes per row and 128 columns.
#include <array>
#include <cmath>
#include <stdexcept>

#include "reference/numerics/block_scales.h"
#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/float8.h"

namespace qcts {
namespace {

constexpr DType kCode = DType::float8_e4m3fn;

constexpr std::array<LayoutInfo, 2> kFp8Sparse24Layouts = {
    {{"plain", "nibbles by rows; no producer's", true},
     {"cutlass_sm90", "torchao 0.18.0 csrc/cuda/to_sparse_semi_structured_cutlass_sm9x, by index map",
      false}}};

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

bool is_zero(std::byte code) { return (code & std::byte{0x7F}) == std::byte{0}; }

// A chunk of four codes: two of them and their positions.
struct Chunk {
  std::array<std::byte, 2> values{};
  int nibble = 0;
};

// Compresses four codes. Throws std::invalid_argument when more than two are not zero.
Chunk compress(std::span<const std::byte> four) {
  std::array<int, 4> places{};
  int count = 0;
  for (int i = 0; i < 4; ++i)
    if (!is_zero(four[i])) places[count++] = i;
  if (count > 2) throw std::invalid_argument("not 2:4 sparse");
  if (count == 0) return {};
  if (count == 1 && places[0] == 3) return {{std::byte{0}, four[3]}, 3 << 2};
  if (count == 1) return {{four[places[0]], std::byte{0}}, places[0] | 3 << 2};
  return {{four[places[0]], four[places[1]]}, places[0] | places[1] << 2};
}

// Is this a nibble that the compressor writes: two positions in order, or 0 for none?
bool is_valid(int nibble, std::byte first, std::byte second) {
  if (nibble == 0) return is_zero(first) && is_zero(second);
  return (nibble & 3) < nibble >> 2;
}

// Returns the index of a chunk's nibble in the metadata; two per byte, the low one first.
int64_t metadata_nibble(Layout layout, const WeightShape& shape, int64_t n, int64_t chunk) {
  if (layout == kPlain) return n * ((shape.k + 7) / 8) * 2 + chunk;
  return (chunk / 32 * round_up(shape.n, 64) + n) * 32 + chunk % 32;
}

class Fp8Sparse24 final : public Float8RowsOfX {
 public:
  Fp8Sparse24()
      : Float8RowsOfX({.name = "fp8_sparse24_row",
                       .family = "fp8_sparse24",
                       .summary = "float8_e4m3fn weights, two of four along k, one float32 scale per row",
                       .source = "torchao 0.18.0 Float8DynamicActivationFloat8WeightConfig: "
                                 "Float8Sparse2x4_2DData2DMetadataTensor.from_hp",
                       .params = {.element = DType::float8_e4m3fn},
                       .layouts = {kFp8Sparse24Layouts.begin(), kFp8Sparse24Layouts.end()}}) {}

  // fp8_row's policies without fbgemm's, whose class has no sparse weights.
  std::span<const ActivationInfo> activations() const override { return x_rows().activations().first(4); }

  std::optional<std::string> refusal(const WeightShape& shape, Layout layout) const override {
    if (auto why_not = refused_type(shape, layout)) return why_not;
    return refused_size(shape, 8, "");
  }

  std::vector<PlaneSpec> plane_specs(const WeightShape& shape, Layout layout) const override {
    const std::vector<int64_t> metadata =
        layout == kPlain ? std::vector<int64_t>{shape.n, shape.k / 8}
                         : std::vector<int64_t>{round_up(shape.n, 64), round_up(shape.k, 128) / 8};
    return {{"qdata", kCode, {shape.n, shape.k / 2}},
            {"sparse_metadata", DType::uint8, metadata},
            {"scale", DType::float32, {shape.n, 1}}};
  }

  // Throws std::invalid_argument for a weight whose codes are not 2:4 sparse, such as a row of zeros, whose
  // codes are NaN; the producer's kernel reads beyond its buffer there.
  Planes quantize(const Matrix& weight, Layout) const override {
    const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
    Planes planes = make_planes(plane_specs(shape, kPlain));
    const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
    std::vector<std::byte> codes(shape.k);
    for (int64_t n = 0; n < shape.n; ++n) {
      const std::span<const float> row = std::span(values).subspan(n * shape.k, shape.k);
      const float scale = float8_scale(weight.dtype, kCode, largest_magnitude(row));
      for (int64_t k = 0; k < shape.k; ++k)
        codes[k] = static_cast<std::byte>(float8_code(kCode, row[k], scale));
      for (int64_t chunk = 0; chunk < shape.k / 4; ++chunk) {
        const Chunk packed = compress(std::span(codes).subspan(chunk * 4, 4));
        for (int i = 0; i < 2; ++i) planes[0].bytes[n * shape.k / 2 + chunk * 2 + i] = packed.values[i];
        put_nibble(planes[1].bytes, metadata_nibble(kPlain, shape, n, chunk), packed.nibble);
      }
      store_float(DType::float32, planes[2].bytes, n, scale);
    }
    return planes;
  }

  // No scale is 0: below it, weights of 0 have the code NaN, and no two of four are zero.
  Written written(const WeightShape& shape, Layout, Magnitudes of) const override {
    const auto scale = [&](double largest) -> double {
      return float8_scale(shape.dtype, kCode, static_cast<float>(largest));
    };
    const double most = float_format(kCode).max, least = float_format(kCode).min_subnormal;
    const ValueRange scales = {of.least > 0 ? scale(of.least) : float_format(shape.dtype).min_subnormal,
                               scale(of.most)};
    const auto row = [&](std::string_view when, std::initializer_list<double> nibbles, bool first,
                         bool second) {
      WrittenCase made{when, source(), {{"scale", scales}}};
      for (const double nibble : nibbles) made.ranges.push_back({"sparse_metadata", {nibble, nibble}});
      for (const int value : {0, 1}) {
        if (value == 0 ? first : second) {
          made.ranges.push_back({"qdata", {-most, -least}, value, 2});
          made.ranges.push_back({"qdata", {least, most}, value, 2});
        } else {
          made.ranges.push_back({"qdata", kZero, value, 2});
        }
      }
      return made;
    };
    return {row("", {4, 8, 9, 12, 13, 14}, true, true),
            row("only one of four weights is nonzero, and it is not the last", {12, 13, 14}, true, false),
            row("only the last of four weights is nonzero", {12}, false, true),
            row("all four weights are zero", {0}, false, false)};
  }
  int64_t element_of(const WeightShape& shape, std::string_view plane, int64_t row,
                     int64_t k) const override {
    if (plane == "scale") return row;
    if (plane == "qdata") return row * shape.k / 2 + k;
    return metadata_nibble(kPlain, shape, row, k / 2);
  }

  Planes pack(const Planes& plain, const WeightShape& shape, Layout layout) const override {
    return moved(plain, shape, kPlain, layout);
  }
  // Throws std::invalid_argument for positions that are not in order, and for nonzero padding.
  Planes unpack(const Planes& packed, const WeightShape& shape, Layout layout) const override {
    Planes plain = moved(packed, shape, layout, kPlain);
    if (moved(plain, shape, kPlain, layout)[1].bytes != plane(packed, "sparse_metadata").bytes)
      throw std::invalid_argument("sparse_metadata: the padding is not zero");
    return plain;
  }

  void exact_row(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<ExactWeight> out) const override {
    require_planes(plain, plane_specs(shape, kPlain));
    const std::vector<std::byte>& qdata = plane(plain, "qdata").bytes;
    const double scale = load_float(DType::float32, plane(plain, "scale").bytes, row);
    for (int64_t k = 0; k < shape.k; ++k) out[k] = {.product = 0, .zero = 0, .code = 0, .scale = scale};
    for (int64_t chunk = 0; chunk < shape.k / 4; ++chunk) {
      const int64_t first = row * shape.k / 2 + chunk * 2;
      const int nibble = valid_nibble(plain, shape, row, chunk, kPlain);
      for (int i = 0; i < 2; ++i) {
        if (nibble == 0) continue;
        ExactWeight& weight = out[chunk * 4 + (i ? nibble >> 2 : nibble & 3)];
        weight.code = load_float(kCode, qdata, first + i);
        weight.product = weight.code * scale;
      }
    }
  }

  CodeSet codes() const override { return float_codes(kCode); }
  void row_codes(const Planes& plain, const WeightShape& shape, int64_t row,
                 std::span<int> out) const override {
    std::fill(out.begin(), out.end(), -1);
    for (int64_t chunk = 0; chunk < shape.k / 4; ++chunk) {
      const int nibble = valid_nibble(plain, shape, row, chunk, kPlain);
      for (int i = 0; i < 2 && nibble != 0; ++i)
        out[chunk * 4 + (i ? nibble >> 2 : nibble & 3)] =
            static_cast<int>(plain.front().bytes[row * shape.k / 2 + chunk * 2 + i]);
    }
  }

  std::string place(const WeightShape& shape, Layout layout, std::string_view plane_name,
                    uint64_t byte_offset) const override {
    const int64_t offset = static_cast<int64_t>(byte_offset);
    if (plane_name == "scale") return "row " + std::to_string(offset / 4);
    if (plane_name == "qdata")
      return "row " + std::to_string(offset * 2 / shape.k) + ", value " +
             std::to_string(offset % (shape.k / 2));
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t chunk = 0; chunk < shape.k / 4; chunk += 2)
        if (metadata_nibble(layout, shape, n, chunk) == offset * 2)
          return "row " + std::to_string(n) + ", places of k " + std::to_string(chunk * 4) + " to " +
                 std::to_string(chunk * 4 + 7);
    return "padding";
  }

 private:
  static int valid_nibble(const Planes& planes, const WeightShape& shape, int64_t n, int64_t chunk,
                          Layout layout) {
    const std::vector<std::byte>& qdata = plane(planes, "qdata").bytes;
    const int64_t first = n * shape.k / 2 + chunk * 2;
    const int nibble =
        load_nibble(plane(planes, "sparse_metadata").bytes, metadata_nibble(layout, shape, n, chunk));
    if (!is_valid(nibble, qdata[first], qdata[first + 1]))
      throw std::invalid_argument("sparse_metadata: row " + std::to_string(n) + ", k " +
                                  std::to_string(chunk * 4) + ": places " + std::to_string(nibble & 3) +
                                  " and " + std::to_string(nibble >> 2) + " are not in order");
    return nibble;
  }

  Planes moved(const Planes& from, const WeightShape& shape, Layout before, Layout after) const {
    require_planes(from, plane_specs(shape, before));
    Planes to = make_planes(plane_specs(shape, after));
    to[0].bytes = plane(from, "qdata").bytes;
    to[2].bytes = plane(from, "scale").bytes;
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t chunk = 0; chunk < shape.k / 4; ++chunk)
        put_nibble(to[1].bytes, metadata_nibble(after, shape, n, chunk),
                   valid_nibble(from, shape, n, chunk, before));
    return to;
  }
};

}  // namespace

std::vector<std::unique_ptr<Scheme>> make_fp8_sparse24() {
  std::vector<std::unique_ptr<Scheme>> all;
  all.push_back(std::make_unique<Fp8Sparse24>());
  return all;
}

}  // namespace qcts
