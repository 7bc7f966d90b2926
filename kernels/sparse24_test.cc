// SPDX-License-Identifier: BSD-3-Clause
// A weight that is not 2:4 sparse has no right answer, so no case asks for one. But a kernel that stored two
// of three codes would silently drop a weight.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/registry.h"

namespace qcts {
namespace {

qcts_plane plane_of(const char* name, uint32_t dtype, std::vector<uint8_t>& bytes, int64_t columns,
                    int64_t elem_bytes) {
  qcts_plane plane = {};
  plane.struct_size = sizeof plane;
  plane.name = name;
  plane.dtype = dtype;
  plane.data = bytes.data();
  plane.ndim = 2;
  plane.shape[0] = 1;
  plane.shape[1] = columns;
  plane.stride_bytes[0] = columns * elem_bytes;
  plane.stride_bytes[1] = elem_bytes;
  return plane;
}

// Quantizes one row of float32; returns its bytes of places if the kernel accepts it.
qcts_status quantized(const qcts_kernel& kernel, const std::vector<float>& row,
                      std::vector<uint8_t>& places) {
  const auto k = static_cast<int64_t>(row.size());
  std::vector<uint8_t> values(row.size() / 2), scale(4);
  places.assign(row.size() / 8, 0xFF);
  const qcts_plane planes[3] = {plane_of("qdata", QCTS_F8_E4M3FN, values, k / 2, 1),
                                plane_of("sparse_metadata", QCTS_U8, places, k / 8, 1),
                                plane_of("scale", QCTS_F32, scale, 1, 4)};
  qcts_scheme_params params = {};
  params.struct_size = sizeof params;
  params.element_dtype = QCTS_F8_E4M3FN;
  params.group_rows = 1;
  qcts_problem problem = {};
  problem.params = &params;
  problem.struct_size = sizeof problem;
  problem.op = QCTS_OP_QUANTIZE;
  problem.threads = 1;
  problem.scheme = "fp8_sparse24";
  problem.scheme_name = "fp8_sparse24_row";
  problem.layout = "plain";
  problem.activation = "weight_only";
  problem.n = 1;
  problem.k = k;
  problem.w_dtype = QCTS_F32;
  problem.ldx_bytes = 4 * k;
  problem.x = row.data();
  problem.out_planes = planes;
  problem.n_out_planes = 3;
  return kernel.run(&problem);
}

TEST(Sparse24, AThirdCodeOfFourIsAFailure) {
  Registry registry;
  registry.add(builtin_provider());
  int tried = 0;
  for (const Implementation* implementation : registry.find(QCTS_OP_QUANTIZE, "fp8_sparse24")) {
    if (!implementation->machine_refusal().empty()) continue;
    SCOPED_TRACE(implementation->name());
    ++tried;
    std::vector<uint8_t> places;
    for (const size_t at : {size_t{0}, size_t{32}, size_t{36}, size_t{44}}) {
      std::vector<float> row(48, 0.0f);
      row[at] = row[at + 1] = 1;
      EXPECT_EQ(quantized(*implementation->kernel, row, places), QCTS_OK) << at;
      EXPECT_EQ(places[at / 8], at % 8 == 0 ? 0x04 : 0x40) << at;
      row[at + 3] = -1;
      EXPECT_EQ(quantized(*implementation->kernel, row, places), QCTS_FAILED) << at;
    }
    EXPECT_EQ(quantized(*implementation->kernel, std::vector<float>(8, 0.0f), places), QCTS_FAILED)
        << "codes of a row of zeros are NaN";
  }
  EXPECT_GE(tried, 1);
}

}  // namespace
}  // namespace qcts
