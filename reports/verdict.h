// SPDX-License-Identifier: BSD-3-Clause
// The result of one case. Every status except pass has a reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/asked.h"
#include "reports/case_id.h"
#include "reports/caveat.h"
#include "reports/speed_claim.h"
#include "reports/wrong_map.h"

namespace qcts {

inline constexpr size_t kOutputHashDigits = 16;

enum class Status : uint8_t {
  pass,
  fail,
  weak_evidence,  // the check held, but a perturbed answer would also have passed
  not_supported,  // the provider declined, with a reason
  waived,         // failed, but a waiver that has not expired covers it
  xpass,          // passed, although a waiver that has not expired covers it
  crash,          // the worker died
  timeout,
  resource,      // memory, disk or device ran out
  inconclusive,  // the measurement does not decide the case
  internal,      // a fault in qcts itself
  robustness,    // no right answer on a hostile input, from a provider that promises none there
};
inline constexpr int kStatusCount = static_cast<int>(Status::robustness) + 1;
std::string_view status_name(Status status);
std::optional<Status> status_from_name(std::string_view name);

// The first difference, with the name of its field.
struct Mismatch {
  std::string where;  // "scale_and_zero: group 3, column 17"
  std::string want, got;
  uint64_t count = 0;  // number of elements that differ
  uint64_t total = 0;
  std::optional<WrongMap> map = {};  // of the field that `where` names
};

struct Measure {
  std::string name;  // "payload_bytes", "ratio_to_dense", "median_us"
  std::string unit;  // "bytes", "x", "us", "GB/s", "ulp"
  double value = 0;
  std::optional<double> low, high;  // interval, 95 % unless the name says otherwise
  std::optional<uint64_t> samples;
};

// Weights that a model declares as one type and a file stores as another.
struct LoadedType {
  std::string before, after;  // "Tensor float32", "Int8Tensor int8_row float32"
  uint64_t tensors = 0;
};

struct Verdict {
  CaseId case_id;        // "numerics.linear/int8_row/m1_n64_k64", without provider
  std::string provider;  // "builtin"; "qcts" for cases that judge files
  std::string variant;   // the kernel variant: "avx512"; may be empty
  Status status = Status::internal;
  std::string reason;
  std::optional<Mismatch> mismatch;
  std::vector<Measure> measures;
  std::vector<SpeedClaim> speed;   // latency only
  bool is_peer = false;            // the provider is not under judgement, so its latency never gates
  std::vector<LoadedType> loaded;  // only for assign, in the file's order
  // "golden": compared with a file of a real library. "emulated": an operation of that file was emulated.
  // "reference": compared with the reference of qcts.
  std::vector<std::string> evidence;
  // The kind of the planes that a kernel read: "reachable", "representable" or "hostile". Empty for files.
  std::string input_kind;
  // The question to a provider. Absent where it was not asked: this machine cannot run the variant, or only
  // the suite judges the case's file.
  std::optional<Asked> asked;
  // The problem, if it was drawn from the run's seed: "seed 7: m 3, n 37, k 216, bfloat16, 5 threads, bias".
  std::string problem;
  // The first 64 bits of the SHA-256 of the answer, in hexadecimal (suites/judge/output_hash.h). Empty unless
  // the case passed and the answer follows only from the input.
  std::string output_hash;
  std::vector<VerdictFinding> findings;
  std::string rerun;  // one shell line
  double wall_us = 0;
  std::vector<double> samples_us;  // only for latency: raw samples
  // only for numerics: values that no earlier case touched (suites/judge/expected/coverage.h); null if none
  nlohmann::ordered_json coverage;

  bool has(Caveat caveat) const;
  std::string full_id() const;  // case_id, followed by "/provider_variant" if there is a variant
};

// Returns true for a text of kOutputHashDigits lower-case hexadecimal digits.
bool is_output_hash(std::string_view text);

nlohmann::ordered_json to_json(const Verdict& verdict);  // numbers that are not finite become null
// throws std::runtime_error that names the field
Verdict verdict_from_json(const nlohmann::ordered_json& json);

}  // namespace qcts
