// SPDX-License-Identifier: BSD-3-Clause
// What the commands on files share: options, the way a refusal is said, and output in JSON.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "reference/dialects/checkpoint.h"
#include "reference/formats/refusal.h"

namespace qcts::cli {

struct FileOptions {
  OpenOptions open;
  bool json = false;
  bool no_crc = false;
};

// --json, --dialect, --lenient, --no-crc, --allow, --allow-location
void add_file_options(CLI::App& command, FileOptions& options);

// {"refusal": {"class", "detail", "offset"}}
nlohmann::ordered_json refusal_json(const Refusal& refusal);
// "qcts: refused: CLASS: detail (offset N)"
std::string refusal_line(const Refusal& refusal);

// A wrong word, or a wish that no file can fulfil: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// The command did its work and the answer is no: exit code 1.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// OUT could not be written: exit code 5, also where its folder does not exist.
class WriteFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// write_file_atomically, its IoError as WriteFailure.
void save_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void save_file(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill);

// `body`, with every exception turned into one line on stderr and an exit code: refused 1, Failure 1, usage
// and a missing file 2, anything else of the system 5. With json a refusal is also an object on stdout.
int guarded(bool json, const std::function<int()>& body);

// "qcts: note: ..." on stderr, one a warning.
void print_notes(const std::vector<std::string>& notes);
// The warnings as notes, then "qcts: finding: ...".
void print_findings(const Checkpoint& checkpoint);
std::string finding_text(const CheckpointFinding& finding);
nlohmann::ordered_json findings_json(const Checkpoint& checkpoint);
// On stdout, as printable_json().
void print_json(const nlohmann::ordered_json& json);

// "1,114,112"
std::string grouped(uint64_t number);

// --cpu-pack avx512|avx2|default -> "cpu_avx512", ...; UsageError with the nearest word.
std::string cpu_layout(const std::string& word);
// What this machine's ATen would choose, as ATEN_CPU_CAPABILITY or the processor says.
std::string native_cpu_layout();
// A CPU pack whose file does not say which: the first tensor of that kind, empty without one.
std::string undeclared_pack(const Checkpoint& checkpoint);
// The layout to assume for `checkpoint`: the asked one, else this machine's with a note on stderr; empty when
// nothing needs it.
std::string assumed_layout(const Checkpoint& checkpoint, const std::string& asked);

}  // namespace qcts::cli
