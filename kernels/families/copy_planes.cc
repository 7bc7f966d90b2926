// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/copy_planes.h"

#include <cstring>

#include "kernels/abi/problem.h"
#include "kernels/machine/parallel.h"

namespace qcts {
namespace {

struct Copy {
  char* to;
  const char* from;
};
void copy_range(void* context, int64_t first, int64_t last) {
  const Copy& copy = *static_cast<const Copy*>(context);
  std::memcpy(copy.to + first, copy.from + first, static_cast<size_t>(last - first));
}
void copy_bytes(uint32_t threads, void* to, const void* from, size_t bytes) {
  constexpr int64_t kGrainBytes = 65536;  // less is copied sooner than handed to a thread
  Copy copy = {static_cast<char*>(to), static_cast<const char*>(from)};
  parallel_for(threads, static_cast<int64_t>(bytes), kGrainBytes, copy_range, &copy);
}

}  // namespace

void copy_planes_but(const qcts_problem& p, const char* name) {
  for (uint32_t i = 0; i < p.n_out_planes; ++i) {
    const qcts_plane& plane = p.out_planes[i];
    if (std::strcmp(plane.name, name) == 0) continue;
    size_t bytes = dtype_bytes(plane.dtype);
    for (uint32_t d = 0; d < plane.ndim; ++d) bytes *= static_cast<size_t>(plane.shape[d]);
    copy_bytes(p.threads, plane.data, plane_data(p.planes, p.n_planes, plane.name), bytes);
  }
}

}  // namespace qcts
