// SPDX-License-Identifier: BSD-3-Clause
// The ledger of kernels that passed on a GPU: a file for each kind of GPU in this folder, written
// only by `qcts confirm` (suites/history/confirm.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/case_id.h"

namespace qcts {

inline constexpr int kLedgerSchema = 1;

// One row of kernels/kernels.inc, as a run on the GPU judged it.
struct LedgerRow {
  Op op = Op::linear;
  std::string scheme, variant;  // the family "int8_row", "sm80"
  std::string sources_sha256;   // row_sources_sha256()
  uint64_t asked = 0, passed = 0, failed = 0, declined = 0;
  // Cases of the row's operation and family in mustpass, of the kinds a device is asked.
  uint64_t mustpass = 0;
  // Numbers of outputs that equal the executor's bit for bit, and that do not; 0 if none were compared.
  uint64_t equal_digests = 0, differing_digests = 0;
};

struct Ledger {
  std::string gpu, uuid;  // "NVIDIA H200"
  uint32_t capability = 0, driver_version = 0;
  std::string driver_sha256, library_sha256, suite_version, commit, date, plan;
  bool complete = false;  // all cases of plan nightly that the provider was asked
  std::vector<std::string> records_sha256;
  std::vector<LedgerRow> rows;
};

nlohmann::ordered_json to_json(const Ledger& ledger);
// Throws std::runtime_error, which names the field.
Ledger ledger_from_json(const nlohmann::ordered_json& json);

// Reads every ledger in the folder. Throws std::runtime_error, which names the file.
std::vector<Ledger> read_ledgers(const std::filesystem::path& folder);
// The file's name for a GPU: "nvidia_h200.json".
std::string ledger_name(const std::string& gpu);

// Returns the SHA-256 over path and SHA-256 of every source that a row is compiled from: its .cu, and the
// headers of its architectures. Returns "" where the sources are not installed, or for a variant without a
// .cu.
std::string row_sources_sha256(const std::filesystem::path& root, Op op, const std::string& variant);

// Returns what the ledgers say about a row: "confirmed on NVIDIA H200, 2026-12-03", "confirmed in part (120
// of 431) on ...", either with ", sources changed since, same machine code"; "failed 3 of 431 on ..."; "bits
// differ from the executor's in 3 of 431 outputs on ..."; "emulated only". `library_sha256` is that of the
// library which computes now.
std::string confirmation_of(const std::vector<Ledger>& ledgers, const LedgerRow& row,
                            const std::string& library_sha256);

}  // namespace qcts
