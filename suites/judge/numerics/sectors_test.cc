// SPDX-License-Identifier: BSD-3-Clause
// Tests that the memory-bound CUDA kernels move whole sectors: in the checked executor (kernels/emulated),
// the 32-byte sectors that the warps of a launch touch are at most 1.05 times those that would hold the same
// bytes. One case a kernel, with aligned buffers, which is the path that counts; also, no check of the
// executor finds a fault.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/cases/named.h"
#include "suites/inputs/generate.h"
#include "suites/providers/kernel_run.h"
#include "suites/providers/problem.h"

namespace qcts {
namespace {

constexpr double kMostOfIdeal = 1.05;

struct Sectors {
  uint64_t read, ideal_read, written, ideal_written, turns, ideal_turns;
};

// The layouts in which the kernel moves planes: of pack and unpack one, of linear each that it reads.
std::vector<Layout> layouts_of(const Implementation& implementation, const Scheme& scheme) {
  const Op op = op_of(implementation.kernel->op);
  const bool packs = op == Op::pack || op == Op::unpack;
  std::vector<Layout> layouts;
  for (const Layout layout : scheme.layouts())
    if (op == Op::linear ? implementation.reads(layout.name()) : (layout != kPlain) == packs)
      layouts.push_back(layout);
  return layouts;
}

// Returns weights of the kernel's family, and x of one row: the first that it takes, and of a linear one for
// each layout. Throws std::logic_error if no scheme of the family will do.
std::vector<KernelInput> inputs_for(const Implementation& implementation) {
  const Op op = op_of(implementation.kernel->op);
  for (const Scheme* scheme : schemes()) {
    if (scheme->family() != implementation.family()) continue;
    Synthetic synthetic;
    synthetic.weight = {DType::bfloat16, 64, 1024};
    synthetic.m = op == Op::quantize_activation ? 64 : 1;
    bool takes = op != Op::linear && op != Op::quantize_activation;
    for (const Policy policy : scheme->activations()) {
      if (takes || !implementation.takes(policy.name())) continue;
      synthetic.activation = policy;
      takes = true;
    }
    if (!takes) continue;
    std::vector<KernelInput> inputs;
    for (const Layout layout : layouts_of(implementation, *scheme)) {
      KernelInput input = generate(*scheme, op, layout, synthetic, 1).input;
      if ((inputs.empty() || op == Op::linear) &&
          KernelRun(*implementation.kernel, input, {1, 0, 0}).supports().status == QCTS_OK)
        inputs.push_back(std::move(input));
    }
    if (!inputs.empty()) return inputs;
  }
  throw std::logic_error("no input for " + std::string(implementation.kernel->scheme));
}

TEST(Sectors, AreAsFewAsTheBytesNeed) {
  const std::filesystem::path library = build_path("lib/selftest/qcts_cudachecked.so");
  if (!std::filesystem::exists(library))
    GTEST_SKIP() << "not built: this build's sanitizer has its own hooks";
  ::setenv("QCTS_COUNT_ACCESSES", "1", 1);
  Registry registry;
  registry.load(library);
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto counts = reinterpret_cast<void (*)(uint64_t*)>(::dlsym(handle, "qcts_cudachecked_counts"));
  ASSERT_NE(counts, nullptr);
  for (const Implementation& implementation : registry.implementations()) {
    for (const KernelInput& input : inputs_for(implementation)) {
      const std::string name = std::string(op_name(implementation.kernel->op)) + "_" +
                               std::string(implementation.family()) + "_" + std::string(input.layout.name());
      SCOPED_TRACE(name);
      KernelRun run(*implementation.kernel, input, {1, 0, 0});
      ASSERT_NO_THROW(run.run(Poison::nan));
      Sectors sectors;
      counts(&sectors.read);
      ASSERT_GT(sectors.ideal_read, 0u);
      ASSERT_GT(sectors.ideal_written, 0u);
      const auto moved = static_cast<double>(sectors.read + sectors.written),
                 ideal = static_cast<double>(sectors.ideal_read + sectors.ideal_written);
      EXPECT_LE(moved, kMostOfIdeal * ideal)
          << "read " << sectors.read << " of " << sectors.ideal_read << ", written " << sectors.written
          << " of " << sectors.ideal_written;
      RecordProperty(name, std::to_string(moved / ideal));
    }
  }
}

}  // namespace
}  // namespace qcts
