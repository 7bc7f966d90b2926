// torchao 0.15 to 0.18: Int8Tensor.
#include "reference/dialects/attributes.h"
#include "reference/dialects/schema.h"
#include "reference/dialects/view.h"

namespace qcts {
namespace {

Recognized recognize(const NamedTensor& tensor) {
  if (tensor.type != "Int8Tensor") return {};
  const bool weight_only = is_null(tensor, "act_quant_kwargs") &&
                           tensor.attributes.value("reduce_range", Json(false)) != Json(true) &&
                           !any_payload(tensor, {"act_quant_scale", "act_quant_zero_point", "act_pre_scale"});
  return weight_only && one_scale_a_row(tensor) ? Recognized{"int8_row", "plain"} : Recognized{};
}

// 0.15 stored scales in the logical dtype, and no zero point.
std::optional<Plane> convert(const NamedTensor&, const Tensor* part, const PlaneSpec& spec) {
  if (!part) return spec.name == "zero_point" ? std::optional(zeros(spec)) : std::nullopt;
  if (spec.name == "scale" && part->dtype != spec.dtype) return widened(*part, spec);
  return std::nullopt;
}

}  // namespace

extern const View kView_int8 = {recognize, nullptr, convert};

}  // namespace qcts
