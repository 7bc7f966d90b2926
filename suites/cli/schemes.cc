// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>

#include <unistd.h>

#include "kernels/registry.h"
#include "reference/schemes/scheme.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/json_document.h"
#include "suites/base/run_error.h"
#include "suites/base/terminal.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/cli/scheme_definition.h"
#include "suites/cli/schemes_markdown.h"
#include "suites/run/environment/environment.h"

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

// The schemes of other group lengths that are named.
std::vector<const Scheme*> others_among(const std::vector<std::string>& names) {
  std::vector<const Scheme*> others;
  for (const std::string& name : names)
    if (const Scheme* scheme = find_scheme(name); scheme && !is_listed(*scheme)) others.push_back(scheme);
  return others;
}

Json table(const std::vector<const Scheme*>& others) {
  Registry registry;
  registry.add(builtin_provider());
  Json rows = schemes_json(others);
  for (Json& row : rows) {
    const Scheme& scheme = *find_scheme(row["name"].get<std::string>());
    row["operations"] = operations(scheme, registry);
    row["size_example"] = size_example(scheme);
  }
  return rows;
}

std::string listed(const Json& entries, const char* name = nullptr) {
  std::string text;
  for (const Json& entry : entries)
    text += (text.empty() ? "" : ", ") + (name ? entry[name] : entry).get<std::string>();
  return text;
}

std::string policy_names(const Json& row) { return listed(row["activations"], "name"); }

std::string names_of(const Json& variants, const Json* policy) {
  std::string names;
  for (const Json& variant : variants) {
    const Json& taken = variant["activations"];
    if (policy && std::find(taken.begin(), taken.end(), *policy) == taken.end()) continue;
    const std::string refusal = variant["refusal"];
    names += (names.empty() ? "" : ", ") + variant["name"].get<std::string>() +
             (refusal.empty() ? "" : " (" + refusal + ")");
  }
  return names.empty() ? "none" : names;
}

// The kernels of an operation, one paragraph for each set of policies of x.
void print_operation(const Json& row, const std::string& op, const Json& variants, Printout& out) {
  if (op != "linear" && op != "quantize_activation")
    return out.text(op + ": " + names_of(variants, nullptr), 2);
  std::vector<std::pair<std::string, std::string>> kernels;  // variants, policies
  for (const Json& policy : row["activations"]) {
    const std::string &name = policy["name"].get_ref<const std::string&>(),
                      names = names_of(variants, &policy["name"]);
    if (op == "quantize_activation" && name.ends_with(kWeightOnly.name())) continue;
    const auto same = std::ranges::find(kernels, names, [](const auto& pair) { return pair.first; });
    if (same == kernels.end())
      kernels.emplace_back(names, name);
    else
      same->second += ", " + name;
  }
  for (const auto& [names, policies] : kernels)
    out.text(op + (kernels.size() > 1 ? " for x " + policies : "") + ": " + names, 2);
}

std::string layout_names(const Json& row) {
  std::string names;
  for (const Json& layout : row["layouts"])
    names += (names.empty() ? "" : ", ") + layout["name"].get<std::string>() +
             (layout["confirmed"].get<bool>() ? "" : " (by index map, not confirmed on hardware)");
  return names;
}

std::string size_text(const Json& size) {
  return std::to_string(size["n"].get<int64_t>()) + " x " + std::to_string(size["k"].get<int64_t>()) + " " +
         size["dtype"].get<std::string>() + ": " + with_commas(size["dense_bytes"].get<double>()) + " -> " +
         with_commas(size["payload_bytes"].get<double>()) + " bytes, " +
         fixed(size["reduction"].get<double>(), 2) + "x";
}

void print_in_full(const Json& row, Printout& out) {
  out.text(row["name"].get<std::string>() + ": " + row["summary"].get<std::string>(), 0, Ink::bold);
  out.text("from " + row["source"].get<std::string>(), 2);
  for (const auto& [op, variants] : row["operations"].items()) print_operation(row, op, variants, out);
  out.text("layouts: " + layout_names(row), 2);
  out.text("x: " + policy_names(row), 2);
  out.text("size: " + size_text(row["size_example"]), 2);
}

// Prints the first scheme of a family in full and the others in one paragraph each, with their policies if
// these differ.
void print(const Json& rows, Printout& out) {
  std::string family, policies;
  for (const Json& row : rows) {
    const bool first = row["family"] != family;
    if (first) {
      if (!family.empty()) out.blank();
      family = row["family"];
      print_in_full(row, out);
    } else {
      out.text(row["name"].get<std::string>() + ": " + row["summary"].get<std::string>() + "; " +
               fixed(row["size_example"]["reduction"].get<double>(), 2) + "x");
      if (policy_names(row) != policies) out.text("x: " + policy_names(row), 2);
    }
    policies = policy_names(row);
  }
}

void print_kept(const Json& kept, Printout& out) {
  out.blank();
  out.text("read, inspected and saved byte for byte, but not dequantized", 0, Ink::bold);
  for (const Json& layout : kept) {
    out.text(layout["name"].get<std::string>() + ": " + layout["holds"].get<std::string>() + "; written by " +
                 layout["written_by"].get<std::string>(),
             2);
    out.text(layout["why"].get<std::string>(), 4);
    out.text("from " + layout["evidence"].get<std::string>(), 4);
  }
}

void print_choices(const Json& json, Printout& out) {
  for (const Json& entry : json["choices"]) {
    out.text(entry["id"].get<std::string>() + ": " + entry["question"].get<std::string>() + "?" +
                 (entry["a_provider_may_differ"].get<bool>() ? " (a provider may differ)" : ""),
             0, Ink::bold);
    for (const Json& option : entry["options"]) {
      const std::string followers = listed(option["schemes"]), others = option["others"];
      out.text(option["id"].get<std::string>() + ": " + option["answer"].get<std::string>(), 2);
      if (!followers.empty()) out.text(followers, 4);
      if (!others.empty()) out.text("others: " + others, 4);
      out.text("from " + option["evidence"].get<std::string>(), 4);
    }
  }
  out.blank();
  out.text("documented claims that do not hold", 0, Ink::bold);
  for (const Json& claim : json["claims"]) {
    out.text(claim["id"].get<std::string>() + ": " + claim["claim"].get<std::string>() + " (" +
                 claim["source"].get<std::string>() + ")",
             2);
    out.text(claim["fact"].get<std::string>() + "; " + claim["evidence"].get<std::string>(), 4);
  }
}

struct SchemesArguments {
  std::vector<std::string> names;
  bool json = false, choices = false, markdown = false, define = false;
};

// The rows of these schemes and families, or all.
Json chosen(const Json& rows, const std::vector<std::string>& names) {
  if (names.empty()) return rows;
  std::set<std::string> known;
  for (const Json& row : rows)
    for (const char* key : {"name", "family"}) known.insert(row[key].get<std::string>());
  Json kept = Json::array();
  for (const std::string& name : names) {
    if (!known.contains(name))
      throw UsageError("no scheme '" + name + "'" + did_you_mean(name, {known.begin(), known.end()}));
    std::ranges::copy_if(rows, std::back_inserter(kept),
                         [&](const Json& row) { return row["name"] == name || row["family"] == name; });
  }
  return kept;
}

Outcome run_schemes(const SchemesArguments& words) {
  Printout out(screen_of(STDOUT_FILENO));
  if (words.markdown) {
    std::cout << schemes_markdown();
    return Outcome::conformant;
  }
  if (words.choices) {
    if (words.json)
      print_json("choices", choices_json());
    else
      print_choices(choices_json(), out);
    std::cout << out.str();
    return Outcome::conformant;
  }
  if (words.define) {
    for (const Json& row : chosen(schemes_json(others_among(words.names)), words.names))
      print_definition(*find_scheme(row["name"].get<std::string>()), out);
    std::cout << out.str();
    return Outcome::conformant;
  }
  const Json rows = chosen(table(others_among(words.names)), words.names);
  if (words.json) {
    Json body = {{"schemes", rows}};
    if (words.names.empty()) body["kept"] = kept_layouts_json();
    print_json("schemes", body);
  } else if (words.names.empty()) {
    print(rows, out);
    print_kept(kept_layouts_json(), out);
  } else {
    for (const Json& row : rows) print_in_full(row, out);
  }
  std::cout << out.str();
  return Outcome::conformant;
}

}  // namespace

void add_schemes(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<SchemesArguments>();
  CLI::App* command = app.add_subcommand(
      "schemes", "list the schemes, their layouts and the implementations of each operation");
  CLI::Option* names =
      command->add_option("NAME", words->names, "only these schemes or families, each scheme in full");
  CLI::Option* as_json = command->add_flag("--json", words->json, "print JSON");
  CLI::Option* ledger =
      command
          ->add_flag("--choices", words->choices,
                     "print the choices on which implementations disagree, and what each one chose")
          ->excludes(names);
  command
      ->add_flag("--define", words->define,
                 "print what a kernel of these schemes has to know: planes, formula, order of codes, values")
      ->needs(names)
      ->excludes(as_json)
      ->excludes(ledger);
  command
      ->add_flag("--markdown", words->markdown,
                 "print a table of the kernels for each scheme family and operation")
      ->excludes(as_json)
      ->excludes(ledger)
      ->excludes(names);
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return run_schemes(*words); }); });
}

}  // namespace qcts::cli
