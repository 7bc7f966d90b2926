// SPDX-License-Identifier: BSD-3-Clause
#include "suites/vectors/write.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "reference/schemes/choices/choices.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Json flags_json() {
  Json flags = Json::object();
  for (const VectorFlagInfo& flag : vector_flags())
    flags[std::string(flag.name)] = {{"means", flag.means}, {"hunts", flag.hunts}};
  return flags;
}

Json plane_json(const Plane& plane) { return {{"name", plane.name}, {"dtype", dtype_name(plane.dtype)}}; }

// Says where in its byte the code of k = 0 is; null unless a byte holds two.
Json first_nibble(const Scheme& scheme, const ExportedVector& vector, const Plane& codes) {
  if (vector.x.empty() ||
      codes.bytes.size() * 2 != vector.x.size() / static_cast<size_t>(dtype_bytes(vector.shape.dtype)))
    return nullptr;
  return scheme.element_of(vector.shape, codes.name, 0, 0) % 2 == 0 ? "low" : "high";
}

Json scheme_json(const Scheme& scheme, const ExportedVector& sample) {
  Json choices = Json::array(), scales = Json::array();
  for (const ChoiceOption* option : choices_of(scheme.name(), scheme.family())) choices.push_back(option->id);
  const size_t codes = codes_plane_of(sample.planes);
  for (size_t i = 0; i < sample.planes.size(); ++i)
    if (i != codes) scales.push_back(plane_json(sample.planes[i]));
  Json of_codes = plane_json(sample.planes[codes]);
  of_codes["bits"] = scheme.params().bits;
  of_codes["first_nibble"] = first_nibble(scheme, sample, sample.planes[codes]);
  return {{"scheme", scheme.name()},   {"summary", scheme.summary()},
          {"source", scheme.source()}, {"group_elems", scheme.group()},
          {"choices", choices},        {"codes", of_codes},
          {"scales", scales}};
}

Json library_json(const Agreement& row) {
  Json by_choice = Json::object();
  for (const auto& [choice, ids] : row.by_choice) by_choice[choice] = ids.size();
  return {{"library", row.library},
          {"version", row.version},
          {"commit", row.commit.empty() ? Json(nullptr) : Json(row.commit)},
          {"date", row.date},
          {"compared", row.compared},
          {"asked", row.asked},
          {"agreeing", row.asked - row.differing.size()},
          {"by_choice", by_choice}};
}

Json vector_json(const ExportedVector& vector, const std::vector<const Agreement*>& rows) {
  Json scales = Json::object(), flags = Json::array(), agree = Json::object();
  const size_t codes = codes_plane_of(vector.planes);
  for (size_t i = 0; i < vector.planes.size(); ++i)
    if (i != codes) scales[vector.planes[i].name] = hex_of(vector.planes[i].bytes);
  for (const VectorFlag flag : vector.flags) flags.push_back(flag_name(flag));
  for (const Agreement* row : rows) agree[row->library] = !row->differing.contains(vector.id);
  Json json = {{"id", vector.id},
               {"n", vector.shape.n},
               {"k", vector.shape.k},
               {"x", hex_of(vector.x)},
               {"codes", hex_of(vector.planes[codes].bytes)},
               {"scales", scales},
               {"y", hex_of(vector.y)},
               {"flags", flags},
               {"hunts", vector.hunts}};
  if (!vector.golden.empty()) json["golden"] = vector.golden;
  json["agree"] = agree;
  return json;
}

std::string joined_flags(const std::vector<VectorFlag>& flags) {
  std::string text;
  for (const VectorFlag flag : flags) text += (text.empty() ? "" : ",") + std::string(flag_name(flag));
  return text;
}

}  // namespace

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

// One vector per line, so that a difference of two exports names the vectors that differ.
std::string vectors_json(const std::vector<VectorGroup>& groups, const AgreementTable& agreement) {
  const VectorGroup& first = groups.front();
  Json head = {{"qcts", "vectors"}, {"schema", 1}, {"bytes", "hexadecimal, in the order of memory"}};
  head.update(scheme_json(*first.scheme, first.vectors.front()));
  head["flags"] = flags_json();
  std::string text = head.dump(1);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n \"groups\": [";
  for (const VectorGroup& group : groups) {
    const std::vector<const Agreement*> rows = agreement.of(group);
    Json libraries = Json::array();
    for (const Agreement* row : rows) libraries.push_back(library_json(*row));
    text += std::string(&group == &first ? "" : ",") + "\n  {\"dtype\": \"" +
            std::string(dtype_name(group.dtype)) + "\", \"vectors_sha256\": \"" + group.sha256() +
            "\",\n   \"libraries\": " + libraries.dump() + ",\n   \"vectors\": [";
    for (const ExportedVector& vector : group.vectors)
      text += std::string(&vector == &group.vectors.front() ? "" : ",") + "\n    " +
              vector_json(vector, rows).dump();
    text += "]}";
  }
  return text + "]\n}\n";
}

std::string vectors_text(const std::vector<VectorGroup>& groups) {
  std::string text = "id\tscheme\tdtype\tn\tk\tx\tcodes\tscales\ty\tflags\n";
  for (const VectorGroup& group : groups)
    for (const ExportedVector& vector : group.vectors) {
      const size_t codes = codes_plane_of(vector.planes);
      std::string scales;
      for (size_t i = 0; i < vector.planes.size(); ++i)
        if (i != codes) scales += (scales.empty() ? "" : ",") + hex_of(vector.planes[i].bytes);
      text += vector.id + "\t" + std::string(group.scheme->name()) + "\t" +
              std::string(dtype_name(group.dtype)) + "\t" + std::to_string(vector.shape.n) + "\t" +
              std::to_string(vector.shape.k) + "\t" + hex_of(vector.x) + "\t" +
              hex_of(vector.planes[codes].bytes) + "\t" + scales + "\t" + hex_of(vector.y) + "\t" +
              joined_flags(vector.flags) + "\n";
    }
  return text;
}

}  // namespace qcts
