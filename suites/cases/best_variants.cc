#include "suites/cases/best_variants.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "suites/providers/kernel_run.h"

namespace qcts {
namespace {

// Of x, for which an x that is not quantized may be multiplied by bytes faster than by pairs of bfloat16:
// integers need little decoding, but two products each. int8 on an EPYC Zen 4, one thread: m = 4 1.2 times as
// fast, m = 8 as fast, m = 16 0.9 times.
constexpr int64_t kFewRows = 4;

// The name of the group that `implementation` is in for this case: its provider's, or a part of it where no
// list of variants can know which is faster, or where many of those at the list's head may refuse.
std::string group_of(const Case& c, const Implementation& implementation) {
  if (c.kind != Kind::latency || c.op != "linear") return implementation.provider;
  const std::string_view variant = implementation.kernel->variant;
  const bool tiles = variant == "amx", pairs = tiles || variant == "avx512bf16" || variant == "avx512vbmi";
  // Of another x than bfloat16, which most of them refuse.
  if (pairs && c.synthetic->weight.dtype != DType::bfloat16) return implementation.provider + " pairs";
  // A tile's work is the same for one row as for sixteen.
  if (tiles && c.synthetic->m == 1) return implementation.provider + " tiles";
  if (c.activation == kWeightOnly && c.synthetic->m <= kFewRows && variant.ends_with("vnni"))
    return implementation.provider + " bytes";
  return implementation.provider;
}

// Asked without planes, of which a kernel of this program asks nothing where none are given.
bool serves(const Case& c, const Implementation& implementation) {
  if (!implementation.builtin || !c.synthetic) return true;
  const WeightShape& weight = c.synthetic->weight;
  const std::string family(c.scheme->family()), name(c.scheme->name()), activation(c.activation);
  qcts_problem p = {};
  p.struct_size = sizeof p;
  p.op = op_from_name(c.op);
  p.threads = 1;
  p.scheme = family.c_str();
  p.scheme_name = name.c_str();
  p.layout = c.layout.empty() ? "plain" : c.layout.c_str();
  p.activation = activation.c_str();
  p.m = c.synthetic->m;
  p.n = weight.n;
  p.k = weight.k;
  p.group = c.scheme->group();
  p.w_dtype = p.x_dtype = p.y_dtype = p.bias_dtype = abi_dtype(weight.dtype);
  p.ldx_bytes = weight.k * dtype_bytes(weight.dtype);
  p.ldy_bytes = (c.op == "linear" ? weight.n : weight.k) * dtype_bytes(weight.dtype);
  return implementation.kernel->supports(&p, nullptr, 0) == QCTS_OK;
}

}  // namespace

std::vector<const Implementation*> best_of(const Case& c, const std::vector<const Implementation*>& found) {
  std::vector<const Implementation*> here;
  std::ranges::copy_if(found, std::back_inserter(here),
                       [](const Implementation* each) { return each->machine_refusal().empty(); });
  std::set<std::string> served;  // by a kernel of these providers
  for (const Implementation* each : here)
    if (serves(c, *each)) served.insert(each->provider);
  std::set<std::string> groups;
  std::vector<const Implementation*> best;
  for (const Implementation* each : here)
    if ((!served.contains(each->provider) || serves(c, *each)) && groups.insert(group_of(c, *each)).second)
      best.push_back(each);
  return best;
}

}  // namespace qcts
