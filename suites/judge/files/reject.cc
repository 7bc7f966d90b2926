// SPDX-License-Identifier: BSD-3-Clause
// The reject kind, run under each option that the manifest entry lists. A malformed file must be refused with
// the class that the manifest names, marked as a security refusal exactly if it is one, and with its offset
// if it is a security refusal in a pickle. Files that must be readable must yield exactly the manifest's
// payload.
#include "suites/judge/files/file_kinds.h"
#include "suites/judge/files/payload.h"

namespace qcts {
namespace {

// "CrcMismatch", "PickleGlobal (security)", or the payload digest if the file was read.
struct ReadOutcome {
  std::string word, detail;
};

bool is_of_a_pickle(RefusalClass cls) {
  return cls == RefusalClass::PickleOpcode || cls == RefusalClass::PickleGlobal ||
         cls == RefusalClass::PickleCall;
}

std::string refusal_word(RefusalClass cls, bool security, std::optional<uint64_t> offset) {
  std::string word(refusal_class_name(cls));
  if (security) word += " (security)";
  if (security && is_of_a_pickle(cls) && !offset) word += " without its offset";
  return word;
}

ReadOutcome outcome_of(const std::filesystem::path& file, bool lenient) {
  OpenOptions options;
  options.lenient = lenient;
  try {
    const Checkpoint checkpoint = open_checkpoint(file, options);
    return {payload_digest(checkpoint), "read, " + std::to_string(checkpoint.tensors.size()) + " tensors"};
  } catch (const Refused& refused) {
    return {refusal_word(refused.refusal().cls, refused.refusal().security, refused.refusal().offset),
            refused.what()};
  } catch (const std::bad_alloc&) {
    return {"std::bad_alloc", "the reader allocated memory before validating the size"};
  } catch (const std::exception& error) {
    return {"another exception", error.what()};
  }
}

}  // namespace

void judge_reject(const Case& c, const JudgeContext&, Verdict& verdict) {
  const Malformed& malformed = *std::get<RejectQuestion>(c.question).malformed;
  const std::string want =
      malformed.refusal ? refusal_word(*malformed.refusal, malformed.security, 0) : malformed.accepted_sha256;
  if (malformed.options.empty() || want.empty()) {
    verdict.status = Status::pass;
    verdict.findings.push_back(
        {Caveat::unnoticed_change, "the manifest states no requirement for this file"});
    return;
  }
  verdict.status = Status::fail;
  for (const std::string& option : malformed.options) {
    const ReadOutcome got = outcome_of(malformed.file, option == "lenient");
    if (got.word != want) {
      verdict.reason =
          malformed.what + ": " + option + " reading did not end as the manifest requires: " + got.detail;
      verdict.mismatch =
          Mismatch{malformed.file.filename().string() + " (" + option + ")", want, got.word, 1, 1};
      return;
    }
  }
  verdict.status = Status::pass;
}

}  // namespace qcts
