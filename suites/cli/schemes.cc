// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/cli/commands.h"
#include "suites/cli/schemes_markdown.h"
#include "suites/run/environment.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kOps[] = {"quantize", "quantize_activation", "dequantize", "pack", "unpack", "linear"};
constexpr int64_t kExample = 1024;  // n = k of the example for payload bytes

bool packs(std::string_view op) { return op == "pack" || op == "unpack"; }

Json policies_taken(const Scheme& scheme, const Implementation& implementation) {
  Json names = Json::array();
  for (const ActivationInfo& policy : scheme.activations())
    if (implementation.takes(policy.name)) names.push_back(policy.name);
  return names;
}

// Returns {op: [variant, ...]} of the builtin kernels; pack and unpack only if the scheme has a packed
// layout.
Json operations(const Scheme& scheme, const Registry& registry) {
  Json ops = Json::object();
  for (const char* op : kOps) {
    if (packs(op) && scheme.layouts().size() < 2) continue;
    if (op == std::string_view("quantize_activation") && scheme.activations().size() < 2) continue;
    Json variants = Json::array();
    for (const Implementation& implementation : registry.implementations()) {
      if (op_name(implementation.kernel->op) != op || implementation.family() != scheme.family()) continue;
      const Json policies = policies_taken(scheme, implementation);
      if (!policies.empty())
        variants.push_back({{"name", implementation.name()},
                            {"refusal", implementation.machine_refusal()},
                            {"activations", policies}});
    }
    ops[op] = variants;
  }
  return ops;
}

Json size_example(const Scheme& scheme) {
  const WeightShape shape{DType::bfloat16, kExample, kExample};
  const uint64_t dense = bytes_of(shape.dtype, std::vector<int64_t>{shape.n, shape.k});
  Json planes = Json::array();
  for (const PlaneSpec& spec : scheme.plane_specs(shape))
    planes.push_back({{"name", spec.name},
                      {"dtype", dtype_name(spec.dtype)},
                      {"shape", spec.shape},
                      {"bytes", spec.bytes()}});
  const uint64_t payload = scheme.payload_bytes(shape);
  return {{"n", shape.n},
          {"k", shape.k},
          {"dtype", dtype_name(shape.dtype)},
          {"dense_bytes", dense},
          {"payload_bytes", payload},
          {"reduction", static_cast<double>(dense) / static_cast<double>(payload)},
          {"planes", planes}};
}

Json table() {
  Registry registry;
  registry.add(builtin_provider());
  Json rows = schemes_json();
  for (Json& row : rows) {
    const Scheme& scheme = *find_scheme(row["name"].get<std::string>());
    row["operations"] = operations(scheme, registry);
    row["size_example"] = size_example(scheme);
  }
  return rows;
}

std::string policy_names(const Json& row) {
  std::string names;
  for (const Json& policy : row["activations"]) names += policy["name"].get<std::string>() + "  ";
  return names;
}

std::string names_of(const Json& variants, const Json* policy) {
  std::string names;
  for (const Json& variant : variants) {
    const Json& taken = variant["activations"];
    if (policy && std::find(taken.begin(), taken.end(), *policy) == taken.end()) continue;
    const std::string refusal = variant["refusal"];
    names += variant["name"].get<std::string>() + (refusal.empty() ? "  " : " (" + refusal + ")  ");
  }
  return names.empty() ? "none" : names;
}

// The kernels of an operation, one line for each set of policies of x.
void print_operation(const Json& row, const std::string& op, const Json& variants) {
  std::vector<std::pair<std::string, std::string>> lines;  // variants, policies
  if (op == "linear" || op == "quantize_activation") {
    for (const Json& policy : row["activations"]) {
      const std::string &name = policy["name"].get_ref<const std::string&>(),
                        names = names_of(variants, &policy["name"]);
      if (op == "quantize_activation" && name.ends_with(kWeightOnly.name())) continue;
      const auto same = std::ranges::find(lines, names, [](const auto& line) { return line.first; });
      if (same == lines.end())
        lines.emplace_back(names, name);
      else
        same->second += "  " + name;
    }
  } else {
    lines.emplace_back(names_of(variants, nullptr), "");
  }
  std::string title = op == "quantize_activation" ? "activation" : op;
  for (const auto& [names, policies] : lines) {
    std::cout << "  " << title << std::string(12 - title.size(), ' ') << names << "\n";
    if (lines.size() > 1) std::cout << "                for x " << policies << "\n";
    title.clear();
  }
}

// Prints the first scheme of a family in full and the others in one line each, with their policies if these
// differ.
void print(const Json& rows) {
  std::string family, policies;
  for (const Json& row : rows) {
    if (row["family"] == family) {
      char reduction[32];
      std::snprintf(reduction, sizeof reduction, "%.2fx", row["size_example"]["reduction"].get<double>());
      std::cout << row["name"].get<std::string>() << ": " << row["summary"].get<std::string>() << "; "
                << reduction << "\n";
      if (policy_names(row) != policies) std::cout << "  x           " << policy_names(row) << "\n";
      policies = policy_names(row);
      continue;
    }
    if (!family.empty()) std::cout << "\n";
    family = row["family"];
    std::cout << row["name"].get<std::string>() << ": " << row["summary"].get<std::string>() << "\n  from "
              << row["source"].get<std::string>() << "\n";
    for (const auto& [op, variants] : row["operations"].items()) print_operation(row, op, variants);
    std::cout << "  layouts     ";
    for (const Json& layout : row["layouts"])
      std::cout << layout["name"].get<std::string>()
                << (layout["confirmed"].get<bool>() ? "  " : " (by index map, not confirmed on hardware)  ");
    policies = policy_names(row);
    std::cout << "\n  x           " << policies;
    const Json& size = row["size_example"];
    char line[160];
    std::snprintf(line, sizeof line, "\n  size        %lld x %lld %s: %llu -> %llu bytes, %.2fx\n",
                  size["n"].get<long long>(), size["k"].get<long long>(),
                  size["dtype"].get<std::string>().c_str(), size["dense_bytes"].get<unsigned long long>(),
                  size["payload_bytes"].get<unsigned long long>(), size["reduction"].get<double>());
    std::cout << line;
  }
}

void print_kept(const Json& kept) {
  std::cout << "\nread, inspected and saved byte for byte, but not dequantized\n";
  for (const Json& layout : kept)
    std::cout << "  " << layout["name"].get<std::string>() << ": " << layout["holds"].get<std::string>()
              << "; written by " << layout["written_by"].get<std::string>() << "\n    "
              << layout["why"].get<std::string>() << "\n    from " << layout["evidence"].get<std::string>()
              << "\n";
}

void print_choices(const Json& json) {
  for (const Json& entry : json["choices"]) {
    std::cout << entry["id"].get<std::string>() << ": " << entry["question"].get<std::string>() << "?"
              << (entry["a_provider_may_differ"].get<bool>() ? " (a provider may differ)" : "") << "\n";
    for (const Json& option : entry["options"]) {
      std::cout << "  " << option["id"].get<std::string>() << ": " << option["answer"].get<std::string>()
                << "\n    ";
      for (const Json& scheme : option["schemes"]) std::cout << scheme.get<std::string>() << " ";
      const std::string others = option["others"];
      std::cout << (others.empty() ? "" : "| " + others + " ") << "\n    from "
                << option["evidence"].get<std::string>() << "\n";
    }
  }
  std::cout << "documented claims that do not hold\n";
  for (const Json& claim : json["claims"])
    std::cout << "  " << claim["id"].get<std::string>() << ": " << claim["claim"].get<std::string>() << " ("
              << claim["source"].get<std::string>() << ")\n    " << claim["fact"].get<std::string>() << "; "
              << claim["evidence"].get<std::string>() << "\n";
}

}  // namespace

void add_schemes(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  auto choices = std::make_shared<bool>(false);
  auto markdown = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "schemes", "list the schemes, their layouts and the implementations of each operation");
  CLI::Option* as_json = command->add_flag("--json", *json, "print JSON");
  CLI::Option* ledger = command->add_flag(
      "--choices", *choices, "print the choices on which implementations disagree, and each one's choice");
  command
      ->add_flag("--markdown", *markdown, "print a table of the kernels for each scheme family and operation")
      ->excludes(as_json)
      ->excludes(ledger);
  command->callback([json, choices, markdown, &exit_code] {
    if (*markdown) {
      std::cout << schemes_markdown();
      exit_code = 0;
      return;
    }
    if (*choices) {
      const Json ledger = choices_json();
      if (*json)
        std::cout << ledger.dump(2) << "\n";
      else
        print_choices(ledger);
      exit_code = 0;
      return;
    }
    const Json rows = table();
    if (*json)
      std::cout << rows.dump(2) << "\n";
    else
      print(rows), print_kept(kept_layouts_json());
    exit_code = rows.empty() ? 3 : 0;
  });
}

}  // namespace qcts::cli
