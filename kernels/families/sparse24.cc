// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/sparse24.h"

#include "kernels/abi/problem.h"
#include "kernels/machine/parallel.h"

namespace qcts {
namespace {

struct Sparse24Call {
  Sparse24Task task;
  Sparse24Rows rows;
  bool failed;
};

void call_rows(void* context, int64_t first, int64_t last) {
  Sparse24Call& call = *static_cast<Sparse24Call*>(context);
  if (!call.rows(call.task, first, last)) __atomic_store_n(&call.failed, true, __ATOMIC_RELAXED);
}

}  // namespace

qcts_status quantize_sparse24(const qcts_problem& p, Sparse24Rows rows) {
  Sparse24Call call = {{float8_task(p), nullptr, nullptr}, rows, false};
  call.task.values = call.task.dense.codes;
  call.task.dense.codes = nullptr;
  call.task.metadata = static_cast<uint8_t*>(plane_data(p.out_planes, p.n_out_planes, "sparse_metadata"));
  parallel_for(p.threads, p.n, 1, call_rows, &call);
  return call.failed ? QCTS_FAILED : QCTS_OK;
}

}  // namespace qcts
