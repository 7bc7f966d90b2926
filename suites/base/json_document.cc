// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/json_document.h"

#include <iostream>

#include "suites/base/printable.h"

namespace qcts {

using Json = nlohmann::ordered_json;

Json json_document(std::string_view name, const Json& body, int version) {
  Json document = {{"qcts", name}, {"schema", version}};
  document.update(body);
  return document;
}

void print_json(std::string_view name, const Json& body, int version) {
  std::cout << printable_json(
                   json_document(name, body, version).dump(2, ' ', false, Json::error_handler_t::replace))
            << std::endl;
}

}  // namespace qcts
