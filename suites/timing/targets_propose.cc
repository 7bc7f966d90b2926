// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <regex>
#include <stdexcept>
#include <tuple>

#include "suites/timing/targets.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRatios[] = {"share_of_roof", "ratio_to_dense", "ratio_to_torch", "ratio_to_static"};

// The conditions of a target, without its number.
struct TargetKey {
  Op op = Op::file;
  std::string scheme, variant, activation, measure;
  bool warm = false, prefill = false;
  // Orders operations by name, as in target files.
  auto order() const {
    return std::tuple(op_name(op), std::tie(scheme, variant, activation, measure, warm, prefill));
  }
  bool operator<(const TargetKey& other) const { return order() < other.order(); }
};

// The lowest result over all cases that a target would apply to: the low end of the interval, or the value if
// there is no interval or the measurement is not trusted. If there are only such values, there is no target.
struct Lowest {
  double low = std::numeric_limits<double>::infinity();
  size_t cases = 0;  // with a trusted interval
};

// Reads the input of a latency case: "noise_dyn_row_sym_m1_n64_k64_bf16_cold".
bool read_input(const std::string& input, TargetKey& key) {
  static const std::regex weights("_n[0-9]+_k[0-9]+_[a-z0-9]+_(cold|warm)$");
  static const std::regex rows("^noise(_([a-z0-9_]+))?_m([0-9]+)_n[0-9]+_k[0-9]+_[a-z0-9]+_(cold|warm)$");
  std::smatch match;
  if (!std::regex_search(input, match, weights)) return false;
  key.warm = match[1].str() == "warm";
  key.activation = kWeightOnly.name();
  if (key.op != Op::linear && key.op != Op::quantize_activation) return true;
  if (!std::regex_match(input, match, rows)) return false;
  if (match[2].matched) key.activation = match[2].str();
  key.prefill = key.op == Op::linear && std::stoll(match[3].str()) >= kPrefillRows;
  return true;
}

Op op_at(const Json& row) {
  const std::string word = row.at("op");
  const std::optional<Op> op = find_op(word);
  if (!op) throw std::runtime_error("not a report.json: unknown operation '" + word + "'");
  return *op;
}

bool is_trusted(const Json& row) {
  return row.at("reason").get<std::string>().find("not to be trusted") == std::string::npos;
}

double two_digits_down(double value) {
  const double step = std::pow(10, std::floor(std::log10(value)) - 1);
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", std::floor(value / step + 1e-9) * step);
  return std::stod(text);
}

LatencyTarget target_of(const std::string& provider, const TargetKey& key, const Lowest& lowest,
                        double margin, const std::string& run) {
  LatencyTarget target;
  target.provider = provider;
  target.op = key.op;
  target.scheme = key.scheme;
  target.variant = key.variant;
  target.activation = key.activation;
  target.warm = key.warm;
  if (key.op == Op::linear)
    (key.prefill ? target.m_min : target.m_max) = key.prefill ? kPrefillRows : kPrefillRows - 1;
  target.measure = key.measure;
  target.at_least = two_digits_down(lowest.low * (1 - margin));
  char text[200];
  std::snprintf(text, sizeof text, "proposed from %zu case%s of %s: lowest lower end %.3g, minus %g %%",
                lowest.cases, lowest.cases == 1 ? "" : "s", run.c_str(), lowest.low, margin * 100);
  target.reason = text;
  return target;
}

}  // namespace

LatencyTargets propose_targets(const Json& report, const std::string& provider, double margin) {
  try {
    Machine machine;
    machine.cpu_model = report.at("environment").at("cpu_model");
    machine.cpu_family = report.at("environment").at("cpu_family");
    machine.features = report.at("environment").at("features").get<std::vector<std::string>>();
    std::map<TargetKey, Lowest> found;
    for (const Json& row : report.at("latency")) {
      if (row.at("provider") != provider) continue;
      TargetKey key{op_at(row), row.at("scheme"), row.at("variant"), "", ""};
      if (row.at("status") != "pass" || !read_input(row.at("input"), key)) continue;
      for (const char* ratio : kRatios) {
        const Json measure = row.at("measures").value(ratio, Json::object());
        if (!measure.contains("value") || !measure["value"].is_number()) continue;
        const bool has_interval =
            measure.contains("low") && measure["low"].is_number() && measure["low"] > 0.0;
        const bool founds = has_interval && is_trusted(row);
        key.measure = ratio;
        Lowest& lowest = found[key];
        lowest.low = std::min(lowest.low, measure[founds ? "low" : "value"].get<double>());
        lowest.cases += founds ? 1 : 0;
      }
    }
    LatencyTargets targets;
    const Json device = report.at("environment").value("device", Json());
    targets.machine_class = device.is_object() ? device_class(device.at("name")) : machine_class(machine);
    targets.listed = true;
    for (const auto& [key, lowest] : found)
      if (lowest.cases > 0 && lowest.low > 0)
        targets.targets.push_back(target_of(provider, key, lowest, margin, report.at("run").at("started")));
    return targets;
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string("not a report.json: ") + error.what());
  }
}

LatencyTargets replaced_targets(const LatencyTargets& listed, const LatencyTargets& proposed) {
  LatencyTargets all = proposed;
  for (const LatencyTarget& target : listed.targets)
    if (target.provider != proposed.targets.front().provider) all.targets.push_back(target);
  return all;
}

Json targets_json(const LatencyTargets& targets) {
  Json list = Json::array();
  for (const LatencyTarget& target : targets.targets) {
    Json entry = Json::object();
    if (target.provider != LatencyTarget().provider) entry["provider"] = target.provider;
    entry.update({{"op", op_name(target.op)}, {"scheme", target.scheme}, {"variant", target.variant}});
    if (target.activation != kWeightOnly) entry["activation"] = target.activation;
    if (target.warm) entry["weights"] = "warm";
    if (target.m_min != 0) entry["m_least"] = target.m_min;
    if (target.m_max != 0) entry["m_most"] = target.m_max;
    entry["measure"] = target.measure;
    entry["at_least"] = target.at_least;
    entry["reason"] = target.reason;
    list.push_back(std::move(entry));
  }
  return {{"schema", 1}, {"machine_class", targets.machine_class}, {"targets", std::move(list)}};
}

}  // namespace qcts
