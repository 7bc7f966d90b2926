// SPDX-License-Identifier: BSD-3-Clause
#include "suites/vectors/agreement.h"

#include <algorithm>

#include "fixtures/manifest_entry.h"
#include "reference/schemes/choices/choices.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

bool is_choice(std::string_view id) {
  return std::ranges::any_of(choice_ledger(), [&](const ChoiceEntry& entry) {
    return std::ranges::find(entry.options, id, &ChoiceOption::id) != entry.options.end();
  });
}

Agreement agreement_of(const Json& json, const std::string& where) {
  const ManifestEntry entry(json, where);
  entry.only({"library", "version", "commit", "date", "compared", "scheme", "dtype", "vectors_sha256",
              "asked", "agreeing", "differing", "by_choice"});
  Agreement row;
  row.library = entry.text("library");
  row.version = entry.text("version");
  row.commit = entry.text("commit");
  row.date = entry.text("date");
  row.compared = entry.text("compared");
  row.scheme = entry.text("scheme");
  const std::optional<DType> dtype = dtype_from_name(entry.text("dtype"));
  if (!dtype) entry.fail("dtype", "no element type '" + entry.text("dtype") + "'");
  row.dtype = *dtype;
  row.vectors_sha256 = entry.sha256("vectors_sha256");
  row.asked = entry.number("asked");
  for (std::string& id : entry.words("differing")) row.differing.insert(std::move(id));
  if (entry.number("agreeing") + row.differing.size() != row.asked)
    entry.fail("agreeing", "with `differing` it is not `asked`");
  if (!json.contains("by_choice")) return row;
  for (const auto& [choice, ids] : entry.at("by_choice", Json::value_t::object).items())
    for (const Json& id : ids) {
      if (!id.is_string() || !row.differing.contains(id) || !is_choice(choice))
        entry.fail("by_choice", "'" + choice + "' is not an option of the ledger for ids of `differing`");
      row.by_choice[choice].insert(id);
    }
  return row;
}

NotMeasured not_measured_of(const Json& json, const std::string& where) {
  const ManifestEntry entry(json, where);
  entry.only({"library", "schemes", "why"});
  return {entry.text("library"), entry.text("schemes"), entry.text("why")};
}

}  // namespace

std::vector<const Agreement*> AgreementTable::of(const VectorGroup& group) const {
  std::vector<const Agreement*> rows;
  const std::string sha256 = group.sha256();
  for (const Agreement& row : measured)
    if (row.scheme == group.scheme->name() && row.dtype == group.dtype && row.vectors_sha256 == sha256)
      rows.push_back(&row);
  return rows;
}

std::vector<std::string> AgreementTable::outdated(const VectorGroup& group) const {
  std::vector<std::string> libraries;
  const std::string sha256 = group.sha256();
  for (const Agreement& row : measured)
    if (row.scheme == group.scheme->name() && row.dtype == group.dtype && row.vectors_sha256 != sha256)
      libraries.push_back(row.library);
  return libraries;
}

AgreementTable read_agreement(const std::filesystem::path& file) {
  const Json json = parse_manifest(file);
  const ManifestEntry whole(json, file.string());
  whole.only({"measured", "not_measured"});
  AgreementTable table;
  size_t index = 0;
  for (const Json& row : whole.at("measured", Json::value_t::array))
    table.measured.push_back(agreement_of(row, file.string() + ": measured " + std::to_string(index++)));
  for (const Json& row : whole.at("not_measured", Json::value_t::array))
    table.not_measured.push_back(not_measured_of(row, file.string() + ": not_measured"));
  return table;
}

}  // namespace qcts
