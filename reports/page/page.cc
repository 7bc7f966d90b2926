// SPDX-License-Identifier: BSD-3-Clause
#include "reports/page/page.h"

#include <array>
#include <map>

#include "reports/cells.h"
#include "reports/gzip.h"
#include "reports/markup.h"
#include "reports/page/page_files.h"
#include "reports/report.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kScripts = {"dom.js",      "model.js", "table.js", "charts.js",
                                 "overview.js", "views.js", "trend.js", "main.js"};

std::string base64(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 | (j < have ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += j <= have ? kAlphabet[word >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::string packed(const Json& json) {
  return base64(gzipped(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

// Numbers texts in the order in which they are met.
class Numbered {
 public:
  uint64_t operator()(const std::string& text) {
    const auto [place, fresh] = numbers_.emplace(text, list_.size());
    if (fresh) list_.push_back(text);
    return place->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, uint64_t> numbers_;
  std::vector<std::string> list_;
};

// The line that repeats a verdict, with U+0001 in place of the id: nearly all verdicts of a run share it.
std::string rerun_pattern(const Verdict& verdict) {
  std::string pattern = clipped_text(verdict.rerun);
  const std::string id = verdict.full_id();
  if (const size_t at = pattern.find(id); at != pattern.npos) pattern.replace(at, id.size(), "\x01");
  return pattern;
}

char kind_letter(std::string_view input_kind) {
  if (input_kind == "reachable") return 'c';
  return input_kind == "representable" ? 'r' : input_kind == "hostile" ? 'h' : '-';
}

// Every verdict by cell, in the order of the report's cells: inputs as differences between their numbers,
// statuses as one letter each ("a" is the first), the reasons of those that did not pass, and the kinds of
// their inputs: "c" reachable, "r" representable, "h" hostile, "-" none.
Json cases_json(const std::vector<Verdict>& verdicts) {
  Numbered inputs, reasons, reruns;
  std::map<std::string, int> sorted;  // numbers follow the alphabet, so that the differences are small
  for (const Verdict& verdict : verdicts) sorted.emplace(verdict.case_id.input, 0);
  for (const auto& [input, unused] : sorted) inputs(input);
  Json cells = Json::array();
  for (const Cell& cell : cells_of(verdicts)) {
    Json steps = Json::array(), why = Json::array(), again = Json::array();
    std::string statuses, kinds;
    int64_t last = 0;
    for (const Verdict* verdict : cell.verdicts) {
      const auto input = static_cast<int64_t>(inputs(verdict->case_id.input));
      steps.push_back(input - last);
      last = input;
      statuses += static_cast<char>('a' + static_cast<int>(verdict->status));
      if (verdict->status != Status::pass) why.push_back(reasons(clipped_text(verdict->reason)));
      again.push_back(reruns(rerun_pattern(*verdict)));
      kinds += kind_letter(verdict->input_kind);
    }
    const bool one_line = std::ranges::all_of(again, [&](const Json& line) { return line == again[0]; });
    cells.push_back({steps, statuses, why, one_line ? again[0] : again, kinds});
  }
  Json statuses = Json::array();
  for (int i = 0; i < kStatusCount; ++i) statuses.push_back(status_name(static_cast<Status>(i)));
  return {{"statuses", statuses},
          {"inputs", inputs.list()},
          {"reasons", reasons.list()},
          {"reruns", reruns.list()},
          {"cells", cells}};
}

std::string head_line(const Json& report) {
  const Json &suite = report.at("suite"), &run = report.at("run");
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", run.at("wall_s").get<double>());
  std::string text = "qcts " + suite.at("version").get<std::string>() + " (" +
                     suite.at("commit").get<std::string>() + ") · plan " + run.at("plan").get<std::string>();
  if (const std::string shard = run.at("shard"); !shard.empty()) text += ", shard " + shard;
  return text + " · " + run.at("started").get<std::string>() + " · " + seconds + " · " +
         machine_text(report.at("environment"));
}

// "acme 1, sha256 5f.., profile ocp_mx_1_0 with mx_scale_exact", for each provider under judgement.
std::string judged_line(const Json& report) {
  std::string text;
  for (const Json& provider : report.at("providers")) {
    if (is_part_of_qcts(provider.value("name", "")) || provider.value("peer", false)) continue;
    text += (text.empty() ? "" : " · ") + provider.value("name", "");
    for (const auto& [before, key] :
         {std::pair{" ", "version"}, {", sha256 ", "sha256"}, {", profile ", "profile"}})
      if (const std::string value = provider.value(key, ""); !value.empty()) text += before + value;
    if (!provider.contains("profile")) text += ", no profile";
    const char* before = " with ";
    for (const Json& option : provider.value("options", Json::array())) {
      text += before + option.get<std::string>();
      before = " ";
    }
  }
  return text.empty() ? "builtin kernels and readers of qcts" : text;
}

// Replaces each @NAME@ of the template once; what is put in is not searched again.
std::string filled(std::string_view page, const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  for (size_t at = 0; at < page.size();) {
    const size_t begin = page.find('@', at), end = begin == page.npos ? begin : page.find('@', begin + 1);
    const auto value = end == page.npos ? values.end() : values.find(page.substr(begin + 1, end - begin - 1));
    if (value == values.end()) {
      const size_t next = begin == page.npos ? page.size() : begin + 1;
      out += page.substr(at, next - at);
      at = next;
    } else {
      out += page.substr(at, begin - at);
      out += value->second;
      at = end + 1;
    }
  }
  return out;
}

}  // namespace

Headline headline_of(const Json& report) {
  const Json& conformance = report.at("conformance");
  const int code = conformance.at("exit_code");
  std::string sentence = conformance.at("reason");
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z')
    sentence[0] = static_cast<char>(sentence[0] - 32);
  sentence += ".";
  if (conformance.at("conformant")) return {"pass", "Conformant", sentence};
  switch (code) {
    case 0:
      return {"warn", "Passed what was asked", sentence};
    case 3:
      return {"warn", conformance.at("partial") ? "Partial" : "Nothing proved", sentence};
    case 4:
      return {"warn", "Inconclusive", sentence};
    case 5:
      return {"fail", "Could not judge", sentence};
    default:
      return {"fail", "Not conformant", sentence};
  }
}

std::string page_html(const Json& report, const std::vector<Verdict>& verdicts, const Json& measured,
                      const std::string& statement) {
  const Headline headline = headline_of(report);
  Json model = report;
  model["measured"] = measured;
  std::string script;
  for (const char* name : kScripts) script += page_file(name);
  return filled(page_file("page.html"), {{"TITLE", markup_text("qcts: " + headline.text)},
                                         {"STYLE", std::string(page_file("page.css"))},
                                         {"TONE", headline.tone},
                                         {"HEADLINE", markup_text(headline.text)},
                                         {"SENTENCE", markup_text(headline.sentence)},
                                         {"RUN", markup_text(head_line(report))},
                                         {"JUDGED", markup_text(judged_line(report))},
                                         {"STATEMENT", markup_text(statement)},
                                         {"MODEL", packed(model)},
                                         {"CASES", packed(cases_json(verdicts))},
                                         {"SCRIPT", script}});
}

}  // namespace qcts
