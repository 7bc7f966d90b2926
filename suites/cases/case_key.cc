// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/case_key.h"

#include <algorithm>
#include <stdexcept>

#include "suites/cases/offers.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Json synthetic_json(const Synthetic& synthetic) {
  return {{"generator", generator_name(synthetic.generator)},
          {"dtype", dtype_name(synthetic.weight.dtype)},
          {"n", synthetic.weight.n},
          {"k", synthetic.weight.k},
          {"m", synthetic.m},
          {"seed", synthetic.seed},
          {"activation", synthetic.activation.name()}};
}

Synthetic synthetic_of(const Json& json, const Scheme& scheme) {
  const std::string name = json.at("generator");
  const std::optional<Generator> generator = find_generator(name);
  if (!generator) throw std::runtime_error("no generator '" + name + "'");
  return {*generator,
          {dtype_from_name(json.at("dtype").get<std::string>()).value(), json.at("n"), json.at("k")},
          json.at("m"),
          json.at("seed"),
          scheme.policy_named(json.at("activation").get<std::string>())};
}

template <class Entry>
const Entry* find_entry(const std::vector<Entry>& entries, const std::string& id) {
  const auto found = std::ranges::find(entries, id, &Entry::id);
  if (found == entries.end()) throw std::runtime_error("no fixture '" + id + "'");
  return &*found;
}

}  // namespace

Json case_key(const Case& c, const std::string& variant) {
  Json key = {{"case", c.id.text()}};
  if (!variant.empty()) key["variant"] = variant;
  if (c.golden != nullptr) key["golden"] = c.golden->id;
  if (!c.tensor.empty()) key["tensor"] = c.tensor;
  if (c.malformed != nullptr) key["malformed"] = c.malformed->id;
  if (c.synthetic) key["synthetic"] = synthetic_json(*c.synthetic);
  if (c.layout != kPlain) key["layout"] = c.layout.name();
  if (c.activation != kWeightOnly) key["activation"] = c.activation.name();
  if (c.warm) key["warm"] = true;
  if (c.is_block()) key["block_shrink"] = c.block_shrink;
  return key;
}

bool needs_fixtures(const Json& key) { return key.contains("golden") || key.contains("malformed"); }

Case case_of_key(const Json& key, const Fixtures& fixtures, const Registry& registry) {
  Case c;
  const std::string text = key.at("case");
  const std::optional<CaseId> id = parse_case_id(text);
  if (!id) throw std::runtime_error("'" + text + "' is not a case id");
  c.id = *id;
  c.scheme = find_scheme(id->scheme);
  if (key.contains("golden")) c.golden = find_entry(fixtures.goldens, key["golden"]);
  if (key.contains("malformed")) c.malformed = find_entry(fixtures.malformed, key["malformed"]);
  c.tensor = key.value("tensor", "");
  c.warm = key.value("warm", false);
  c.block_shrink = key.value("block_shrink", int64_t{0});
  if (c.id.op != Op::file && c.scheme == nullptr) throw std::runtime_error("no scheme '" + id->scheme + "'");
  if (c.scheme != nullptr) {
    if (key.contains("synthetic")) c.synthetic = synthetic_of(key["synthetic"], *c.scheme);
    if (key.contains("layout")) c.layout = c.scheme->layout_named(key["layout"].get<std::string>());
    if (key.contains("activation"))
      c.activation = c.scheme->policy_named(key["activation"].get<std::string>());
  }
  if (key.contains("variant"))
    bind_offer(c, registry.providers().front().name, key["variant"].get<std::string>(), registry);
  return c;
}

}  // namespace qcts
