// SPDX-License-Identifier: BSD-3-Clause
// round_trip and reject through a provider's own load_save. round_trip: the file that it saves holds all
// that the one that it loaded holds (E2); its bytes are its own, unless it claims to keep them (E3). reject:
// a malformed file is refused with a reason and leaves no file; one that must be read is read with exactly
// the payload that the manifest names, and all that it holds is saved.
#include <algorithm>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/sha256.h"
#include "suites/judge/files/file_kinds.h"
#include "suites/judge/files/payload.h"
#include "suites/providers/provider_call.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

// SHA-256 of a file, or of a directory's files in name order.
std::string content_sha256(const fs::path& path) {
  if (!fs::is_directory(path)) return sha256_hex(MappedFile::open(path)->bytes());
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string joined;
  for (const fs::path& file : files)
    joined += file.lexically_relative(path).string() + " " + content_sha256(file) + "\n";
  return sha256_hex(std::as_bytes(std::span(joined)));
}

struct Saved {
  Support support;
  fs::path file;
  std::string broken;  // how load_save broke its contract; empty if it did not
};

// Gives the provider a copy, so that it cannot damage the fixtures.
Saved save_through(const Implementation& provider, const fs::path& original, const fs::path& scratch) {
  Saved saved;
  saved.file = scratch / "saved" / original.filename();
  const fs::path input = scratch / "given" / original.filename();
  for (const fs::path& file : {saved.file, input}) fs::create_directories(file.parent_path());
  fs::copy(original, input, fs::copy_options::recursive);
  const std::string before = content_sha256(input);
  saved.support = provider_load_save(provider, input, saved.file);
  if (content_sha256(input) != before) saved.broken = "load_save() changed the file that it was given";
  const bool there = fs::exists(saved.file);
  if (saved.support.status == QCTS_OK && !there)
    saved.broken = "load_save() returned QCTS_OK and left no file";
  if (saved.support.status != QCTS_OK && there)
    saved.broken = "load_save() refused but left a file: " + saved.support.reason;
  return saved;
}

// Returns the first difference between two files or directories.
std::optional<Mismatch> other_bytes(const fs::path& original, const fs::path& saved) {
  if (!fs::is_directory(original))
    return compare_files(original.filename().string(), MappedFile::open(original)->bytes(),
                         MappedFile::open(saved)->bytes());
  if (content_sha256(original) == content_sha256(saved)) return std::nullopt;
  return Mismatch{original.filename().string(), content_sha256(original), content_sha256(saved), 1, 1};
}

// Sets the final verdict and returns true unless the provider saved a file.
bool ended_early(const Saved& saved, Verdict& verdict) {
  verdict.status = Status::fail;
  verdict.reason = saved.broken;
  if (!saved.broken.empty()) return true;
  if (saved.support.status == QCTS_OK) return false;
  if (saved.support.status == QCTS_UNSUPPORTED) verdict.status = Status::not_supported;
  verdict.reason = saved.support.reason;
  return true;
}

// load_save() has no way to be told which classes to keep, so it may refuse a file that has others.
void excuse_refusal(const Golden& golden, const Saved& saved, Verdict& verdict) {
  if (golden.allow.empty() || !saved.broken.empty() || verdict.status != Status::fail) return;
  verdict.status = Status::not_supported;
  verdict.reason = "load_save() cannot be told to keep " + golden.allow.front() + ": " + saved.support.reason;
}

// Opens the saved file with the suite's own reader; nullopt, and a reason, if the reader refuses it.
std::optional<Checkpoint> open_saved(const Saved& saved, const JudgeContext& context, Verdict& verdict) {
  try {
    return open_checkpoint(saved.file, context.open);
  } catch (const Refused& refused) {
    verdict.reason = std::string("the reader refuses the file that load_save() wrote: ") + refused.what();
    return std::nullopt;
  }
}

// Would a change of what was saved have been seen?
std::string unseen_change(const Checkpoint& before, const Checkpoint& after) {
  const std::optional<Checkpoint> flipped = with_flipped_bit(after);
  if (!flipped || !compare_payload(before, *flipped)) return "a flipped bit in the payload";
  const std::optional<Checkpoint> changed = with_changed_value(after);
  if (changed && !compare_payload(before, *changed)) return "a changed value";
  return {};
}

}  // namespace

void judge_provider_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict) {
  const Checkpoint before = open_checkpoint(c.golden()->file, context.open);
  const Saved saved = save_through(*c.implementation, c.golden()->file, context.scratch);
  if (ended_early(saved, verdict)) return excuse_refusal(*c.golden(), saved, verdict);
  const std::optional<Checkpoint> after = open_saved(saved, context, verdict);
  if (!after) return;
  if (auto found = compare_payload(before, *after)) {
    verdict.reason = "after the provider saved the file and qcts read it back, it holds something else (E2)";
    verdict.mismatch = std::move(found);
    return;
  }
  if (c.implementation->file_claims & QCTS_CLAIM_KEEPS_BYTES) {
    if (auto found = other_bytes(c.golden()->file, saved.file)) {
      verdict.reason = "claims to keep the file's bytes, but saved different ones (E3)";
      verdict.mismatch = std::move(found);
      return;
    }
  }
  const std::string unnoticed = unseen_change(before, *after);
  verdict.status = Status::pass;
  verdict.reason.clear();
  if (!unnoticed.empty())
    verdict.findings.push_back({Caveat::unnoticed_change, unnoticed + " would not have been noticed"});
  verdict.measures.push_back({"file_bytes", "bytes", static_cast<double>(after->file_bytes), {}, {}, {}});
}

void judge_provider_reject(const Case& c, const JudgeContext& context, Verdict& verdict) {
  const Malformed& malformed = *std::get<RejectQuestion>(c.question).malformed;
  const Saved saved = save_through(*c.implementation, malformed.file, context.scratch);
  const bool refused = saved.broken.empty() && saved.support.status != QCTS_OK;
  if (malformed.refusal && refused && saved.support.status != QCTS_UNSUPPORTED) {
    verdict.status = Status::pass;
    return;
  }
  if (ended_early(saved, verdict)) return;
  if (malformed.refusal) {
    verdict.reason = malformed.what + ": load_save() accepted it";
    verdict.mismatch = Mismatch{malformed.file.filename().string(), "a refusal", "a file", 1, 1};
    return;
  }
  const std::optional<Checkpoint> after = open_saved(saved, context, verdict);
  if (!after) return;
  const std::string digest = payload_digest(*after);
  if (digest == malformed.accepted_sha256) {
    verdict.reason =
        malformed.what +
        ": after the provider saved the file and qcts read it back, it holds something else (E2)";
    verdict.mismatch = compare_payload(open_checkpoint(malformed.file, context.open), *after);
    if (verdict.mismatch) return;
    verdict.status = Status::pass;
    verdict.reason.clear();
    return;
  }
  verdict.reason = malformed.what + ": the payload that load_save() wrote differs from the manifest's";
  verdict.mismatch = Mismatch{malformed.file.filename().string(), malformed.accepted_sha256, digest, 1, 1};
}

}  // namespace qcts
