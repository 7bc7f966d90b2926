// SPDX-License-Identifier: BSD-3-Clause
#include "suites/confirmed/ledger.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>

#include "reference/formats/io/sha256.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

template <class Ledger, class Visit>
void for_each_field(Ledger& ledger, Visit visit) {
  visit("gpu", ledger.gpu);
  visit("uuid", ledger.uuid);
  visit("capability", ledger.capability);
  visit("driver_version", ledger.driver_version);
  visit("driver_sha256", ledger.driver_sha256);
  visit("library_sha256", ledger.library_sha256);
  visit("suite_version", ledger.suite_version);
  visit("commit", ledger.commit);
  visit("date", ledger.date);
  visit("plan", ledger.plan);
  visit("complete", ledger.complete);
  visit("records_sha256", ledger.records_sha256);
}

template <class Row, class Visit>
void for_each_row_field(Row& row, Visit visit) {
  visit("scheme", row.scheme);
  visit("variant", row.variant);
  visit("sources_sha256", row.sources_sha256);
  visit("asked", row.asked);
  visit("passed", row.passed);
  visit("failed", row.failed);
  visit("declined", row.declined);
  visit("mustpass", row.mustpass);
  visit("equal_digests", row.equal_digests);
  visit("differing_digests", row.differing_digests);
}

template <class Field>
void take(const Json& json, const char* name, Field& field) {
  try {
    field = json.at(name).get<Field>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(std::string("field '") + name + "' is missing or has the wrong type");
  }
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void add_sources(const fs::path& root, const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / folder, error))
    if (entry.path().extension() == ".h") files.push_back(folder / entry.path().filename());
}

bool is_same(const LedgerRow& a, const LedgerRow& b) {
  return std::tie(a.op, a.scheme, a.variant) == std::tie(b.op, b.scheme, b.variant);
}

// How much a ledger's row proves now; the largest is reported.
struct Proof {
  int rank = 0;  // 0: nothing
  std::string text;
};

Proof proof_of(const Ledger& ledger, const LedgerRow& then, const LedgerRow& now,
               const std::string& library_sha256) {
  const std::string where = " on " + ledger.gpu + ", " + ledger.date;
  const bool same_sources = !now.sources_sha256.empty() && now.sources_sha256 == then.sources_sha256;
  const bool same_code = !library_sha256.empty() && library_sha256 == ledger.library_sha256;
  if (!same_sources && !same_code) return {};
  if (then.failed != 0)
    return {1, "failed " + std::to_string(then.failed) + " of " + std::to_string(then.asked) + where};
  if (then.differing_digests != 0)
    return {1, "bits differ from the executor's in " + std::to_string(then.differing_digests) + " of " +
                   std::to_string(then.equal_digests + then.differing_digests) + " outputs" + where};
  if (then.passed == 0) return {};
  const std::string what = ledger.complete ? "confirmed"
                                           : "confirmed in part (" + std::to_string(then.passed) + " of " +
                                                 std::to_string(std::max(then.mustpass, then.asked)) + ")";
  return {2 + 2 * ledger.complete + same_sources,
          what + where + (same_sources ? "" : ", sources changed since, same machine code")};
}

}  // namespace

Json to_json(const Ledger& ledger) {
  Json json = {{"qcts", "confirmed"}, {"schema", kLedgerSchema}};
  for_each_field(ledger, [&](const char* name, const auto& field) { json[name] = field; });
  json["rows"] = Json::array();
  for (const LedgerRow& row : ledger.rows) {
    Json& one = json["rows"].emplace_back(Json({{"op", op_name(row.op)}}));
    for_each_row_field(row, [&](const char* name, const auto& field) { one[name] = field; });
  }
  return json;
}

Ledger ledger_from_json(const Json& json) {
  if (!json.is_object() || json.value("qcts", Json()) != "confirmed" ||
      json.value("schema", Json()) != kLedgerSchema)
    throw std::runtime_error("not a ledger with schema " + std::to_string(kLedgerSchema));
  Ledger ledger;
  for_each_field(ledger, [&](const char* name, auto& field) { take(json, name, field); });
  if (!json.contains("rows") || !json["rows"].is_array()) throw std::runtime_error("field 'rows' is missing");
  for (const Json& one : json["rows"]) {
    LedgerRow& row = ledger.rows.emplace_back();
    std::string word;
    take(one, "op", word);
    const std::optional<Op> op = find_op(word);
    if (!op) throw std::runtime_error("no operation '" + word + "'");
    row.op = *op;
    for_each_row_field(row, [&](const char* name, auto& field) { take(one, name, field); });
  }
  return ledger;
}

std::vector<Ledger> read_ledgers(const fs::path& folder) {
  std::vector<Ledger> ledgers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    try {
      ledgers.push_back(ledger_from_json(Json::parse(bytes_of(entry.path()), nullptr, false)));
    } catch (const std::runtime_error& wrong) {
      throw std::runtime_error(entry.path().string() + ": " + wrong.what());
    }
  }
  std::ranges::sort(ledgers, {}, &Ledger::gpu);
  return ledgers;
}

std::string ledger_name(const std::string& gpu) {
  std::string name;
  for (const char c : gpu) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_word)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  return name + ".json";
}

std::string row_sources_sha256(const fs::path& root, Op op, const std::string& variant) {
  const fs::path own = fs::path("kernels") / op_name(op) / (variant + ".cu");
  if (!fs::exists(root / own)) return {};
  std::vector<fs::path> files = {own};
  for (const char* folder : {"kernels/cuda", "kernels/sm80", "kernels/sm90a"})
    add_sources(root, folder, files);
  std::ranges::sort(files);
  std::string lines;
  for (const fs::path& file : files) {
    const std::string bytes = bytes_of(root / file);
    lines += file.string() + " " + sha256_hex(std::as_bytes(std::span(bytes))) + "\n";
  }
  return sha256_hex(std::as_bytes(std::span(lines)));
}

std::string confirmation_of(const std::vector<Ledger>& ledgers, const LedgerRow& row,
                            const std::string& library_sha256) {
  Proof best;
  for (const Ledger& ledger : ledgers)
    for (const LedgerRow& then : ledger.rows)
      if (is_same(then, row))
        if (Proof proof = proof_of(ledger, then, row, library_sha256); proof.rank > best.rank)
          best = std::move(proof);
  return best.rank == 0 ? "emulated only" : best.text;
}

}  // namespace qcts
