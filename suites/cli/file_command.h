// SPDX-License-Identifier: BSD-3-Clause
// Helpers for commands on files: options, messages of refusals, and output as JSON.
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

// Adds --json, --dialect, --lenient, --no-crc, --allow and --allow-location.
void add_file_options(CLI::App& command, FileOptions& options);

// {"refusal": {"class", "detail", "offset"}}
nlohmann::ordered_json refusal_json(const Refusal& refusal);
// "qcts: refused: CLASS: detail (offset N)"
std::string refusal_line(const Refusal& refusal);

// A wrong argument, or a request that no file can satisfy: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// The command ran and the result is negative: exit code 1.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// OUT could not be written: exit code 5, also if its folder does not exist.
class WriteFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// Calls write_file_atomically() and throws its IoError as a WriteFailure.
void save_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void save_file(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill);

// Runs `body` and turns every exception into one line on stderr and an exit code: refused 1, Failure 1, usage
// and a missing file 2, other system errors 5. With json a refusal is also an object on stdout.
int guarded(bool json, const std::function<int()>& body);

// Prints "qcts: note: ..." on stderr for each note.
void print_notes(const std::vector<std::string>& notes);
// Prints the warnings as notes, then "qcts: finding: ..." lines.
void print_findings(const Checkpoint& checkpoint);
std::string finding_text(const CheckpointFinding& finding);
nlohmann::ordered_json findings_json(const Checkpoint& checkpoint);
// Prints "wrote PATH, 1,234 bytes" on stdout; with json nothing, since the document names the file. A
// directory's bytes are those of its files.
void print_written(const std::filesystem::path& path, bool json);

// Returns "1,114,112" for 1114112.
std::string grouped(uint64_t number);

// Returns the layout for --cpu-pack avx512|avx2|default: "cpu_avx512", ... Throws UsageError with the nearest
// word.
std::string cpu_layout(const std::string& word);
// Returns the layout that ATen would choose on this machine, by ATEN_CPU_CAPABILITY or the processor.
std::string native_cpu_layout();
// Returns the first tensor in a CPU pack whose kind the file does not say; "" if there is none.
std::string undeclared_pack(const Checkpoint& checkpoint);
// Returns the layout to assume for `checkpoint`: the requested one, else this machine's with a note on
// stderr; "" if no tensor needs one.
std::string assumed_layout(const Checkpoint& checkpoint, const std::string& asked);

}  // namespace qcts::cli
