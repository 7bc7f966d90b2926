// SPDX-License-Identifier: BSD-3-Clause
// Tests what the registry refuses, and that a listed kernel can be found again. A bad provider that is
// accepted would crash or be skipped later, in a case that names something else.
#include "kernels/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "kernels/abi/known_part.h"

namespace qcts {
namespace {

using testing::HasSubstr;

qcts_status always(const qcts_problem*, char*, size_t) { return QCTS_OK; }
qcts_status nothing(const qcts_problem*) { return QCTS_OK; }
qcts_status prepare_nothing(const qcts_problem*, void*) { return QCTS_OK; }

qcts_kernel good_kernel() {
  qcts_kernel kernel = {};
  kernel.struct_size = sizeof kernel;
  kernel.op = QCTS_OP_LINEAR;
  kernel.scheme = "int8_row";
  kernel.variant = "scalar";
  kernel.numerics.struct_size = sizeof kernel.numerics;
  kernel.supports = always;
  kernel.run = nothing;
  return kernel;
}

struct Provider {
  qcts_kernel first = good_kernel(), second = good_kernel();
  const qcts_kernel* list[2] = {&first, &second};
  qcts_provider table = {};
  Provider() {
    second.op = QCTS_OP_DEQUANTIZE;
    table.struct_size = sizeof table;
    table.abi_version = QCTS_ABI_VERSION;
    table.name = "acme";
    table.version = "1";
    table.n_kernels = 2;
    table.kernels = list;
  }
};

struct ProviderFault {
  const char* name;
  std::function<void(Provider&)> plant;
  const char* message;
};

class RegistryRefuses : public testing::TestWithParam<ProviderFault> {};

TEST_P(RegistryRefuses, WithAReason) {
  Provider provider;
  GetParam().plant(provider);
  Registry registry;
  try {
    registry.add(provider.table);
    FAIL() << "was taken";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
  EXPECT_TRUE(registry.implementations().empty()) << "half of a refused provider stayed";
  EXPECT_TRUE(registry.providers().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Registry, RegistryRefuses,
    testing::Values(
        ProviderFault{"provider_too_small", [](Provider& p) { p.table.struct_size = 8; }, "struct_size 8"},
        ProviderFault{"abi_version", [](Provider& p) { p.table.abi_version = 1; }, "ABI version 1"},
        ProviderFault{"provider_without_name", [](Provider& p) { p.table.name = nullptr; }, "name"},
        ProviderFault{"provider_name_breaks_ids", [](Provider& p) { p.table.name = "Ac/me"; }, "name"},
        ProviderFault{"no_table", [](Provider& p) { p.table.kernels = nullptr; }, "kernels is NULL"},
        ProviderFault{"null_kernel", [](Provider& p) { p.list[1] = nullptr; }, "kernel 1 is NULL"},
        ProviderFault{"kernel_too_small", [](Provider& p) { p.second.struct_size = 16; },
                      "kernel 1: struct_size 16"},
        ProviderFault{"unknown_op", [](Provider& p) { p.second.op = 77; }, "unknown op 77"},
        ProviderFault{"no_scheme", [](Provider& p) { p.second.scheme = nullptr; }, "no scheme"},
        ProviderFault{"variant_breaks_ids", [](Provider& p) { p.second.variant = "avx_2"; }, "variant"},
        ProviderFault{"no_supports", [](Provider& p) { p.second.supports = nullptr; }, "no supports()"},
        ProviderFault{"no_run", [](Provider& p) { p.second.run = nullptr; },
                      "acme: dequantize/int8_row/scalar: no run()"},
        ProviderFault{"prepare_of_unknown_size", [](Provider& p) { p.first.prepare = prepare_nothing; },
                      "or neither"},
        ProviderFault{"numerics_unset", [](Provider& p) { p.first.numerics.struct_size = 0; },
                      "numerics.struct_size 0"},
        ProviderFault{"listed_twice", [](Provider& p) { p.second.op = QCTS_OP_LINEAR; }, "listed twice"}),
    [](const auto& info) { return info.param.name; });

// With such a name, cases that the suite answers itself would be counted as the library's passes.
TEST(Registry, GivesItsOwnNamesToNoLibrary) {
  for (const char* name : {"qcts", "builtin", "reference"}) {
    Provider provider;
    provider.table.name = name;
    Registry registry;
    try {
      registry.add(provider.table, "libacme.so");
      ADD_FAILURE() << name << " was taken";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("libacme.so"), HasSubstr(name)));
    }
    EXPECT_TRUE(registry.providers().empty());
    EXPECT_NO_THROW(registry.add(provider.table)) << "this program's own";
  }
}

// Structs only grow at their end: an older plug-in lacks the last fields, a newer one has more.
TEST(Registry, TakesAnOlderTableAndFillsItUp) {
  Provider provider;
  provider.table.struct_size = offsetof(qcts_provider, load_save);
  // Memory after an older table is not part of it.
  std::memset(&provider.table.load_save, 0x5a, sizeof provider.table.load_save);
  Registry registry;
  registry.add(provider.table);
  EXPECT_EQ(registry.implementations().size(), 2u);
  EXPECT_EQ(registry.provider("acme")->load_save, nullptr);
  EXPECT_TRUE(registry.file_implementations().empty());
}

TEST(Registry, ReadsALargerTableUpToWhatItKnows) {
  struct LargerKernel {
    qcts_kernel known = good_kernel();
    uint64_t more[4] = {1, 2, 3, 4};
  } kernel;
  struct {
    qcts_provider known = Provider().table;
    uint64_t more[4] = {1, 2, 3, 4};
  } provider;
  const qcts_kernel* const list[] = {&kernel.known};
  kernel.known.struct_size = sizeof kernel;
  provider.known.struct_size = sizeof provider;
  provider.known.kernels = list;
  provider.known.n_kernels = 1;
  provider.known.load_save = [](const char*, const char*, char*, size_t) { return QCTS_UNSUPPORTED; };
  Registry registry;
  registry.add(provider.known);
  ASSERT_EQ(registry.implementations().size(), 1u);
  EXPECT_EQ(registry.implementations()[0].kernel, &kernel.known)
      << "the provider's own entry is what it is called with";
  ASSERT_EQ(registry.file_implementations().size(), 1u);
  EXPECT_EQ(registry.file_implementations()[0].name(), "acme_loadsave");
}

// A compiled plug-in of 0.9 (abi/abi_0_9_test.c), whose entry answers only that version: the registry asks
// again.
TEST(Registry, LoadsAndRunsAPluginOfAbi0Point9) {
  Registry registry;
  registry.load(build_path("lib/selftest/abi_0_9.so"));
  ASSERT_EQ(registry.implementations().size(), 1u);
  const qcts_kernel& kernel = *registry.implementations()[0].kernel;
  int8_t codes[6] = {1, -2, 3, -4, 5, -128};
  float y[6] = {};
  qcts_plane plane = {};
  plane.struct_size = sizeof plane;
  plane.name = "qdata";
  plane.data = codes;
  const qcts_scheme_params params = {};
  qcts_problem problem = {};
  problem.struct_size = sizeof problem;
  problem.scheme_name = "int8_row";
  problem.params = &params;
  problem.n = 2;
  problem.k = 3;
  problem.w_dtype = QCTS_F32;
  problem.planes = &plane;
  problem.n_planes = 1;
  problem.y = y;
  problem.ldy_bytes = sizeof y / 2;
  char why[64] = "";
  ASSERT_EQ(kernel.supports(&problem, why, sizeof why), QCTS_OK) << why;
  ASSERT_EQ(kernel.run(&problem), QCTS_OK);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], codes[i]) << i;
}

// The sizes of 0.9 on a 64-bit machine: a smaller struct, or a field that moved, would break every plug-in.
TEST(Registry, NoStructIsSmallerThanInAbi0Point9) {
  EXPECT_EQ(sizeof(qcts_plane), 160u);
  EXPECT_EQ(offsetof(qcts_problem, params), 208u);
  EXPECT_EQ(offsetof(qcts_problem, device_info), 216u) << "params follows scheme_name, the last field of 0.9";
  EXPECT_EQ(sizeof(qcts_problem), 232u);
  EXPECT_EQ(sizeof(qcts_device_status), 8u) << "is in device memory";
  EXPECT_EQ(sizeof(qcts_numerics), 40u) << "stands in the middle of qcts_kernel";
  EXPECT_GE(sizeof(qcts_kernel), 120u);
  EXPECT_GE(sizeof(qcts_provider), 72u);
}

TEST(Registry, TakesTheTablesOfEveryMinorVersion) {
  struct {
    uint32_t version;
    size_t kernel_bytes;
    bool taken;
  } const cases[] = {{9, 120, true},
                     {9, 112, false},  // less than in 0.9
                     {10, offsetof(qcts_kernel, fused_sums), true},
                     {11, offsetof(qcts_kernel, failure), true},
                     {11, offsetof(qcts_kernel, reads_layouts), true},
                     {11, offsetof(qcts_kernel, align_bytes), true},
                     {QCTS_ABI_VERSION, sizeof(qcts_kernel), true},
                     {QCTS_ABI_VERSION + 1, sizeof(qcts_kernel) + 64, true},
                     {8, 120, false},
                     {100, sizeof(qcts_kernel), false}};
  for (const auto& each : cases) {
    SCOPED_TRACE(testing::Message() << each.version << " with " << each.kernel_bytes);
    struct Padded {
      qcts_kernel known = good_kernel();
      uint64_t more[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    } kernel;
    kernel.known.struct_size = static_cast<uint32_t>(each.kernel_bytes);
    kernel.known.fused_sums = {sizeof(qcts_fused_sums), 8, 24, 23, 0, 0};
    kernel.known.failure = [](char*, size_t) {};
    kernel.known.reads_layouts = "tile_packed_4d";
    kernel.known.align_bytes = 16;
    const qcts_kernel* const list[] = {&kernel.known};
    qcts_provider table = Provider().table;
    table.abi_version = each.version;
    table.kernels = list;
    table.n_kernels = 1;
    Registry registry;
    EXPECT_EQ(takes_abi_version(each.version), each.version >= 9 && each.version < 100);
    if (each.taken)
      EXPECT_NO_THROW(registry.add(table));
    else
      EXPECT_THROW(registry.add(table), std::runtime_error);
    EXPECT_EQ(registry.implementations().size(), each.taken ? 1u : 0u);
    for (const Implementation& taken : registry.implementations()) {
      const auto has = [&](size_t end) { return each.kernel_bytes >= end; };
      EXPECT_EQ(taken.kernel->fused_sums.terms, has(offsetof(qcts_kernel, failure)) ? 8u : 0u);
      EXPECT_EQ(taken.kernel->failure != nullptr, has(offsetof(qcts_kernel, reads_layouts)));
      EXPECT_EQ(taken.reads("tile_packed_4d"), has(offsetof(qcts_kernel, align_bytes)))
          << "a field beyond its end was read";
      EXPECT_EQ(taken.kernel->align_bytes, has(sizeof(qcts_kernel)) ? 16u : 0u);
      EXPECT_TRUE(taken.reads("plain"));
    }
  }
}

// How the registry handles kernels after qcts_kernel has grown.
TEST(Registry, FillsUpAKernelOfAnOlderVersion) {
  struct Grown {
    qcts_kernel old;
    const char* added;
  } given = {good_kernel(), "beyond the end"};
  given.old.struct_size = sizeof given.old;
  const Grown filled = known_part<Grown>(&given, sizeof given.old, "kernel");
  EXPECT_EQ(filled.old.run, given.old.run);
  EXPECT_EQ(filled.added, nullptr) << "a field beyond its end was read";
  given.old.struct_size = sizeof given;
  EXPECT_EQ(known_part<Grown>(&given, sizeof given.old, "kernel").added, given.added);
  EXPECT_EQ(known_part<qcts_kernel>(&given, sizeof given.old, "kernel").run, given.old.run);
  given.old.struct_size = sizeof given.old - 8;
  EXPECT_THROW(known_part<Grown>(&given, sizeof given.old, "kernel"), std::runtime_error);
}

// Kernels of this program read the parameters. Without them, as from a host of 0.9, they must refuse.
TEST(Registry, BuiltinKernelsRefuseAHostWithoutParameters) {
  Registry registry;
  registry.add(builtin_provider());
  int asked = 0;
  for (const Implementation& implementation : registry.implementations()) {
    if (!implementation.machine_refusal().empty()) continue;
    qcts_problem problem = {};
    problem.struct_size = sizeof problem;
    problem.op = implementation.kernel->op;
    problem.threads = 1;
    problem.scheme = implementation.kernel->scheme;
    problem.scheme_name = "int8_row";
    problem.layout = "plain";
    const std::string scheme = implementation.kernel->scheme;
    const size_t colon = scheme.find(':');
    const std::string policy =
        colon == scheme.npos ? "weight_only" : scheme.substr(colon + 1, scheme.find(',') - colon - 1);
    problem.activation = policy.c_str();
    problem.m = problem.n = problem.k = 256;
    problem.group = 32;
    problem.w_dtype = problem.x_dtype = problem.y_dtype = QCTS_F32;
    char why[256] = "";
    EXPECT_EQ(implementation.kernel->supports(&problem, why, sizeof why), QCTS_UNSUPPORTED);
    EXPECT_THAT(why, HasSubstr("parameters")) << op_name(implementation.kernel->op) << " " << scheme;
    ++asked;
  }
  EXPECT_GE(asked, 20);
}

TEST(Registry, RefusesASecondProviderOfTheSameName) {
  Provider one, other;
  Registry registry;
  registry.add(one.table);
  EXPECT_THROW(registry.add(other.table), std::runtime_error);
  EXPECT_EQ(registry.implementations().size(), 2u);
}

// Structs grow at their ends: a provider compiled before programs could be run is accepted, and runs none.
TEST(Registry, TakesAProviderThatIsOlderThanTheLastField) {
  Provider older;
  older.table.struct_size = offsetof(qcts_provider, run_program);
  older.table.load_save = [](const char*, const char*, char*, size_t) { return QCTS_OK; };
  older.table.run_program = [](const qcts_program_call*, char*, size_t) { return QCTS_OK; };
  Registry registry;
  registry.add(older.table);
  EXPECT_EQ(registry.implementations().size(), 2u);
  ASSERT_EQ(registry.file_implementations().size(), 1u);
  EXPECT_FALSE(registry.file_implementations()[0].runs_programs()) << "a field beyond its end was read";
  older.table.struct_size = sizeof older.table;
  Registry whole, without_load;
  whole.add(older.table);
  EXPECT_TRUE(whole.file_implementations().back().runs_programs());
  older.table.load_save = nullptr;
  without_load.add(older.table);
  EXPECT_TRUE(without_load.file_implementations().empty()) << "a program is saved before it is run";
}

TEST(Registry, NamesTheLibraryThatCannotBeLoaded) {
  Registry registry;
  try {
    registry.load("/nonexistent/libacme.so");
    FAIL() << "was loaded";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/libacme.so"));
  }
}

// Shared objects that are not providers are refused, not called.
TEST(Registry, RefusesALibraryWithoutEntry) {
  Registry registry;
  try {
    registry.load("libz.so.1");
    FAIL() << "was loaded";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("qcts_provider_entry"));
  }
}

// The list promises best first, and a scalar kernel for every (op, scheme): without vectors a machine is
// slower, but lacks nothing.
TEST(Registry, EveryBuiltinOperationEndsInScalar) {
  Registry registry;
  registry.add(builtin_provider());
  std::map<std::pair<std::string, std::string>, std::string> last;  // (op, scheme with its policies): variant
  for (const Implementation& implementation : registry.implementations())
    last[{std::string(op_name(implementation.kernel->op)), implementation.kernel->scheme}] =
        implementation.kernel->variant;
  ASSERT_GE(last.size(), 11u);
  for (const auto& [key, variant] : last) EXPECT_EQ(variant, "scalar") << key.first << "/" << key.second;
}

TEST(Registry, OpNamesAreOneToOne) {
  for (uint32_t op = QCTS_OP_QUANTIZE; op <= QCTS_OP_LINEAR; ++op) EXPECT_EQ(op_from_name(op_name(op)), op);
  EXPECT_EQ(op_from_name("matmul"), 0u);
  EXPECT_TRUE(op_name(0).empty());
}

}  // namespace
}  // namespace qcts
