// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/zip/names.h"

#include <algorithm>

#include "reference/formats/io/utf8.h"

namespace qcts {
namespace {

char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the later of two entries whose names are equal ignoring case; nullptr when all differ. Sorts,
// because a file can choose names that collide in any hash table.
const ZipEntry* find_duplicate(const std::vector<ZipEntry>& entries) {
  struct Name {
    uint64_t hash;  // FNV-1a of the folded name: most comparisons end here
    const ZipEntry* entry;
  };
  std::vector<Name> names;
  names.reserve(entries.size());
  for (const ZipEntry& entry : entries) {
    uint64_t hash = 0xcbf29ce484222325;
    for (char c : entry.name) hash = (hash ^ static_cast<uint8_t>(folded(c))) * 0x100000001b3;
    names.push_back({hash, &entry});
  }
  const auto less = [](std::string_view a, std::string_view b) {
    return std::ranges::lexicographical_compare(a, b, {}, folded, folded);
  };
  std::ranges::sort(names, [&](const Name& a, const Name& b) {
    return a.hash != b.hash ? a.hash < b.hash : less(a.entry->name, b.entry->name);
  });
  const ZipEntry* found = nullptr;
  for (size_t i = 1; i < names.size(); ++i) {
    const bool equal = names[i].hash == names[i - 1].hash &&
                       std::ranges::equal(names[i].entry->name, names[i - 1].entry->name, {}, folded, folded);
    const ZipEntry* later = std::max(names[i].entry, names[i - 1].entry);
    if (equal && (found == nullptr || later < found)) found = later;
  }
  return found;
}

bool is_clean_path(std::string_view name) {
  if (name.find('\0') != name.npos || name.find('\\') != name.npos || !is_utf8(name)) return false;
  for (size_t first = 0; first <= name.size();) {
    const size_t slash = std::min(name.find('/', first), name.size());
    const std::string_view part = name.substr(first, slash - first);
    if (part.empty() || part == "." || part == "..") return false;
    first = slash + 1;
  }
  return true;
}

}  // namespace

std::string check_zip_names(const std::vector<ZipEntry>& entries, const Limits& limits) {
  std::string prefix;
  for (const ZipEntry& entry : entries) {
    const auto wrong = [&](const char* why) {
      refuse(RefusalClass::EntryName, "entry " + std::string(entry.name.substr(0, 80)) + ": " + why,
             entry.header_offset);
    };
    if (entry.name.size() > limits.zip_name_bytes) wrong("its name is too long");
    if (!is_clean_path(entry.name)) wrong("its name is not a plain relative path");
    const size_t slash = entry.name.find('/');
    if (slash == std::string_view::npos) wrong("it is outside the archive's folder");
    if (prefix.empty()) prefix = entry.name.substr(0, slash);
    if (entry.name.substr(0, slash) != prefix) wrong("it is outside the archive's folder");
  }
  if (const ZipEntry* entry = find_duplicate(entries))
    refuse(RefusalClass::DuplicateEntry, "entry " + std::string(entry->name) + " is listed twice",
           entry->header_offset);
  return prefix;
}

}  // namespace qcts
