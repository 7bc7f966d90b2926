// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/reference_provider.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/numerics/soft_float.h"
#include "suites/providers/kernel_run.h"

namespace qcts {
namespace {

DType dtype_of(uint32_t abi) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (const DType dtype = static_cast<DType>(i); abi_dtype(dtype) == abi && abi != QCTS_NONE) return dtype;
  throw std::invalid_argument("element type " + std::to_string(abi));
}

bool has_params(const Scheme& scheme, const qcts_scheme_params& params) {
  const qcts_scheme_params own = abi_params(scheme);
  return std::memcmp(&own, &params, sizeof own) == 0;
}

// The name is only for messages where there are parameters.
const Scheme& scheme_of(const qcts_problem& p) {
  if (const Scheme* named = find_scheme(p.scheme_name ? p.scheme_name : p.scheme)) return *named;
  for (const Scheme* scheme : schemes())
    if (p.params && scheme->family() == p.scheme && scheme->group() == p.group &&
        has_params(*scheme, *p.params))
      return *scheme;
  throw std::invalid_argument("unknown scheme " + std::string(p.scheme_name));
}

WeightShape shape_of(const qcts_problem& p) { return {dtype_of(p.w_dtype), p.n, p.k}; }

Plane plane_copy(const qcts_plane& from) {
  Plane plane{from.name, dtype_of(from.dtype), {from.shape, from.shape + from.ndim}, {}};
  plane.bytes.resize(bytes_of(plane.dtype, plane.shape));
  if (!plane.bytes.empty()) std::memcpy(plane.bytes.data(), from.data, plane.bytes.size());
  return plane;
}

// The layout and policy that the problem names; supports() has checked that the scheme has them.
Layout layout_of(const Scheme& scheme, const qcts_problem& p) { return scheme.layout_named(p.layout); }
Policy policy_of(const Scheme& scheme, const qcts_problem& p) { return scheme.policy_named(p.activation); }

// Returns the planes in the scheme's order, whatever the caller's, followed by those that only some
// checkpoints have, such as bounds of x.
Planes planes_of(const qcts_problem& p) {
  const Scheme& scheme = scheme_of(p);
  std::vector<PlaneSpec> specs =
      scheme.plane_specs(shape_of(p), p.op == QCTS_OP_UNPACK ? layout_of(scheme, p) : kPlain);
  for (PlaneSpec& spec : scheme.policy_specs(shape_of(p), policy_of(scheme, p)))
    specs.push_back(std::move(spec));
  std::vector<const qcts_plane*> given;
  for (uint32_t i = 0; i < p.n_planes; ++i) given.push_back(&p.planes[i]);
  Planes planes;
  for (const PlaneSpec& spec : specs) {
    const auto from =
        std::ranges::find_if(given, [&](const qcts_plane* plane) { return spec.name == plane->name; });
    if (from == given.end()) throw std::invalid_argument("missing plane " + spec.name);
    planes.push_back(plane_copy(**from));
    given.erase(from);
  }
  for (const qcts_plane* plane : given) planes.push_back(plane_copy(*plane));
  return planes;
}

void put_planes(const Planes& planes, const qcts_problem& p) {
  for (uint32_t i = 0; i < p.n_out_planes; ++i) {
    const Plane& from = plane(planes, p.out_planes[i].name);
    if (!from.bytes.empty()) std::memcpy(p.out_planes[i].data, from.bytes.data(), from.bytes.size());
  }
}

// Copies the rows without the gaps between them.
std::vector<std::byte> rows_of(const void* x, int64_t rows, int64_t row_bytes, int64_t ld_bytes) {
  std::vector<std::byte> dense(static_cast<size_t>(rows * row_bytes));
  for (int64_t r = 0; r < rows && row_bytes > 0; ++r)
    std::memcpy(dense.data() + r * row_bytes, static_cast<const std::byte*>(x) + r * ld_bytes,
                static_cast<size_t>(row_bytes));
  return dense;
}

void put_rows(const std::vector<std::byte>& dense, int64_t rows, int64_t row_bytes, const qcts_problem& p) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(static_cast<std::byte*>(p.y) + r * p.ldy_bytes, dense.data() + r * row_bytes,
                static_cast<size_t>(row_bytes));
}

struct RowsOfX {
  std::vector<std::byte> bytes;
  Matrix matrix;
};

RowsOfX x_of(const qcts_problem& p, int64_t rows) {
  RowsOfX x;
  const DType dtype = dtype_of(p.op == QCTS_OP_QUANTIZE ? p.w_dtype : p.x_dtype);
  x.bytes = rows_of(p.x, rows, p.k * dtype_bytes(dtype), p.ldx_bytes);
  x.matrix = {dtype, rows, p.k, x.bytes};
  return x;
}

void linear(const qcts_problem& p) {
  const Scheme& scheme = scheme_of(p);
  const WeightShape shape = shape_of(p);
  const Planes planes = planes_of(p);
  const RowsOfX x = x_of(p, p.m);
  const Policy activation = policy_of(scheme, p);
  const Planes quantized =
      activation == kWeightOnly ? Planes() : scheme.quantize_activation(x.matrix, activation, planes);
  std::vector<double> values(static_cast<size_t>(p.m * p.k));
  for (int64_t m = 0; m < p.m; ++m) {
    const std::span<double> row(values.data() + m * p.k, static_cast<size_t>(p.k));
    if (activation != kWeightOnly) scheme.exact_activation(quantized, x.matrix, activation, m, row);
    for (size_t k = 0; activation == kWeightOnly && k < row.size(); ++k)
      row[k] = load_float(x.matrix.dtype, x.bytes, static_cast<size_t>(m * p.k) + k);
  }
  const DType y_dtype = dtype_of(p.y_dtype);
  std::vector<std::byte> bias, y(static_cast<size_t>(p.m * p.n) * dtype_bytes(y_dtype));
  if (p.bias) bias = rows_of(p.bias, 1, p.n * dtype_bytes(dtype_of(p.bias_dtype)), 0);
  std::vector<ExactWeight> weights(static_cast<size_t>(p.k));
  std::vector<OracleX> rows;
  for (int64_t m = 0; m < p.m; ++m)
    rows.push_back(oracle_x({values.data() + m * p.k, static_cast<size_t>(p.k)}));
  for (int64_t n = 0; n < p.n; ++n) {
    scheme.exact_row(planes, shape, n, weights);
    const OracleWeights prepared = oracle_weights(weights, scheme.group());
    const double b = p.bias ? load_float(dtype_of(p.bias_dtype), bias, static_cast<size_t>(n)) : 0;
    for (int64_t m = 0; m < p.m; ++m)
      store_float(y_dtype, y, static_cast<size_t>(m * p.n + n),
                  linear_oracle(prepared, rows[static_cast<size_t>(m)], b).y);
  }
  put_rows(y, p.m, p.n * dtype_bytes(y_dtype), p);
}

void run_op(const qcts_problem& p) {
  const Scheme& scheme = scheme_of(p);
  const WeightShape shape = shape_of(p);
  switch (p.op) {
    case QCTS_OP_QUANTIZE:
      return put_planes(scheme.quantize(x_of(p, p.n).matrix, layout_of(scheme, p)), p);
    case QCTS_OP_QUANTIZE_ACTIVATION:
      return put_planes(scheme.quantize_activation(x_of(p, p.m).matrix, policy_of(scheme, p), planes_of(p)),
                        p);
    case QCTS_OP_DEQUANTIZE:
      return put_rows(scheme.dequantize(planes_of(p), shape), p.n, p.k * dtype_bytes(shape.dtype), p);
    case QCTS_OP_PACK:
      return put_planes(scheme.pack(planes_of(p), shape, layout_of(scheme, p)), p);
    case QCTS_OP_UNPACK:
      return put_planes(scheme.unpack(planes_of(p), shape, layout_of(scheme, p)), p);
    case QCTS_OP_LINEAR:
      return linear(p);
    default:
      throw std::invalid_argument("op " + std::to_string(p.op));
  }
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  std::string reason;
  try {
    const Scheme& scheme = scheme_of(*problem);
    const Layout layout = problem->layout ? layout_of(scheme, *problem) : kPlain;
    reason = scheme.refusal(shape_of(*problem), layout).value_or("");
    if (reason.empty() && problem->activation && !scheme.find_activation(problem->activation))
      reason = "unknown activation policy " + std::string(problem->activation);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (reason.empty()) return QCTS_OK;
  if (why_size > 0) std::snprintf(why, why_size, "%s", reason.c_str());
  return QCTS_UNSUPPORTED;
}

qcts_status answer(const qcts_problem* problem) {
  const bool reads_rows = problem->op == QCTS_OP_LINEAR || problem->op == QCTS_OP_QUANTIZE_ACTIVATION;
  if (reads_rows && problem->m == 0) return QCTS_OK;
  try {
    run_op(*problem);
    return QCTS_OK;
  } catch (const std::exception&) {
    return QCTS_FAILED;
  }
}

// Kernels of one family point to its name, which the schemes own.
struct Table {
  std::deque<std::string> families, names;
  std::deque<qcts_kernel> kernels;
  std::vector<const qcts_kernel*> list;

  // `scheme`: the family; policies are added if the operation uses x.
  void add(uint32_t op, const char* scheme) {
    qcts_kernel kernel = {};
    kernel.struct_size = sizeof kernel;
    kernel.op = op;
    kernel.scheme = scheme;
    kernel.variant = "scalar";
    kernel.description = "reference/schemes, for goldens";
    kernel.claims = QCTS_CLAIM_DETERMINISTIC | QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_BATCH_INVARIANT;
    if (op != QCTS_OP_LINEAR) kernel.claims |= QCTS_CLAIM_BIT_EXACT;
    kernel.numerics.struct_size = sizeof kernel.numerics;
    kernel.numerics.accumulator = QCTS_F64;
    kernel.supports = supports;
    kernel.run = answer;
    list.push_back(&kernels.emplace_back(kernel));
  }

  void add_family(const std::string& family, bool packs, bool policies) {
    const char* name = families.emplace_back(family).c_str();
    const char* with_policies = names.emplace_back(family + ":*").c_str();
    for (const uint32_t op : {QCTS_OP_QUANTIZE, QCTS_OP_DEQUANTIZE}) add(op, name);
    add(QCTS_OP_LINEAR, with_policies);
    if (policies) add(QCTS_OP_QUANTIZE_ACTIVATION, with_policies);
    if (!packs) return;
    add(QCTS_OP_PACK, name);
    add(QCTS_OP_UNPACK, name);
  }
};

}  // namespace

const qcts_provider& reference_provider() {
  static const Table table = [] {
    Table made;
    for (const Scheme* scheme : schemes()) {
      const std::string family(scheme->family());
      if (std::find(made.families.begin(), made.families.end(), family) != made.families.end()) continue;
      bool packs = false, policies = false;
      for (const Scheme* other : schemes()) {
        if (other->family() != scheme->family()) continue;
        packs |= other->layouts().size() > 1;
        policies |= other->activations().size() > 1;
      }
      made.add_family(family, packs, policies);
    }
    return made;
  }();
  static const qcts_provider provider = [] {
    qcts_provider filled = {};
    filled.struct_size = sizeof filled;
    filled.abi_version = QCTS_ABI_VERSION;
    filled.name = kReferenceProvider;
    filled.version = QCTS_VERSION;
    filled.choices = QCTS_CHOICE_HOSTILE_INPUTS;
    filled.n_kernels = static_cast<uint32_t>(table.list.size());
    filled.kernels = table.list.data();
    return filled;
  }();
  return provider;
}

}  // namespace qcts
