// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/inspect_script.h"

#include <iostream>

#include <unistd.h>

#include "reference/dialects/torchscript.h"
#include "suites/base/terminal.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_code(const ScriptRecord& record) { return record.name.starts_with("code/"); }

// Storages are shown with the tensors.
bool is_storage(const ScriptRecord& record) {
  return record.name.starts_with("data/") || record.name.starts_with("constants/");
}

Json constants_json(const ScriptClass& cls) {
  Json constants = Json::object();
  for (const ScriptClass::Constant& constant : cls.constants)
    constants[constant.name] = {{"type", constant.type}, {"value", constant.value}};
  return constants;
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "-" : text;
}

}  // namespace

Json program_json(const TorchScript& script, const Limits& limits) {
  Json json;
  json["operator_set"] = script.version;
  json["version_record"] = script.version_record;
  json["modules"] = Json::array();
  for (const ScriptModule& module : script_modules(script, limits))
    json["modules"].push_back({{"path", module.path},
                               {"class", module.cls->name},
                               {"parameters", module.cls->parameters},
                               {"buffers", module.cls->buffers},
                               {"attributes", module.attributes},
                               {"constants", constants_json(*module.cls)},
                               {"methods", module.cls->methods}});
  json["code"] = Json::array();
  json["records"] = Json::array();
  for (const ScriptRecord& record : script.records) {
    if (is_code(record))
      json["code"].push_back({{"name", record.name}, {"bytes", record.bytes}});
    else if (!is_storage(record))
      json["records"].push_back(record.name);
  }
  return json;
}

void print_program(const TorchScript& script, const Limits& limits) {
  Printout out(screen_of(STDOUT_FILENO));
  out.blank();
  out.text("program of operator set " + std::to_string(script.version) + " (record " + script.version_record +
           ")");
  for (const ScriptModule& module : script_modules(script, limits)) {
    out.text((module.path.empty() ? "(root)" : module.path) + " " + module.cls->name + "; methods " +
                 joined(module.cls->methods),
             2);
    for (const auto& [name, value] : module.attributes.items()) out.text(name + " = " + dumped(value), 6);
    for (const ScriptClass::Constant& constant : module.cls->constants)
      out.text(constant.name + " : Final[" + constant.type + "] = " + constant.value, 6);
  }
  for (const ScriptRecord& record : script.records)
    if (is_code(record)) out.text(record.name + " " + grouped(record.bytes) + " bytes", 2);
  std::cout << out.str();
}

}  // namespace qcts::cli
