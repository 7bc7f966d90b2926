// Scales of x that a checkpoint gives and no quantizer would have found: zero, subnormal, negative, infinite,
// NaN. Each builtin kernel answers as the reference does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "suites/generate.h"
#include "suites/latency_case.h"

namespace qcts {
namespace {

constexpr float kScales[] = {0.0f, 1e-45f, 1e-38f, 0x1p-20f, 0x1p20f, 3e38f, -1.0f, INFINITY, NAN};

Plane* given_scale(Planes& planes) {
  for (Plane& plane : planes)
    if (plane.name == "act_per_tensor_scale" || plane.name == "act_quant_scale") return &plane;
  return nullptr;
}

TEST(GivenScales, AreTakenAsTheReferenceTakesThem) {
  Registry registry;
  registry.add(builtin_provider());
  int judged = 0;
  for (const Scheme* scheme : schemes())
    for (const ActivationInfo& policy : scheme->activations())
      for (const Implementation& implementation : registry.implementations()) {
        if (implementation.kernel->op != QCTS_OP_QUANTIZE_ACTIVATION ||
            implementation.family() != scheme->family() || !implementation.machine_refusal().empty())
          continue;
        KernelInput input;
        input.op = "quantize_activation";
        input.scheme = scheme;
        input.weight = {DType::bfloat16, 16, 256};
        input.layout = "plain";
        input.activation = policy.name;
        input.x_dtype = input.y_dtype = input.bias_dtype = DType::bfloat16;
        if (scheme->refusal(input.weight)) continue;
        input.planes = random_planes(*scheme, input.weight, 3);
        for (Plane& plane : policy_planes(*scheme, input.weight, policy.name, false))
          input.planes.push_back(std::move(plane));
        if (given_scale(input.planes) == nullptr) continue;
        input.m = 5;
        input.x = noise_weight_for(*scheme, {DType::bfloat16, input.m, input.weight.k}, 4);
        for (size_t i = 0; i + 2 <= input.x.size(); i += 14) input.x[i] = input.x[i + 1] = std::byte{};
        for (const float scale : kScales) {
          store_float(DType::float32, given_scale(input.planes)->bytes, 0, scale);
          TimedKernel kernel(*implementation.kernel, input, 1);
          if (kernel.supports().status != QCTS_OK) continue;
          ++judged;
          EXPECT_EQ(kernel.make_and_verify(1), "")
              << scheme->name() << " " << policy.name << " " << implementation.name() << " scale " << scale;
        }
      }
  EXPECT_GE(judged, 18);
}

}  // namespace
}  // namespace qcts
