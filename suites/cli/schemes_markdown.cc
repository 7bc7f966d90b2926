// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/schemes_markdown.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "reports/case_id.h"
#include "suites/base/paths.h"
#include "suites/providers/reference_provider.h"

namespace qcts::cli {
namespace {

using Row = std::vector<std::string>;

struct Column {
  std::string_view title;
  Op op;
};
constexpr Column kColumns[] = {{"quantize w", Op::quantize},   {"quantize x", Op::quantize_activation},
                               {"dequantize", Op::dequantize}, {"pack", Op::pack},
                               {"unpack", Op::unpack},         {"linear", Op::linear}};
constexpr std::string_view kTargets[] = {"ref", "avx2", "avx512", "amx", "cuda"};

// Returns one of kTargets; "" for scalar kernels, which the table leaves out.
std::string_view target_of(const Implementation& implementation) {
  if (implementation.provider == kReferenceProvider) return "ref";
  const std::string_view variant = implementation.kernel->variant;
  if (variant.starts_with("sm")) return "cuda";
  if (variant.starts_with("avx512")) return "avx512";
  if (variant == "amx") return "amx";
  return variant.starts_with("avx") ? "avx2" : "";
}

bool has_operation(const Scheme& scheme, Op op) {
  if (op == Op::pack || op == Op::unpack) return scheme.layouts().size() > 1;
  if (op == Op::quantize_activation)
    return std::ranges::any_of(scheme.activations(), [](const Policy policy) {
      return !policy.name().ends_with(kWeightOnly.name());
    });
  return true;
}

bool serves(const Implementation& implementation, const Scheme& scheme, Op op) {
  const bool all = implementation.provider == kReferenceProvider;  // the reference has every policy
  return op_name(implementation.kernel->op) == op_name(op) && implementation.family() == scheme.family() &&
         (all || std::ranges::any_of(scheme.activations(), [&](const Policy policy) {
            return implementation.takes(policy.name());
          }));
}

std::string cell(const std::vector<const Scheme*>& family, Op op, const Registry& registry) {
  std::string names;
  for (const std::string_view target : kTargets) {
    const bool served = std::ranges::any_of(family, [&](const Scheme* scheme) {
      return has_operation(*scheme, op) &&
             std::ranges::any_of(registry.implementations(), [&](const Implementation& implementation) {
               return target_of(implementation) == target && serves(implementation, *scheme, op);
             });
    });
    if (served) names += (names.empty() ? "" : " ") + std::string(target);
  }
  return names.empty() ? "-" : names;
}

std::vector<std::vector<const Scheme*>> families() {
  std::vector<std::vector<const Scheme*>> found;
  for (const Scheme* scheme : schemes()) {
    const auto same = std::ranges::find_if(
        found, [&](const auto& family) { return family.front()->family() == scheme->family(); });
    if (same == found.end())
      found.push_back({scheme});
    else
      same->push_back(scheme);
  }
  return found;
}

std::string padded(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      text += (i == 0 ? "| " : " | ") + row[i] + std::string(widths[i] - row[i].size(), ' ');
    text += " |\n";
    if (&row != &rows.front()) continue;
    for (const size_t width : widths) text += "|" + std::string(width + 2, '-');
    text += "|\n";
  }
  return text;
}

// Adds the kernels for CUDA devices, which every build has in the provider cudaemu.
void add_device_kernels(Registry& registry) {
  for (const std::filesystem::path& plugin : discovered_plugins())
    if (plugin.stem() == "libqcts_cudaemu") registry.load(plugin);
}

}  // namespace

std::string schemes_markdown() {
  Registry registry;
  registry.add(builtin_provider());
  registry.add(reference_provider());
  add_device_kernels(registry);
  std::vector<Row> rows = {{"scheme family"}};
  for (const Column& column : kColumns) rows.front().emplace_back(column.title);
  for (const std::vector<const Scheme*>& family : families()) {
    Row row = {"`" + std::string(family.front()->family()) + "`"};
    for (const Column& column : kColumns) row.push_back(cell(family, column.op, registry));
    rows.push_back(std::move(row));
  }
  return padded(rows);
}

}  // namespace qcts::cli
