// SPDX-License-Identifier: BSD-3-Clause
#include "suites/bench/block.h"

#include <algorithm>
#include <stdexcept>

#include "suites/timing/speed_claims.h"

namespace qcts {
namespace {

// Returns the first kernel that takes every layer.
const Implementation& block_kernel(const BlockSettings& settings, const Scheme& scheme,
                                   const BlockPlanes& planes, const Registry& registry, int64_t m) {
  std::string why = "no kernel here runs linear for " + std::string(scheme.name());
  for (const Implementation* implementation : registry.find(QCTS_OP_LINEAR, scheme.family())) {
    if (!implementation->machine_refusal().empty()) continue;
    const Support support = block_support(settings, scheme, planes, *implementation, m);
    if (support.status == QCTS_OK) return *implementation;
    why += "; " + implementation->name() + ": " + support.reason;
  }
  throw std::runtime_error(why);
}

Status row_status(const BlockRequest& request, const BlockRow& row) {
  if (!row.reloaded_equal) return Status::fail;
  if (!request.gate_latency) return Status::pass;
  return gated_status(row.times.claims, Decision::met, !row.times.doubt.empty());
}

}  // namespace

std::vector<BlockRow> run_block(const BlockRequest& request, const Registry& registry,
                                const Registry& baseline, const std::filesystem::path& folder,
                                const std::function<void(const std::string&)>& progress) {
  const auto dense = baseline.find(QCTS_OP_LINEAR, "dense");
  if (dense.empty()) throw std::runtime_error("no provider has a dense linear");
  std::vector<BlockRow> rows;
  for (const std::string& name : request.schemes) {
    const Scheme* scheme = find_scheme(name);
    if (!scheme) throw std::runtime_error("unknown scheme '" + name + "'");
    progress(name + ": quantize, save, load");
    const BlockPlanes planes = save_and_load_block(request.settings, *scheme, &registry, folder);
    for (const int64_t m : request.m) {
      progress(name + ": m = " + std::to_string(m));
      const Implementation& linear = block_kernel(request.settings, *scheme, planes, registry, m);
      BlockRow& row = rows.emplace_back();
      row.scheme = name;
      row.quantized_by = planes.quantized_by;
      row.file_bytes = planes.file_bytes;
      row.reloaded_equal = planes.is_equal;
      row.times = time_block(request.settings, *scheme, planes, linear, *dense.front(), m);
      row.status = row_status(request, row);
    }
  }
  return rows;
}

Outcome block_outcome(const std::vector<BlockRow>& rows) {
  const auto any = [&](Status status) {
    return std::ranges::any_of(rows, [&](const BlockRow& row) { return row.status == status; });
  };
  if (any(Status::fail)) return Outcome::failed;
  return any(Status::inconclusive) ? Outcome::inconclusive : Outcome::conformant;
}

}  // namespace qcts
