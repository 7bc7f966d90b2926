// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/targets.h"

#include <fstream>
#include <stdexcept>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

const char* widest(const Machine& machine) {
  for (const char* feature : {"amx_int8", "avx512bf16", "avx512vnni", "avx512f", "avxvnni", "avx2"})
    if (machine.has(feature)) return feature;
  return "baseline";
}

bool read_weights(const std::string& word, const std::string& where) {
  if (word != "cold" && word != "warm")
    throw std::runtime_error(where + ": weights must be \"cold\" or \"warm\"");
  return word == "warm";
}

Op read_op(const std::string& name, const std::string& where) {
  const std::optional<Op> op = find_op(name);
  if (!op || *op == Op::file)
    throw std::runtime_error(where + ": no latency cases for operation '" + name + "'");
  return *op;
}

LatencyTarget read_target(const Json& json, const std::string& where) {
  LatencyTarget target;
  try {
    for (const auto& [key, value] : json.items()) {
      if (key == "provider")
        target.provider = value;
      else if (key == "op")
        target.op = read_op(value, where);
      else if (key == "scheme")
        target.scheme = value;
      else if (key == "variant")
        target.variant = value;
      else if (key == "activation")
        target.activation = value;
      else if (key == "weights")
        target.warm = read_weights(value, where);
      else if (key == "m_least")
        target.m_min = value;
      else if (key == "m_most")
        target.m_max = value;
      else if (key == "measure")
        target.measure = value;
      else if (key == "at_least")
        target.at_least = value;
      else if (key == "reason")
        target.reason = value;
      else
        throw std::runtime_error(where + ": unknown field '" + key + "'");
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(where + ": " + error.what());
  }
  if (target.op == Op::file || target.scheme.empty() || target.variant.empty() || target.measure.empty() ||
      !(target.at_least > 0))
    throw std::runtime_error(where + ": needs op, scheme, variant, measure and at_least > 0");
  return target;
}

std::string class_of_words(const std::string& words) {
  std::string name;
  for (const char c : words) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool word = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (word)
      name += lower;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  return name;
}

}  // namespace

std::string machine_class(const Machine& machine) {
  return class_of_words(machine.cpu_model + " family" + std::to_string(machine.cpu_family) + " " +
                        widest(machine));
}

std::string device_class(const std::string& gpu_name) { return class_of_words(gpu_name); }

LatencyTargets load_latency_targets(const std::filesystem::path& folder, const std::string& machine_class) {
  LatencyTargets targets;
  targets.machine_class = machine_class;
  const std::filesystem::path path = folder / (machine_class + ".json");
  std::ifstream in(path);
  if (!in) return targets;
  Json json;
  try {
    json = Json::parse(in);
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path.string() + ": not JSON: " + error.what());
  }
  if (!json.is_object() || json.value("schema", 0) != 1 || json.value("machine_class", "") != machine_class ||
      !json.contains("targets") || !json["targets"].is_array())
    throw std::runtime_error(path.string() +
                             ": must have schema 1, targets, and its file name as machine_class");
  targets.listed = true;
  for (size_t i = 0; i < json["targets"].size(); ++i)
    targets.targets.push_back(
        read_target(json["targets"][i], path.string() + ": targets[" + std::to_string(i) + "]"));
  return targets;
}

bool applies(const LatencyTarget& target, const Case& c, std::string_view variant) {
  const int64_t m = c.id.op == Op::linear ? c.synthetic()->m : 0;
  return target.provider == c.provider() && target.op == c.id.op &&
         (target.scheme == c.scheme->name() || target.scheme == c.scheme->family()) &&
         target.activation == c.activation() && target.warm == c.is_warm() && target.variant == variant &&
         m >= target.m_min && (target.m_max == 0 || m <= target.m_max);
}

}  // namespace qcts
