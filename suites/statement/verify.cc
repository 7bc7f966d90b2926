// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/verify.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/statement/envelope.h"
#include "suites/statement/installation.h"
#include "suites/statement/predicate.h"
#include "suites/statement/sample.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

class Verifier {
 public:
  explicit Verifier(const VerifyRequest& request) : request_(request) {}

  VerifyResult result() {
    try {
      read();
    } catch (const RunError&) {
      throw;
    } catch (const std::exception& error) {
      fault(error.what());
      return std::move(result_);
    }
    check_signatures();
    check_claim();
    if (!request_.run.empty()) check_record();
    if (request_.provider.empty())
      say("only consistency was checked; no case was judged again (--provider)");
    else if (result_.faults.empty())
      judge_anew();
    return std::move(result_);
  }

 private:
  void fault(const std::string& text) { result_.faults.push_back(text); }
  void say(const std::string& text) { result_.lines.push_back(text); }

  void read() {
    envelope_ = envelope_from_text(statement_text(request_.statement));
    if (envelope_.payload_type != kInTotoType)
      throw std::runtime_error("payloadType: want " + std::string(kInTotoType));
    predicate_ = predicate_from_statement(json_without_twins(envelope_.payload));
    result_.vendor = predicate_.vendor;
    result_.product = predicate_.product;
    say("vendor " + predicate_.vendor + ", product " + predicate_.product);
  }

  std::optional<PublicKey> known_key() const {
    if (request_.public_key.empty()) return predicate_.signer;
    try {
      return PublicKey::from_pem(statement_text(request_.public_key));
    } catch (const RunError&) {
      throw;
    } catch (const std::runtime_error& error) {
      throw UsageError(request_.public_key.string() + ": " + error.what());
    }
  }

  // Every signature that names the known key must fit, and at least one must. A key id is only a hint (DSSE):
  // other tools derive it differently, so a signature that fits --public-key counts under any keyid.
  void check_signatures() {
    const std::optional<PublicKey> key = known_key();
    size_t good = 0, unknown = 0;
    for (const Envelope::Signature& one : envelope_.signatures) {
      const bool fits = key && key->has_signed(envelope_.signed_text(), one.sig);
      if (fits && (one.keyid.empty() || one.keyid == key->id() || !request_.public_key.empty()))
        ++good;
      else if (key && (one.keyid.empty() || one.keyid == key->id() || fits))
        return fault("signatures: one of " + one.keyid + " does not fit the payload and its type");
      else
        ++unknown;
    }
    if (key && good == 0) return fault("signatures: none by " + key->id());
    if (!key && unknown > 0)
      return fault("signatures: the key " + envelope_.signatures.front().keyid +
                   " is not known (--public-key)");
    result_.signature = key ? "signed by " + key->id() : "unsigned";
    if (!key) return say("not signed");
    say("signed by " + key->id() +
        (request_.public_key.empty() ? ", the key in the statement itself: compare it with the vendor's"
                                     : ", the key given with --public-key"));
    if (unknown > 0) say("and by " + std::to_string(unknown) + " unknown keys, which were not checked");
  }

  void check_claim() {
    if (const std::string other = other_installation(predicate_.head); !other.empty())
      return fault("head: another version: " + other);
    std::vector<Verdict> verdicts;
    for (const StatedVerdict& row : predicate_.verdicts) verdicts.push_back(row.verdict);
    const Recount counted =
        recount(predicate_.head, std::move(verdicts), load_fixtures(fixtures_folder(), Files::known));
    if (!counted.refusal.empty()) return fault("verdicts: " + counted.refusal);
    for (const auto& [name, value] : counted.claim.items())
      if (!predicate_.claim.contains(name) || predicate_.claim[name] != value)
        fault("claim." + name + ": the verdicts give " + value.dump().substr(0, 200));
    if (predicate_.claim.size() != counted.claim.size()) fault("claim: unknown fields");
    result_.lines.insert(result_.lines.begin(), counted.line);
    say(std::to_string(predicate_.verdicts.size()) + " verdicts give this claim");
  }

  void check_record() {
    const fs::path file = record_of(request_.run);
    if (!fs::exists(file)) throw UsageError("there is no " + file.string());
    RunRecord record;
    std::vector<std::string> lines;
    try {
      record = read_run_record(file);
      lines = record_lines(file);
    } catch (const std::runtime_error& error) {
      return fault(std::string("record: ") + error.what());
    }
    check_head(to_json(record.head));
    if (text_sha256(lines.front()) != predicate_.head_sha256)
      fault("head_sha256: not the hash of the record's first line");
    if (record.truncated || record.verdicts.size() != predicate_.verdicts.size())
      return fault("verdicts: " + std::to_string(predicate_.verdicts.size()) + " in the statement, " +
                   std::to_string(record.verdicts.size()) + " in the record");
    for (size_t i = 0; i < record.verdicts.size(); ++i)
      if (!is_same(predicate_.verdicts[i], record.verdicts[i], lines[i + 1]))
        return fault("verdicts: different from the record's, first " + record.verdicts[i].full_id());
    say("the record in " + request_.run.string() + " is the same");
  }

  void check_head(const Json& there) {
    const Json here = to_json(predicate_.head);
    for (const auto& [name, value] : there.items())
      if (here.at(name) != value)
        fault("head." + name + ": different from the record's, so this is another run");
  }

  static bool is_same(const StatedVerdict& row, const Verdict& verdict, const std::string& line) {
    return to_json(row.verdict) == to_json(stated(verdict)) && row.sha256 == text_sha256(line);
  }

  // The library has to load the same code here as it loaded there.
  void check_code(const RunHead& head) {
    const auto files_of = [](const RunHead& of) {
      std::map<std::string, std::string> files;
      for (const Json& provider : of.providers)
        for (const Json& file : provider.value("code", Json::array()))
          files[fs::path(file.at("path").get<std::string>()).filename()] = file.at("sha256");
      return files;
    };
    const std::string library = request_.provider.filename();
    const std::map<std::string, std::string> there = files_of(predicate_.head);
    for (const auto& [name, sha256] : files_of(head)) {
      const auto stated = there.find(name);
      if (name == library) continue;
      if (stated == there.end())
        fault("subject: the library loads " + name + " here, which the statement does not mention");
      else if (stated->second != sha256)
        fault("subject: " + name + " is another file here: its sha256 is " + sha256 + ", not " +
              stated->second);
    }
  }

  void judge_anew() {
    const std::string want = predicate_.head.providers.front().value("sha256", "");
    if (!fs::exists(request_.provider)) throw UsageError("there is no " + request_.provider.string());
    if (const std::string have = file_sha256(request_.provider); have != want)
      return fault("subject: " + request_.provider.string() + " is another file: its sha256 is " + have +
                   ", not " + want);
    std::map<std::string, const Verdict*> stated_ones;
    for (const StatedVerdict& row : predicate_.verdicts) stated_ones[row.verdict.full_id()] = &row.verdict;
    const std::vector<std::string> ids = drawn_sample(predicate_, request_.sample_percent);
    const RunRecord record = judged_anew(predicate_.head, request_.provider, ids, request_.jobs);
    const std::vector<Verdict>& anew = record.verdicts;
    check_code(record.head);
    if (anew.size() != ids.size())
      return fault("verdicts: of " + std::to_string(ids.size()) + " drawn cases, " +
                   std::to_string(anew.size()) + " could be judged again");
    const bool sums_are_equal = gives_equal_sums(predicate_.head, record.head);
    Recomputed counts;
    for (const Verdict& verdict : anew)
      compare(*stated_ones.at(verdict.full_id()), verdict, sums_are_equal, counts);
    say(std::to_string(ids.size()) + " cases, drawn at random, were judged again" +
        (result_.faults.empty() ? " and are equal" : ""));
    say("outputs: " + std::to_string(counts.bits) + " equal bit for bit; " +
        std::to_string(counts.other_sums) + " of linear status only (other processor features, device or " +
        "threads here); " + std::to_string(counts.status) + " status only (no output_hash)");
  }

  struct Recomputed {
    size_t bits = 0, other_sums = 0, status = 0;
  };

  // A linear may add in another order where it finds another machine.
  static bool gives_equal_sums(const RunHead& there, const RunHead& here) {
    const auto device_of = [](const RunHead& head) {
      const Json device = head.environment.value("device", Json());
      return device.is_object() ? device.value("name", Json()) : Json();
    };
    return there.environment.value("features", Json()) == here.environment.value("features", Json()) &&
           device_of(there) == device_of(here) && there.threads == here.threads;
  }

  void compare(const Verdict& before, const Verdict& now, bool sums_are_equal, Recomputed& counts) {
    if (before.status != now.status)
      return fault("verdicts: " + now.full_id() + " is " + std::string(status_name(before.status)) +
                   " in the statement, and " + std::string(status_name(now.status)) + " judged again" +
                   (now.reason.empty() ? "" : ": " + now.reason.substr(0, 200)));
    if (before.output_hash.empty() && now.output_hash.empty()) {
      ++counts.status;
    } else if (now.case_id.op == Op::linear && !sums_are_equal) {
      ++counts.other_sums;
    } else if (before.output_hash != now.output_hash) {
      const auto text = [](const std::string& hash) { return hash.empty() ? "none" : hash; };
      fault("verdicts: " + now.full_id() + " has output_hash " + text(before.output_hash) +
            " in the statement, and " + text(now.output_hash) + " judged again");
    } else {
      ++counts.bits;
    }
  }

  const VerifyRequest& request_;
  VerifyResult result_;
  Envelope envelope_;
  Predicate predicate_;
};

}  // namespace

std::string statement_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::error_code none;
  if (!in || fs::is_directory(file, none)) throw UsageError(file.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

VerifyResult verify_statement(const VerifyRequest& request) { return Verifier(request).result(); }

}  // namespace qcts
