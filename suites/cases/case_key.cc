// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/case_key.h"

#include <algorithm>
#include <stdexcept>

#include "suites/cases/offers.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Json synthetic_json(const Synthetic& synthetic) {
  Json json = {{"generator", generator_name(synthetic.generator)},
               {"dtype", dtype_name(synthetic.weight.dtype)},
               {"n", synthetic.weight.n},
               {"k", synthetic.weight.k},
               {"m", synthetic.m},
               {"seed", synthetic.seed},
               {"activation", synthetic.activation.name()}};
  if (const auto& draw = synthetic.draw)
    json["draw"] = {{"index", draw->index}, {"threads", draw->threads}, {"bias", draw->has_bias}};
  return json;
}

std::optional<Draw> draw_from(const Json& json) {
  if (!json.contains("draw")) return std::nullopt;
  const Json& draw = json["draw"];
  return Draw{draw.at("index"), draw.at("threads"), draw.at("bias")};
}

Synthetic synthetic_from(const Json& json, const Scheme& scheme) {
  const std::string name = json.at("generator");
  const std::optional<Generator> generator = find_generator(name);
  if (!generator) throw std::runtime_error("no generator '" + name + "'");
  return {*generator,
          {dtype_from_name(json.at("dtype").get<std::string>()).value(), json.at("n"), json.at("k")},
          json.at("m"),
          json.at("seed"),
          scheme.policy_named(json.at("activation").get<std::string>()),
          draw_from(json)};
}

template <class Entry>
const Entry* find_entry(const std::vector<Entry>& entries, const std::string& id) {
  const auto found = std::ranges::find(entries, id, &Entry::id);
  if (found == entries.end()) throw std::runtime_error("no fixture '" + id + "'");
  return &*found;
}

Json question_json(const FileQuestion& file) { return {{"asks", "file"}, {"golden", file.golden->id}}; }

Json question_json(const RejectQuestion& reject) {
  return {{"asks", "reject"}, {"malformed", reject.malformed->id}};
}

Json question_json(const TensorQuestion& tensor) {
  return {{"asks", "tensor"},
          {"golden", tensor.golden->id},
          {"tensor", tensor.tensor},
          {"layout", tensor.layout.name()},
          {"activation", tensor.activation.name()}};
}

Json question_json(const SyntheticQuestion& synthetic) {
  return {
      {"asks", "synthetic"}, {"input", synthetic_json(synthetic.input)}, {"layout", synthetic.layout.name()}};
}

Json question_json(const TimedQuestion& timed) {
  return {{"asks", "timed"},
          {"input", synthetic_json(timed.input)},
          {"layout", timed.layout.name()},
          {"warm", timed.warm}};
}

Json question_json(const BlockQuestion& block) {
  return {{"asks", "block"}, {"input", synthetic_json(block.first_layer)}, {"shrink", block.shrink}};
}

Question question_of(const Json& json, const Scheme* scheme, const Fixtures& fixtures) {
  const std::string asks = json.at("asks");
  if (asks == "file") return FileQuestion{find_entry(fixtures.goldens, json.at("golden"))};
  if (asks == "reject") return RejectQuestion{find_entry(fixtures.malformed, json.at("malformed"))};
  if (scheme == nullptr) throw std::runtime_error("the question '" + asks + "' needs a scheme");
  if (asks == "block") return BlockQuestion{synthetic_from(json.at("input"), *scheme), json.at("shrink")};
  const Layout layout = scheme->layout_named(json.at("layout").get<std::string>());
  if (asks == "tensor")
    return TensorQuestion{find_entry(fixtures.goldens, json.at("golden")), json.at("tensor"), layout,
                          scheme->policy_named(json.at("activation").get<std::string>())};
  if (asks == "synthetic") return SyntheticQuestion{synthetic_from(json.at("input"), *scheme), layout};
  if (asks == "timed")
    return TimedQuestion{synthetic_from(json.at("input"), *scheme), layout, json.at("warm")};
  throw std::runtime_error("no question '" + asks + "'");
}

}  // namespace

Json case_key(const Case& c, const std::string& variant) {
  Json key = {{"case", c.id.text()}};
  if (!variant.empty()) key["variant"] = variant;
  key["question"] = std::visit([](const auto& question) { return question_json(question); }, c.question);
  return key;
}

bool needs_fixtures(const Json& key) {
  const std::string asks = key.at("question").at("asks");
  return asks == "file" || asks == "reject" || asks == "tensor";
}

Case case_of_key(const Json& key, const Fixtures& fixtures, const Registry& registry) {
  Case c;
  const std::string text = key.at("case");
  const std::optional<CaseId> id = parse_case_id(text);
  if (!id) throw std::runtime_error("'" + text + "' is not a case id");
  c.id = *id;
  c.scheme = find_scheme(id->scheme);
  if (c.id.op != Op::file && c.scheme == nullptr) throw std::runtime_error("no scheme '" + id->scheme + "'");
  if (!key.contains("question")) throw std::runtime_error("no question in the key of " + text);
  c.question = question_of(key["question"], c.scheme, fixtures);
  if (key.contains("variant"))
    bind_offer(c, registry.providers().front().name, key["variant"].get<std::string>(), registry);
  return c;
}

}  // namespace qcts
