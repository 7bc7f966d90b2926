// SPDX-License-Identifier: BSD-3-Clause
#include "suites/record/run_record.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/sha256.h"
#include "reports/gzip.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string line_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  std::string text(fs::file_size(path), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

constexpr const char *kLiveName = "run.jsonl", *kDoneName = "run.jsonl.gz", *kBeforeName = "before.jsonl.gz";

std::string uncompressed_text(const fs::path& file) {
  std::string text = text_of(file);
  try {
    return is_gzip(text) ? gunzipped(text) : text;
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file.string() + ": " + error.what());
  }
}

// Calls visit(name, field) for every field, in the order in which they are written and compared.
template <typename Head, typename Visit>
void for_each_field(Head& head, Visit visit) {
  visit("suite_version", head.suite_version);
  visit("suite_commit", head.suite_commit);
  visit("plan", head.plan);
  visit("plan_sha256", head.plan_sha256);
  visit("fixtures_sha256", head.fixtures_sha256);
  visit("mustpass_sha256", head.mustpass_sha256);
  visit("started", head.started_utc);
  visit("latency_note", head.latency_note);
  visit("arguments", head.arguments);
  visit("selection", head.selection);
  visit("fixtures", head.fixtures);
  visit("infrastructure", head.infrastructure);
  visit("environment", head.environment);
  visit("providers", head.providers);
  visit("seed", head.seed);
  visit("seed_sha256", head.seed_sha256);
  visit("memory_limit_bytes", head.memory_limit_bytes);
  visit("threads", head.threads);
  visit("gate_latency", head.gate_latency);
  visit("shard", head.shard);
  visit("shards", head.shards);
  visit("cases", head.cases);
  visit("all_cases", head.all_cases);
  visit("cases_sha256", head.cases_sha256);
  visit("program_sha256", head.program_sha256);
}

const std::set<std::string> kMayDiffer = {"started",  "latency_note", "arguments",
                                          "fixtures", "environment",  "providers",
                                          "shard",    "cases",        "program_sha256"};
// Older records lack them.
const std::set<std::string> kMayLack = {"seed_sha256", "program_sha256"};

// Returns the properties of the providers that determine their verdicts.
Json identity(const Json& providers) {
  Json list = Json::array();
  for (const Json& provider : providers)
    list.push_back({{"name", provider.value("name", "")},
                    {"version", provider.value("version", "")},
                    {"sha256", provider.value("sha256", "")},
                    {"peer", provider.value("peer", false)}});
  std::sort(list.begin(), list.end(),
            [](const Json& a, const Json& b) { return a["name"].get<std::string>() < b["name"]; });
  return list;
}

std::string first_other_provider(const Json& there, const Json& here) {
  const Json a = identity(there), b = identity(here);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string one = i < a.size() ? a[i].dump() : "none", other = i < b.size() ? b[i].dump() : "none";
    if (one != other) return "provider: " + one + " there, " + other + " here";
  }
  return {};
}

}  // namespace

Json to_json(const RunHead& head) {
  Json json = {{"qcts", "run"}, {"schema", kRunRecordSchema}};
  for_each_field(head, [&](const char* name, const auto& field) { json[name] = field; });
  return json;
}

RunHead run_head_from_json(const Json& json) {
  if (!json.is_object() || json.value("qcts", Json()) != "run" ||
      json.value("schema", Json()) != kRunRecordSchema)
    throw std::runtime_error("not the head of a run with schema " + std::to_string(kRunRecordSchema));
  RunHead head;
  for_each_field(head, [&](const char* name, auto& field) {
    if (kMayLack.contains(name) && !json.contains(name)) return;
    try {
      field = json.at(name).get<std::decay_t<decltype(field)>>();
    } catch (const nlohmann::json::exception&) {
      throw std::runtime_error(std::string("head of the run: field '") + name +
                               "' is missing or has the wrong type");
    }
  });
  return head;
}

std::string difference(const RunHead& there, const RunHead& here) {
  const Json a = to_json(there), b = to_json(here);
  std::string found;
  for_each_field(here, [&](const std::string& name, const auto&) {
    if (found.empty() && !kMayDiffer.contains(name) && a[name] != b[name])
      found = name + ": " + a[name].dump() + " there, " + b[name].dump() + " here";
  });
  if (!found.empty()) return found;
  if (auto other = first_other_provider(there.providers, here.providers); !other.empty()) return other;
  for (const char* what : {"cpu_model", "cpu_family", "features", "weight_reading", "device"}) {
    const Json one = there.environment.value(what, Json()), other = here.environment.value(what, Json());
    if (one != other) return std::string(what) + ": " + one.dump() + " there, " + other.dump() + " here";
  }
  return {};
}

std::string ids_sha256(std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  std::string joined;
  for (const std::string& id : ids) joined += id + "\n";
  return sha256_hex(std::as_bytes(std::span(joined)));
}

std::string file_sha256(const fs::path& path) {
  const std::string text = text_of(path);
  return sha256_hex(std::as_bytes(std::span(text)));
}

bool has_run_head(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  return in && std::getline(in, line) && (is_gzip(line) || !in.eof());
}

fs::path record_of(const fs::path& given) {
  if (!fs::is_directory(given)) return given;
  return fs::exists(given / kLiveName) || !fs::exists(given / kDoneName) ? given / kLiveName
                                                                         : given / kDoneName;
}

void compress_record(const fs::path& folder) {
  const std::string bytes = gzipped(text_of(folder / kLiveName));
  write_file_atomically(folder / kDoneName, std::as_bytes(std::span(bytes)));
  fs::remove(folder / kLiveName);
}

void uncompress_record(const fs::path& folder) {
  const std::string text = uncompressed_text(folder / kDoneName);
  write_file_atomically(folder / kLiveName, std::as_bytes(std::span(text)));
  fs::remove(folder / kDoneName);
}

fs::path keep_as_before(const fs::path& folder) {
  if (!fs::exists(folder / kDoneName)) return {};
  fs::rename(folder / kDoneName, folder / kBeforeName);
  return folder / kBeforeName;
}

std::vector<std::string> record_lines(const fs::path& file) {
  const std::string text = uncompressed_text(file);
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

RunRecord read_run_record(const fs::path& file) {
  const std::string text = uncompressed_text(file);
  RunRecord record;
  std::set<std::string> seen;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == text.npos) {
      record.truncated = true;
      break;
    }
    ++number;
    try {
      const Json json = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                    text.begin() + static_cast<std::ptrdiff_t>(end));
      if (number == 1) {
        record.head = run_head_from_json(json);
      } else {
        record.verdicts.push_back(verdict_from_json(json));
        if (!seen.insert(record.verdicts.back().full_id()).second)
          throw std::runtime_error("a second verdict for " + record.verdicts.back().full_id());
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(file.string() + ": line " + std::to_string(number) + ": " + error.what());
    }
    begin = end + 1;
    record.complete_bytes = begin;
  }
  if (number == 0) throw std::runtime_error(file.string() + ": has no complete line");
  return record;
}

void RunRecordWriter::create(const fs::path& file, const RunHead& head) {
  out_.open(file, std::ios::trunc | std::ios::binary);
  out_ << line_text(to_json(head)) << std::flush;
  if (!out_) throw std::runtime_error(file.string() + ": cannot be written");
}

void RunRecordWriter::append_to(const fs::path& file, const RunRecord& record) {
  fs::resize_file(file, record.complete_bytes);
  out_.open(file, std::ios::app | std::ios::binary);
  if (!out_) throw std::runtime_error(file.string() + ": cannot be written");
}

void RunRecordWriter::close() {
  out_.close();
  if (!out_) throw std::runtime_error("run.jsonl: not everything could be written");
}

void RunRecordWriter::add(const Verdict& verdict) { out_ << line_text(to_json(verdict)) << std::flush; }

}  // namespace qcts
