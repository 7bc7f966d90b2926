// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/static_scales.h"

#include <cmath>
#include <string>

#include "reference/numerics/soft_float.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

// Returns "--activation-scale" for act_quant_scale; "" if no option sets such a plane.
std::string option_of(std::string_view plane) {
  if (plane == "act_quant_scale") return "--activation-scale";
  if (plane == "output_act_quant_scale") return "--output-scale";
  if (plane == "act_quant_zero_point") return "--activation-zero-point";
  return "";
}

std::optional<double> given(const std::string& option, const StaticScales& scales) {
  if (option == "--activation-scale") return scales.activation;
  if (option == "--output-scale") return scales.output;
  return scales.zero_point;
}

void require_in_range(const StaticScales& scales) {
  for (const auto& scale : {scales.activation, scales.output})
    if (scale && !(std::isfinite(*scale) && *scale > 0))
      throw UsageError("a scale must be finite and above 0");
  if (scales.zero_point && (*scales.zero_point < -128 || *scales.zero_point > 127))
    throw UsageError("--activation-zero-point must be in -128 .. 127");
}

}  // namespace

void add_static_options(CLI::App& command, StaticScales& scales) {
  command.add_option("--activation-scale", scales.activation,
                     "scale of x for static policies, from calibration");
  command.add_option("--activation-zero-point", scales.zero_point,
                     "zero point of x for static policies that have one");
  command.add_option("--output-scale", scales.output, "scale of the output for static_tensor_out");
}

Planes static_planes(const Scheme& scheme, Policy activation, const StaticScales& scales) {
  require_in_range(scales);
  const std::string policy(activation.name());
  Planes planes = make_planes(scheme.policy_specs({DType::bfloat16, 64, 256}, activation));
  size_t taken = 0;
  for (Plane& plane : planes) {
    const std::string option = option_of(plane.name);
    if (option.empty())
      throw UsageError(policy + " needs " + plane.name + " from a calibration, which IN does not contain");
    const std::optional<double> value = given(option, scales);
    if (!value) throw UsageError(policy + " needs " + option + ", which comes from a calibration");
    ++taken;
    if (is_float(plane.dtype))
      store_float(plane.dtype, plane.bytes, 0, *value);
    else
      plane.bytes[0] = static_cast<std::byte>(static_cast<int8_t>(*value));
  }
  const size_t offered =
      scales.activation.has_value() + scales.output.has_value() + scales.zero_point.has_value();
  if (offered > taken) throw UsageError(policy + " does not use one of the given scales");
  return planes;
}

}  // namespace qcts::cli
