#include "suites/rivals.h"

namespace qcts {
namespace {

// Of x, for which an x that is not quantized may be multiplied by bytes faster than by pairs of bfloat16:
// integers need little decoding, but two products each. int8 on an EPYC Zen 4, one thread: m = 4 1.2 times as
// fast, m = 8 as fast, m = 16 0.9 times.
constexpr int64_t kFewRows = 4;

}  // namespace

std::string rivals_of(const Case& c, const Implementation& implementation) {
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

}  // namespace qcts
