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
#include "reference/dialects/cpu_pack.h"
#include "reference/formats/refusal.h"
#include "suites/base/run_error.h"

namespace qcts::cli {

struct FileOptions {
  OpenOptions open;
  bool json = false;
  bool no_crc = false;
};

// Adds --json, --dialect, --lenient, --no-crc, --allow, --allow-location and --map-location.
// `dialect` replaces --dialect in commands whose --dialect names the dialect of the output.
void add_file_options(CLI::App& command, FileOptions& options, const std::string& dialect = "--dialect");
// Returns a message that there is no such dialect, with the nearest name.
// Returns "" for a known dialect and for "".
std::string unknown_dialect(const std::string& name);

// Returns {"refusal": {"class", "detail", "offset"}}.
nlohmann::ordered_json refusal_json(const Refusal& refusal);
// Returns "qcts: refused: CLASS: detail (offset N)".
std::string refusal_line(const Refusal& refusal);

// Calls write_file_atomically() and throws its IoError as a WriteFailure.
void save_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void save_file(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill);

// Returns the name that torch.save gives the archive in the file.
// The result is the file's name without folder and last ending, or "archive" if that name is not ASCII.
std::string archive_prefix(const std::string& out);

// As exit_code_of(), for a command on files: a refused file is a Failure, and a missing one a UsageError.
// With json, a refusal is also an object on stdout, which names `file` if that is given.
int guarded(bool json, const std::function<int()>& body, const std::filesystem::path& file = {});

// Prints "qcts: note: ..." on stderr for each note, or one line for many of a kind (notes.h).
void print_notes(const std::vector<std::string>& notes);
// Prints the warnings as notes, then one line "qcts: finding: ..." for each finding.
void print_findings(const Checkpoint& checkpoint);
std::string finding_text(const CheckpointFinding& finding);
nlohmann::ordered_json findings_json(const Checkpoint& checkpoint);
// Prints "wrote PATH, 1,234 bytes" on stdout. For a directory, sums the bytes of its files.
// With json, prints nothing, because the document names the file.
void print_written(const std::filesystem::path& path, bool json);

// Throws Failure for a GGUF file: `command` makes torchao checkpoints, which have other names.
void require_no_gguf(const Checkpoint& checkpoint, const std::string& command);

// Returns "1,114,112" for 1114112.
std::string grouped(uint64_t number);

// Returns the layout for --cpu-pack avx512|avx2|default: "cpu_avx512" and so on.
// Throws UsageError with the nearest word.
std::string cpu_layout(const std::string& word);
// Returns true if there is a tensor in a CPU pack whose kind the file does not record.
bool undeclared_pack(const Checkpoint& checkpoint);
// Returns "of 512 groups reach both ends: avx512 512, avx2 382, default 382".
std::string pack_text(const CpuPack& pack);
// Returns the layout to assume for `checkpoint`: the requested layout, if there is one.
// Otherwise the result is the layout that the codes show, with a note on stderr.
// Returns "" if no tensor needs a layout. Throws UsageError if the codes show none.
std::string assumed_layout(const Checkpoint& checkpoint, const std::string& asked);
// The same, but says in `why_not` that the codes show none, and returns "" then.
std::string layout_if_shown(const Checkpoint& checkpoint, const std::string& asked, std::string& why_not);

}  // namespace qcts::cli
