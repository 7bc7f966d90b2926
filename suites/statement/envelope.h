// SPDX-License-Identifier: BSD-3-Clause
// DSSE v1 envelopes (github.com/secure-systems-lab/dsse, envelope.md and protocol.md): a payload and
// signatures over its type and bytes.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "suites/statement/signing_key.h"

namespace qcts {

inline constexpr std::string_view kInTotoType = "application/vnd.in-toto+json";

struct Envelope {
  struct Signature {
    std::string keyid, sig;  // `sig` is bytes
  };
  std::string payload_type, payload;
  std::vector<Signature> signatures;

  std::string signed_text() const;  // PAE(payload type, payload) of protocol.md
  void sign(const SigningKey& key);
};

nlohmann::ordered_json to_json(const Envelope& envelope);
// Throws std::runtime_error, which names the field. A field that DSSE does not have is refused too.
Envelope envelope_from_text(const std::string& text);
// Throws std::runtime_error if the text is not JSON, or an object has a field twice: two readers could then
// read two values.
nlohmann::ordered_json json_without_twins(const std::string& text);
// Throws std::runtime_error, which names `where` and the field, unless `json` is an object with all of
// `fields` and none beyond these and `others`.
void require_fields(const nlohmann::ordered_json& json, const std::string& where,
                    const std::set<std::string>& fields, const std::set<std::string>& others = {});

}  // namespace qcts
