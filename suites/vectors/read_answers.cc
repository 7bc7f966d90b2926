// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "fixtures/manifest_entry.h"
#include "reference/formats/io/mapped_file.h"
#include "suites/base/did_you_mean.h"
#include "suites/vectors/answers.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::vector<std::byte> bytes_of_hex(std::string_view text, const std::string& where) {
  if (text.size() % 2) throw std::runtime_error(where + ": an odd number of hexadecimal digits");
  std::vector<std::byte> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) throw std::runtime_error(where + ": not hexadecimal");
    bytes[i] = static_cast<std::byte>(high << 4 | low);
  }
  return bytes;
}

void refuse_unknown(std::string_view field, const std::vector<std::string>& known, const std::string& where) {
  if (std::ranges::find(known, field) == known.end())
    throw std::runtime_error(where + ": unknown field '" + std::string(field) + "'" +
                             did_you_mean(field, known));
}

const std::vector<std::string> kFields = {"id",     "scheme", "dtype", "n",     "k",      "x",    "codes",
                                          "scales", "y",      "flags", "hunts", "golden", "agree"};

std::string text_at(const Json& json, const std::string& where) {
  if (!json.is_string()) throw std::runtime_error(where + ": want a string, got " + json.type_name());
  return json.get<std::string>();
}

VectorAnswer answer_of_json(const Json& json) {
  if (!json.is_object() || !json.contains("id") || !json["id"].is_string())
    throw std::runtime_error("a vector without an id: " + json.dump().substr(0, 60));
  VectorAnswer answer;
  answer.id = json["id"].get<std::string>();
  for (const auto& [field, value] : json.items()) {
    refuse_unknown(field, kFields, answer.id);
    const std::string where = answer.id + ": " + field;
    if (field == "x") answer.x = bytes_of_hex(text_at(value, where), where);
    if (field == "codes") answer.codes = bytes_of_hex(text_at(value, where), where);
    if (field == "y") answer.y = bytes_of_hex(text_at(value, where), where);
    if (field != "scales") continue;
    if (!value.is_object()) throw std::runtime_error(where + ": want an object, got " + value.type_name());
    answer.scales.emplace();
    for (const auto& [name, plane] : value.items())
      answer.scales->emplace_back(name, bytes_of_hex(text_at(plane, where), where + ": " + name));
  }
  return answer;
}

std::vector<VectorAnswer> answers_of_json(const Json& json) {
  const auto groups = json.find("groups");
  if (groups == json.end() || !groups->is_array())
    throw std::runtime_error("no list `groups`, as the exported files have");
  std::vector<VectorAnswer> answers;
  for (const Json& group : *groups) {
    if (!group.is_object() || !group.contains("vectors") || !group["vectors"].is_array())
      throw std::runtime_error("a group without a list `vectors`");
    for (const Json& vector : group["vectors"]) answers.push_back(answer_of_json(vector));
  }
  return answers;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t first = 0; first <= text.size();) {
    const size_t end = std::min(text.find(separator, first), text.size());
    parts.emplace_back(text.substr(first, end - first));
    first = end + 1;
  }
  return parts;
}

// An empty cell was not answered.
VectorAnswer answer_of_line(const std::vector<std::string>& names, const std::vector<std::string>& cells,
                            const std::string& line) {
  if (cells.size() != names.size())
    throw std::runtime_error(line + ": " + std::to_string(cells.size()) + " columns, the first line has " +
                             std::to_string(names.size()));
  VectorAnswer answer;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string where = line + ": " + names[i];
    if (names[i] == "id") answer.id = cells[i];
    if (cells[i].empty()) continue;
    if (names[i] == "x") answer.x = bytes_of_hex(cells[i], where);
    if (names[i] == "codes") answer.codes = bytes_of_hex(cells[i], where);
    if (names[i] == "y") answer.y = bytes_of_hex(cells[i], where);
    if (names[i] != "scales") continue;
    answer.scales.emplace();
    for (const std::string& plane : split(cells[i], ','))
      answer.scales->emplace_back("", bytes_of_hex(plane, where));
  }
  if (answer.id.empty()) throw std::runtime_error(line + ": no id");
  return answer;
}

std::vector<VectorAnswer> answers_of_text(std::string_view text) {
  std::vector<VectorAnswer> answers;
  std::vector<std::string> names;
  size_t number = 0;
  for (std::string& line : split(text, '\n')) {
    const std::string where = "line " + std::to_string(++number);
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (!names.empty()) {
      answers.push_back(answer_of_line(names, split(line, '\t'), where));
      continue;
    }
    names = split(line, '\t');
    for (const std::string& name : names) refuse_unknown(name, kFields, where);
    if (std::ranges::find(names, "id") == names.end()) throw std::runtime_error(where + ": no column `id`");
    if (std::set<std::string>(names.begin(), names.end()).size() != names.size())
      throw std::runtime_error(where + ": a column twice");
  }
  return answers;
}

}  // namespace

std::vector<VectorAnswer> read_answers(const std::filesystem::path& file) {
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file);
  const std::string_view text(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  try {
    if (first == text.npos) throw std::runtime_error("it is empty");
    std::vector<VectorAnswer> answers =
        text[first] == '{' ? answers_of_json(parse_manifest(file)) : answers_of_text(text);
    std::set<std::string_view> ids;
    for (const VectorAnswer& answer : answers)
      if (!ids.insert(answer.id).second) throw std::runtime_error(answer.id + ": twice");
    if (answers.empty()) throw std::runtime_error("it has no vector");
    return answers;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    throw std::runtime_error(what.starts_with(file.string()) ? what : file.string() + ": " + what);
  }
}

}  // namespace qcts
