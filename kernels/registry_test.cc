// What the registry refuses to take, and that a list entry can be found again. A provider that slips through
// here would crash or be skipped later, in a case that names something else.
#include "kernels/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

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

struct Fault {
  const char* name;
  std::function<void(Provider&)> plant;
  const char* message;
};

class RegistryRefuses : public testing::TestWithParam<Fault> {};

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
        Fault{"provider_too_small", [](Provider& p) { p.table.struct_size = 8; }, "struct_size 8"},
        Fault{"abi_version", [](Provider& p) { p.table.abi_version = 1; }, "ABI version 1"},
        Fault{"provider_without_name", [](Provider& p) { p.table.name = nullptr; }, "name"},
        Fault{"provider_name_breaks_ids", [](Provider& p) { p.table.name = "Ac/me"; }, "name"},
        Fault{"no_table", [](Provider& p) { p.table.kernels = nullptr; }, "no table"},
        Fault{"null_kernel", [](Provider& p) { p.list[1] = nullptr; }, "kernel 1 is NULL"},
        Fault{"kernel_too_small", [](Provider& p) { p.second.struct_size = 16; }, "kernel 1: struct_size 16"},
        Fault{"unknown_op", [](Provider& p) { p.second.op = 77; }, "unknown op 77"},
        Fault{"no_scheme", [](Provider& p) { p.second.scheme = nullptr; }, "no scheme"},
        Fault{"variant_breaks_ids", [](Provider& p) { p.second.variant = "avx_2"; }, "variant"},
        Fault{"no_supports", [](Provider& p) { p.second.supports = nullptr; }, "no supports()"},
        Fault{"no_run", [](Provider& p) { p.second.run = nullptr; },
              "acme: dequantize/int8_row/scalar: no run()"},
        Fault{"prepare_of_unknown_size", [](Provider& p) { p.first.prepare = prepare_nothing; },
              "come together"},
        Fault{"numerics_unset", [](Provider& p) { p.first.numerics.struct_size = 0; },
              "numerics.struct_size 0"},
        Fault{"listed_twice", [](Provider& p) { p.second.op = QCTS_OP_LINEAR; }, "listed twice"}),
    [](const auto& info) { return info.param.name; });

TEST(Registry, RefusesASecondProviderOfTheSameName) {
  Provider one, other;
  Registry registry;
  registry.add(one.table);
  EXPECT_THROW(registry.add(other.table), std::runtime_error);
  EXPECT_EQ(registry.implementations().size(), 2u);
}

// Structs grow at their ends: a provider compiled before programs could be run is taken, and runs none.
TEST(Registry, TakesAProviderThatIsOlderThanTheLastField) {
  Provider older;
  older.table.struct_size = offsetof(qcts_provider, run_program);
  older.table.load_save = [](const char*, const char*, char*, size_t) { return QCTS_OK; };
  older.table.run_program = [](const qcts_program_call*, char*, size_t) { return QCTS_OK; };
  Registry registry;
  registry.add(older.table);
  EXPECT_EQ(registry.implementations().size(), 2u);
  EXPECT_FALSE(runs_programs(*registry.provider(older.table.name))) << "a field behind its end was read";
  older.table.struct_size = sizeof older.table;
  EXPECT_TRUE(runs_programs(older.table));
  older.table.load_save = nullptr;
  EXPECT_FALSE(runs_programs(older.table));
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

// Shared objects that are no providers are refused, not called.
TEST(Registry, RefusesALibraryWithoutEntry) {
  Registry registry;
  try {
    registry.load("libz.so.1");
    FAIL() << "was loaded";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("qcts_provider_entry"));
  }
}

// The list promises best first, down to a scalar one for every (op, scheme): a machine without vectors is
// slower, never without.
TEST(Registry, EveryBuiltinOperationEndsInScalar) {
  Registry registry;
  registry.add(builtin_provider());
  std::set<std::pair<std::string, std::string>> pairs;
  for (const Implementation& implementation : registry.implementations())
    pairs.insert({std::string(op_name(implementation.kernel->op)), implementation.kernel->scheme});
  ASSERT_GE(pairs.size(), 11u);
  for (const auto& [op, scheme] : pairs) {
    const auto found = registry.find(op, scheme);
    ASSERT_FALSE(found.empty());
    EXPECT_STREQ(found.back()->kernel->variant, "scalar") << op << "/" << scheme;
  }
}

TEST(Registry, OpNamesAreOneToOne) {
  for (uint32_t op = QCTS_OP_QUANTIZE; op <= QCTS_OP_LINEAR; ++op) EXPECT_EQ(op_from_name(op_name(op)), op);
  EXPECT_EQ(op_from_name("matmul"), 0u);
  EXPECT_TRUE(op_name(0).empty());
}

}  // namespace
}  // namespace qcts
