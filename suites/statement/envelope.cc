// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/envelope.h"

#include <stdexcept>

#include "suites/statement/base64.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::string text_field(const Json& json, const char* name) {
  if (!json.at(name).is_string()) throw std::runtime_error(std::string(name) + ": not a text");
  return json.at(name);
}

std::string bytes_field(const Json& json, const char* name) try {
  return from_base64(text_field(json, name));
} catch (const std::runtime_error& error) {
  throw std::runtime_error(std::string(name) + ": " + error.what());
}

}  // namespace

void require_fields(const Json& json, const std::string& where, const std::set<std::string>& fields,
                    const std::set<std::string>& others) {
  if (!json.is_object()) throw std::runtime_error(where + ": not an object");
  for (const auto& [name, value] : json.items())
    if (!fields.contains(name) && !others.contains(name))
      throw std::runtime_error(where + ": unknown field '" + name + "'");
  for (const std::string& name : fields)
    if (!json.contains(name)) throw std::runtime_error(where + ": field '" + name + "' is missing");
}

Json json_without_twins(const std::string& text) {
  std::vector<std::set<std::string>> open;
  std::string twin;
  Json json;
  try {
    json = Json::parse(text, [&](int, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::object_start) open.emplace_back();
      if (event == Json::parse_event_t::object_end) open.pop_back();
      if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
        twin = parsed.get<std::string>();
      return true;
    });
  } catch (const Json::exception&) {
    throw std::runtime_error("not JSON");
  }
  if (!twin.empty()) throw std::runtime_error("field '" + twin + "' is there twice");
  return json;
}

std::string Envelope::signed_text() const {
  return "DSSEv1 " + std::to_string(payload_type.size()) + " " + payload_type + " " +
         std::to_string(payload.size()) + " " + payload;
}

void Envelope::sign(const SigningKey& key) {
  signatures.push_back({key.public_key().id(), key.signature(signed_text())});
}

Json to_json(const Envelope& envelope) {
  Json signatures = Json::array();
  for (const Envelope::Signature& one : envelope.signatures)
    signatures.push_back({{"keyid", one.keyid}, {"sig", to_base64(one.sig)}});
  return {{"payloadType", envelope.payload_type},
          {"payload", to_base64(envelope.payload)},
          {"signatures", signatures}};
}

Envelope envelope_from_text(const std::string& text) {
  const Json json = json_without_twins(text);
  require_fields(json, "envelope", {"payloadType", "payload", "signatures"});
  Envelope envelope{text_field(json, "payloadType"), bytes_field(json, "payload"), {}};
  if (!json["signatures"].is_array()) throw std::runtime_error("signatures: not a list");
  for (const Json& one : json["signatures"]) {
    require_fields(one, "signatures", {"sig"}, {"keyid"});
    envelope.signatures.push_back(
        {one.contains("keyid") ? text_field(one, "keyid") : std::string(), bytes_field(one, "sig")});
  }
  return envelope;
}

}  // namespace qcts
