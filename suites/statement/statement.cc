// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/statement.h"

#include <memory>

#include "reference/formats/io/mapped_file.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/statement/envelope.h"
#include "suites/statement/installation.h"
#include "suites/statement/predicate.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

constexpr const char* kNone = "no statement: ";

struct ReadRun {
  RunRecord record;
  std::vector<std::string> lines;
};

ReadRun read_run(const fs::path& given) try {
  const fs::path file = record_of(given);
  if (!fs::exists(file)) throw UsageError("there is no " + file.string());
  return {read_run_record(file), record_lines(file)};
} catch (const RunError&) {
  throw;
} catch (const std::runtime_error& error) {
  throw UsageError(error.what());
}

std::unique_ptr<const SigningKey> key_of(const fs::path& file) try {
  return file.empty() ? nullptr : std::make_unique<const SigningKey>(file);
} catch (const std::runtime_error& error) {
  throw UsageError(error.what());
}

}  // namespace

std::string make_statement(const StatementRequest& request) {
  const std::unique_ptr<const SigningKey> key = key_of(request.key);
  const ReadRun run = read_run(request.run);
  if (run.record.truncated)
    throw Failure(kNone + std::string("the run is unfinished: its last line is truncated"));
  Predicate predicate;
  predicate.vendor = request.vendor;
  predicate.product = request.product;
  predicate.head = run.record.head;
  predicate.head_sha256 = text_sha256(run.lines.front());
  if (key) predicate.signer = key->public_key();
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < run.record.verdicts.size(); ++i) {
    verdicts.push_back(stated(run.record.verdicts[i]));
    predicate.verdicts.push_back({verdicts.back(), text_sha256(run.lines[i + 1])});
  }
  const Recount counted =
      recount(run.record.head, std::move(verdicts), load_fixtures(fixtures_folder(), Files::known));
  if (!counted.refusal.empty())
    throw Failure(kNone + std::string("the run cannot support one: ") + counted.refusal);
  if (const std::string other = other_installation(run.record.head); !other.empty())
    throw UsageError(kNone + std::string("the run was made by another version: ") + other);
  predicate.claim = counted.claim;

  Envelope envelope{std::string(kInTotoType), statement_json(predicate).dump(), {}};
  if (key) envelope.sign(*key);
  const fs::path folder = fs::is_directory(request.run) ? request.run : request.run.parent_path();
  const fs::path out = request.out.empty() ? folder / "statement.json" : request.out;
  const std::string text = to_json(envelope).dump() + "\n";
  write_file_atomically(out, std::as_bytes(std::span(text)));
  return counted.line + "\n" + out.string() + "\n" +
         (key ? "signed by " + key->public_key().id() + "\n" + key->public_key().pem()
              : "not signed (--key)\n");
}

}  // namespace qcts
