// W4A16 by tiles, for prefill: kernels/amx_int4.h. The plain planes have the even k in the high nibble, and
// scale and zero side by side.
#include "kernels/amx_int4.h"

namespace {

using namespace qcts::amx;

void prepare_blocks(void* context, int64_t first, int64_t last) {
  const qcts_problem& p = *static_cast<const qcts_problem*>(context);
  auto* prepared = static_cast<uint8_t*>(const_cast<void*>(p.prepared));
  const auto* qdata = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* pairs = static_cast<const char*>(qcts::in_plane(p, "scale_and_zero"));
  const size_t bytes = qcts::dtype_bytes(p.w_dtype);
  for (int64_t block = first; block < last; ++block)
    for (int64_t g = 0; g < groups(p); ++g)
      for (int64_t c = 0; c < kColumns && block * kColumns + c < p.n; ++c) {
        const int64_t n = block * kColumns + c;
        uint8_t* group = prepared + block * block_bytes(p) + g * group_bytes(p);
        for (int64_t k = 0; k < p.group; ++k) {
          const uint32_t two = qdata[(n * p.k + g * p.group + k) / 2],
                         code = k % 2 == 0 ? two >> 4 : two & 15;
          const int64_t pair = k % 8 / 2;
          group[k / 8 * kWordBytes + 4 * c + k % 2 * 2 + pair / 2] |=
              static_cast<uint8_t>(code << (pair % 2 * 4));
        }
        uint8_t* scales = group + p.group / 8 * kWordBytes;
        const char* pair = pairs + static_cast<size_t>(2 * (g * p.n + n)) * bytes;
        std::memcpy(scales + static_cast<size_t>(c) * bytes, pair, bytes);
        std::memcpy(scales + static_cast<size_t>(kColumns + c) * bytes, pair + bytes, bytes);
      }
}

void prepare(const qcts_problem* problem, void* prepared) {
  qcts_problem copy = *problem;
  copy.prepared = prepared;
  std::memset(prepared, 0, int4_prepared_bytes(problem));
  qcts::parallel_for(copy.threads, blocks(copy), 1, prepare_blocks, &copy);
}

constexpr const qcts_kernel& kInt4 = qcts_kernel_linear_int4_tinygemm_amx;

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  const qcts_status status = qcts::check_problem(kInt4, problem, why, why_size);
  if (status == QCTS_OK && problem->group > kPanelK)
    return qcts::refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: a panel holds %d",
                        static_cast<long long>(problem->group), kPanelK);
  return status;
}

qcts_status run(const qcts_problem* problem) {
  return supports(problem, nullptr, 0) == QCTS_OK ? qcts::run_checked<kInt4, run_int4>(problem)
                                                  : QCTS_INVALID;
}

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_tinygemm_amx = qcts::linear_entry(
    "int4_tinygemm", "amx",
    "codes and x as tiles of bfloat16, the groups of 512 k at a time; bound by making the codes bfloat16 for "
    "few "
    "rows, by tile multiplications and scales for many",
    qcts::numerics_of_sums(QCTS_F32, QCTS_BF16, QCTS_NUM_FLUSH_SUBNORMALS),
    {supports, run, int4_workspace_bytes, int4_prepared_bytes, qcts::prepare_checked<kInt4, prepare>});
