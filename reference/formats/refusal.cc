// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/refusal.h"

#include <array>
#include <cstring>
#include <utility>

namespace qcts {
namespace {

constexpr std::array<std::string_view, 27> kClassNames = {
    "NotArchive",  "Truncated",    "ZipStructure",   "ZipUnsupported", "ZipOverlap", "DuplicateEntry",
    "EntryName",   "CrcMismatch",  "LimitExceeded",  "Version",        "ByteOrder",  "PickleOpcode",
    "PickleStack", "PickleGlobal", "PickleCall",     "PickleType",     "StorageRef", "TensorBounds",
    "Overflow",    "Dtype",        "SubclassSchema", "StHeader",       "StJson",     "StLayout",
    "GgufHeader",  "GgufLayout",   "TrailingData"};
static_assert(kClassNames.size() == static_cast<size_t>(RefusalClass::TrailingData) + 1);

// Details may quote bytes of the file; control characters would break the single line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  constexpr size_t kLongest = 400;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace

std::string_view refusal_class_name(RefusalClass cls) { return kClassNames.at(static_cast<size_t>(cls)); }

std::optional<RefusalClass> refusal_class_from_name(std::string_view name) {
  for (size_t i = 0; i < kClassNames.size(); ++i) {
    if (kClassNames[i] == name) return static_cast<RefusalClass>(i);
  }
  return std::nullopt;
}

std::string describe(const Refusal& refusal) {
  std::string text = std::string(refusal_class_name(refusal.cls)) + ": " + refusal.detail;
  if (refusal.offset) text += " (offset " + std::to_string(*refusal.offset) + ")";
  return text;
}

void refuse(RefusalClass cls, std::string detail, std::optional<uint64_t> offset) {
  const bool security = cls == RefusalClass::PickleOpcode || cls == RefusalClass::PickleGlobal ||
                        cls == RefusalClass::PickleCall;
  throw Refused({cls, one_line(std::move(detail)), offset, security});
}

IoError::IoError(const std::string& path, const std::string& action, int error_number)
    : std::runtime_error(path + ": " + action + ": " + std::strerror(error_number)),
      error_number_(error_number) {}

}  // namespace qcts
