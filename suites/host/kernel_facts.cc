// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/kernel_facts.h"

#include <vector>

namespace qcts {
namespace {

using Supports = std::function<Support(const qcts_problem&)>;

Support supports_before_data(qcts_problem problem, const Supports& supports) {
  std::vector<qcts_plane> planes(problem.planes, problem.planes + problem.n_planes);
  std::vector<qcts_plane> out_planes(problem.out_planes, problem.out_planes + problem.n_out_planes);
  for (std::vector<qcts_plane>* of : {&planes, &out_planes})
    for (qcts_plane& plane : *of) plane.data = nullptr;
  problem.planes = planes.data();
  problem.out_planes = out_planes.data();
  problem.x = problem.bias = problem.prepared = nullptr;
  problem.y = problem.workspace = nullptr;
  return supports(problem);
}

}  // namespace

Support kernel_supports(const qcts_kernel& kernel, const qcts_problem& problem) {
  return guarded_support(kernel.variant, "supports", [&](char* why, size_t why_size) {
    return kernel.supports(&problem, why, why_size);
  });
}

KernelFacts ask_facts(const qcts_kernel& kernel, const qcts_problem& problem, const Supports& supports) {
  KernelFacts facts;
  if (kernel.workspace_bytes != nullptr)
    facts.workspace_bytes =
        guarded_bytes(kernel.variant, "workspace_bytes", [&] { return kernel.workspace_bytes(&problem); });
  facts.support = supports(problem);
  if (facts.support.status != QCTS_OK) return facts;
  facts.before_data = supports_before_data(problem, supports);
  if (kernel.prepared_bytes != nullptr)
    facts.prepared_bytes =
        guarded_bytes(kernel.variant, "prepared_bytes", [&] { return kernel.prepared_bytes(&problem); });
  return facts;
}

}  // namespace qcts
