// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/safetensors/header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "reference/formats/io/name_order.h"

namespace qcts {
namespace {

using Json = nlohmann::json;

// Memory per entry (SafetensorsEntry, Storage, their control block, two list slots); per dimension in shape,
// stride and SafetensorsInfo; and per pair of metadata, twice in a growing list. While the header is read,
// names exist three times and metadata twice.
constexpr uint64_t kEntryBytes = 304, kDimBytes = 24, kMetadataBytes = 256;

// Returns a name that two tensors share; nullptr when all differ. Sorts, because a file can choose names that
// collide in any hash table.
const std::string* find_duplicate(const std::vector<SafetensorsInfo>& tensors) {
  std::vector<const std::string*> names;
  names.reserve(tensors.size());
  for (const SafetensorsInfo& info : tensors) names.push_back(&info.name);
  sort_by_name(names, [](const std::string* name) { return std::string_view(*name); });
  const auto found =
      std::ranges::adjacent_find(names, [](const std::string* a, const std::string* b) { return *a == *b; });
  return found == names.end() ? nullptr : *found;
}

// Parses the format's two levels. Schema errors are recorded and reported once the text has proved to be
// JSON; only limits stop it at once.
class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(const SafetensorsOptions& options, SafetensorsHeader& header)
      : options_(options), header_(header) {}

  bool null() override {
    if (depth_ == 1 && name_ == kMetadata) return true;
    return misplaced("null");
  }
  bool boolean(bool) override { return misplaced("a bool"); }
  bool number_integer(Json::number_integer_t) override {
    if (in_info_ && depth_ == 3 && field_ == "shape") {
      complain(RefusalClass::StLayout, "a negative dimension");
      return true;
    }
    return misplaced("a negative number");
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    if (in_info_ && depth_ == 3 && field_ == "shape") {
      if (value > INT64_MAX) complain(RefusalClass::Overflow, "a dimension does not fit in 63 bits");
      if (info().shape.size() >= options_.limits.dims) {
        refuse(RefusalClass::LimitExceeded,
               "tensor " + name_ + " has more than " + std::to_string(options_.limits.dims) + " dimensions");
      }
      header_.budget.take_bytes(kDimBytes);
      info().shape.push_back(value);
      return true;
    }
    if (in_info_ && depth_ == 3 && field_ == "data_offsets") {
      if (offsets_ == 0) info().begin = value;
      if (offsets_ == 1) info().end = value;
      ++offsets_;
      return true;
    }
    return misplaced("a number");
  }
  bool number_float(Json::number_float_t, const std::string& text) override {
    if (text.find_first_not_of("0123456789") == std::string::npos && !text.empty()) {
      complain(RefusalClass::Overflow, "a number does not fit in 64 bits");
      return true;
    }
    return misplaced("a number with fraction or exponent");
  }
  bool string(std::string& value) override {
    if (in_metadata_ && depth_ == 2) {
      header_.budget.take_bytes(kMetadataBytes + 2 * (field_.size() + value.size()));
      header_.metadata.emplace_back(field_, value);
      return true;
    }
    if (in_info_ && depth_ == 2 && field_ == "dtype") {
      info().dtype = value;
      return true;
    }
    return misplaced("a string");
  }
  bool binary(Json::binary_t&) override { return misplaced("a binary"); }

  bool start_object(size_t) override {
    enter();
    if (depth_ == 1) return true;
    if (depth_ == 2 && name_ == kMetadata) {
      in_metadata_ = true;
      header_.has_metadata = true;
    } else if (depth_ == 2) {
      in_info_ = true;
      header_.budget.take_bytes(kEntryBytes + 3 * text_block_bytes(name_.size()));
      header_.tensors.push_back({name_, "", {}, 0, 0});
    } else {
      misplaced("an object");
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && in_info_) {
      for (size_t f = 0; f < kInfoFields.size(); ++f)
        if (!info_fields_[f])
          complain(RefusalClass::StJson, "the field " + std::string(kInfoFields[f]) + " is missing");
    }
    if (depth_ == 2) {
      in_info_ = in_metadata_ = false;
      info_fields_ = {};
      other_fields_.clear();
    }
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    enter();
    offsets_ = 0;
    if (depth_ == 3 && in_info_ && (field_ == "shape" || field_ == "data_offsets")) return true;
    return misplaced("an array");
  }
  bool end_array() override {
    if (depth_ == 3 && in_info_ && field_ == "data_offsets" && offsets_ != 2) {
      complain(RefusalClass::StJson, "data_offsets holds " + std::to_string(offsets_) + " numbers, not 2");
    }
    --depth_;
    return true;
  }
  bool key(std::string& value) override {
    if (depth_ == 1) {
      name_ = value;
      field_.clear();
      if (value == kMetadata && std::exchange(metadata_seen_, true))
        complain(RefusalClass::StJson, "the name is used twice");
    } else if (depth_ == 2) {
      field_ = value;
      if (in_metadata_) header_.budget.take_bytes(kMetadataBytes + 2 * value.size());
      if (!note_field(value)) complain(RefusalClass::StJson, "the key " + value + " is used twice");
      if (!in_metadata_ && !is_info_field(value) && !options_.lenient)
        complain(RefusalClass::StJson, "unknown field " + value);
    }
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    if (error.id == 406) refuse(RefusalClass::StJson, "the header holds a number out of range", 8 + at);
    refuse(RefusalClass::StJson, "the header is not JSON", 8 + at);
  }

  // Throws the first complaint.
  void finish() {
    if (const std::string* twice = find_duplicate(header_.tensors)) {
      name_ = *twice;
      complain(RefusalClass::StJson, "the name is used twice");
    }
    if (complaint_) throw Refused(*complaint_);
  }

 private:
  static constexpr std::string_view kMetadata = "__metadata__";
  static constexpr std::array<std::string_view, 3> kInfoFields = {"dtype", "shape", "data_offsets"};

  static bool is_info_field(std::string_view name) {
    return std::ranges::find(kInfoFields, name) != kInfoFields.end();
  }

  // Returns false if the open object has the field already. Allocates only for unusual fields: a header may
  // hold a million tensors.
  bool note_field(const std::string& name) {
    const auto field = std::ranges::find(kInfoFields, name);
    if (in_metadata_ || field == kInfoFields.end()) return other_fields_.insert(name).second;
    return !std::exchange(info_fields_[static_cast<size_t>(field - kInfoFields.begin())], true);
  }

  SafetensorsInfo& info() { return header_.tensors.back(); }
  void enter() {
    if (++depth_ > options_.limits.json_depth) {
      refuse(RefusalClass::LimitExceeded,
             "the header is nested deeper than " + std::to_string(options_.limits.json_depth));
    }
  }
  void complain(RefusalClass cls, const std::string& what) {
    if (complaint_) return;
    try {
      refuse(cls, name_.empty() ? what : "tensor " + name_ + ": " + what);
    } catch (const Refused& refused) {
      complaint_ = refused.refusal();
    }
  }
  bool misplaced(const std::string& what) {
    const bool unknown_field = in_info_ && depth_ >= 2 && !is_info_field(field_);
    if (unknown_field && options_.lenient) return true;
    complain(in_info_ && field_ == "dtype" ? RefusalClass::Dtype : RefusalClass::StJson,
             what + " is not allowed here" + (field_.empty() ? "" : ", in " + field_));
    return true;
  }

  const SafetensorsOptions& options_;
  SafetensorsHeader& header_;
  uint64_t depth_ = 0;
  std::string name_, field_;
  bool in_metadata_ = false, in_info_ = false;
  int offsets_ = 0;
  bool metadata_seen_ = false;
  // The fields of the open object. Sorted, because a file can choose names that collide in a hash table.
  std::array<bool, kInfoFields.size()> info_fields_ = {};
  std::set<std::string> other_fields_;
  std::optional<Refusal> complaint_;
};

// The JSON parser also buffers the blanks before a word.
void check_blanks(std::string_view between, size_t offset, const Limits& limits) {
  if (between.size() <= limits.json_string_bytes) return;
  size_t run = 0;
  for (size_t i = 0; i < between.size(); ++i) {
    run = std::string_view(" \t\r\n").find(between[i]) == std::string_view::npos ? 0 : run + 1;
    if (run > limits.json_string_bytes)
      refuse(RefusalClass::LimitExceeded,
             "the header holds more than " + std::to_string(run - 1) + " blanks in a row", 8 + offset + i);
  }
}

// The JSON parser buffers a whole string, escapes included, and grows the buffer by doubling.
void check_strings(std::string_view text, const Limits& limits) {
  size_t checked = 0;
  for (size_t at = text.find('"'); at < text.size(); at = text.find('"', at)) {
    check_blanks(text.substr(checked, at - checked), checked, limits);
    const size_t begin = ++at;
    while (at < text.size() && text[at] != '"')
      at = text.find_first_of("\"\\", text[at] == '\\' ? at + 2 : at);
    const size_t end = std::min(at, text.size());
    if (end - begin > limits.json_string_bytes)
      refuse(RefusalClass::LimitExceeded,
             "the header holds a string of " + std::to_string(end - begin) +
                 " bytes, more than the limit of " + std::to_string(limits.json_string_bytes),
             8 + begin);
    if (end == text.size()) return;
    checked = at = end + 1;
  }
  if (checked < text.size()) check_blanks(text.substr(checked), checked, limits);
}

// serde_json escapes the two characters that JSON requires, five controls by name, and the others by number.
void append_json_string(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20) {
          out += "\\u00";
          out += kDigits[byte >> 4];
          out += kDigits[byte & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_tensor(std::string& out, const SafetensorsInfo& info) {
  append_json_string(out, info.name);
  out += ":{\"dtype\":";
  append_json_string(out, info.dtype);
  out += ",\"shape\":[";
  for (size_t d = 0; d < info.shape.size(); ++d) {
    if (d != 0) out += ',';
    out += std::to_string(info.shape[d]);
  }
  out += "],\"data_offsets\":[" + std::to_string(info.begin) + "," + std::to_string(info.end) + "]}";
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, const SafetensorsOptions& options) {
  const size_t first = options.lenient ? std::min(text.find_first_not_of(" \t\r\n"), text.size()) : 0;
  if (first >= text.size() || text[first] != '{') {
    refuse(RefusalClass::StJson, "the header does not begin with an object", 8);
  }
  if (const size_t at = text.find('\0'); at != text.npos) {
    refuse(RefusalClass::StJson, "the header holds a zero byte", 8 + at);
  }
  SafetensorsHeader header;
  header.budget = ReadBudget(granted_bytes(text.size()), 8 + text.size());
  check_strings(text, options.limits);
  Handler handler(options, header);
  Json::sax_parse(text.begin(), text.end(), &handler);
  handler.finish();
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  std::string out = "{";
  if (header.has_metadata) {
    out += "\"__metadata__\":{";
    for (size_t i = 0; i < header.metadata.size(); ++i) {
      if (i != 0) out += ',';
      append_json_string(out, header.metadata[i].first);
      out += ':';
      append_json_string(out, header.metadata[i].second);
    }
    out += '}';
  }
  for (const SafetensorsInfo& info : header.tensors) {
    if (out.size() > 1) out += ',';
    append_tensor(out, info);
  }
  out += '}';
  out.append((8 - out.size() % 8) % 8, ' ');
  return out;
}

}  // namespace qcts
