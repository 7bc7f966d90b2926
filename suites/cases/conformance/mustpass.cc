// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/conformance/mustpass.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "fixtures/golden.h"
#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/cases/offers.h"
#include "suites/providers/reference_provider.h"

namespace qcts {

std::vector<std::string> load_mustpass(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  std::vector<std::string> ids;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (!parse_case_id(line)) throw std::runtime_error(path.string() + ": not a case id: '" + line + "'");
    if (!ids.empty() && ids.back() >= line)
      throw std::runtime_error(path.string() + ": not sorted, or a duplicate: '" + line + "'");
    ids.push_back(line);
  }
  return ids;
}

std::vector<FloorEntry> load_floor(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  try {
    const nlohmann::ordered_json json = nlohmann::ordered_json::parse(in);
    if (json.size() != 2 || json.at("schema") != 1)
      throw std::runtime_error("want {\"schema\": 1, \"floor\": {...}}");
    std::vector<FloorEntry> entries;
    for (const auto& [scheme, ops] : json.at("floor").items())
      for (const auto& [name, passes] : ops.items()) {
        const std::optional<Op> op = find_op(name);
        if (!op) throw std::runtime_error("no operation '" + name + "'");
        entries.push_back({scheme, *op, passes.get<uint64_t>(), 0});
      }
    return entries;
  } catch (const std::exception& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

std::vector<std::string> mustpass_ids(const std::string& plan_name,
                                      const std::vector<std::filesystem::path>& folders) {
  Plan plan = named_plan(plan_name);
  std::erase(plan.kinds, Kind::latency);
  const Fixtures fixtures = load_fixtures(folders);
  Registry registry;
  registry.add(builtin_provider());
  registry.add(reference_provider());
  std::set<std::string> ids;
  for (const Case& c : expand(plan, {fixtures.goldens, fixtures.malformed, &registry}))
    if (kind_of(c).kind == InputKind::reachable) ids.insert(c.id.text());
  return {ids.begin(), ids.end()};
}

}  // namespace qcts
