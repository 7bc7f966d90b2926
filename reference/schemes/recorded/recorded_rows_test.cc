// SPDX-License-Identifier: BSD-3-Clause
// Tests recorded_rows.inc: rows of weights as real libraries quantized them and read them back.
#include "reference/schemes/recorded/testing.h"

namespace qcts {
namespace {

struct RecordedRow {
  const char* scheme;
  const char* name;
  DType dtype;
  const char *weight, *qdata, *scale, *dequantized;
};

constexpr RecordedRow kRecordedRows[] = {
#define QCTS_ROW(scheme, name, dtype, ...) {#scheme, #name, DType::dtype, __VA_ARGS__},
#include "reference/schemes/recorded/recorded_rows.inc"
#undef QCTS_ROW
};

std::vector<RecordedRow> rows_read_back() {
  std::vector<RecordedRow> rows;
  for (const RecordedRow& row : kRecordedRows)
    if (*row.dequantized) rows.push_back(row);
  return rows;
}

class RecordedOnRow : public testing::TestWithParam<RecordedRow> {
 protected:
  const Scheme& scheme = *find_scheme(GetParam().scheme);
  const std::vector<std::byte> weight = from_hex(GetParam().weight);
  const int64_t k = static_cast<int64_t>(weight.size()) / dtype_bytes(GetParam().dtype);
  const WeightShape shape = {GetParam().dtype, 1, k};

  Planes quantized() const { return scheme.quantize({shape.dtype, 1, k, weight}); }
};
class RecordedReadBack : public RecordedOnRow {};

// The third plane, if any, holds zero points of 0.
TEST_P(RecordedOnRow, QuantizesAsTheLibrary) {
  Planes want = make_planes(scheme.plane_specs(shape));
  want[0].bytes = from_hex(GetParam().qdata);
  want[1].bytes = from_hex(GetParam().scale);
  expect_same_planes(want, quantized());
}

TEST_P(RecordedReadBack, DequantizesAsTheLibrary) {
  expect_same_planes({{"w", shape.dtype, {1, k}, from_hex(GetParam().dequantized)}},
                     {{"w", shape.dtype, {1, k}, scheme.dequantize(quantized(), shape)}});
}

const auto kRowName = [](const testing::TestParamInfo<RecordedRow>& info) {
  return std::string(info.param.scheme) + "_" + info.param.name + "_" +
         std::string(dtype_name(info.param.dtype));
};
INSTANTIATE_TEST_SUITE_P(Rows, RecordedOnRow, testing::ValuesIn(kRecordedRows), kRowName);
INSTANTIATE_TEST_SUITE_P(Rows, RecordedReadBack, testing::ValuesIn(rows_read_back()), kRowName);

}  // namespace
}  // namespace qcts
