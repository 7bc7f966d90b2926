// SPDX-License-Identifier: BSD-3-Clause
// One function per subcommand. Each function adds the subcommand's options to `app`.
// If the subcommand is chosen, the function runs it and stores its exit code.
// The codes are 0 (conformant or done), 1 (failed or refused) and 2 (usage).
// Further codes are 3 (nothing proved), 4 (inconclusive only) and 5 (infrastructure).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace qcts::cli {

void add_inspect(CLI::App& app, int& exit_code);
void add_diff(CLI::App& app, int& exit_code);
void add_whence(CLI::App& app, int& exit_code);
void add_resave(CLI::App& app, int& exit_code);
void add_convert(CLI::App& app, int& exit_code);
void add_dequantize(CLI::App& app, int& exit_code);
void add_quantize(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_schemes(CLI::App& app, int& exit_code);
void add_vectors(CLI::App& app, int& exit_code);
// `arguments` is the command line, for the report.
void add_run(CLI::App& app, int& exit_code, const std::vector<std::string>& arguments,
             const std::string& commit);
void add_report(CLI::App& app, int& exit_code);
void add_statement(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_merge(CLI::App& app, int& exit_code, const std::vector<std::string>& arguments);
void add_compare(CLI::App& app, int& exit_code);
void add_confirm(CLI::App& app, int& exit_code);
void add_history(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_block(CLI::App& app, int& exit_code);
void add_speed(CLI::App& app, int& exit_code);
void add_stopwatch(CLI::App& app, int& exit_code);
void add_targets(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);
void add_provider_process(CLI::App& app, int& exit_code);

// Checks before a run with --history (`run` and `merge`). Throws RunError if the file cannot take a run.
void check_history(const std::string& file);
// Adds the run in `folder` after it has finished, reports this on stderr, and shows the history on its page.
// Throws RunError, which says how to try again.
void add_to_history(const std::string& file, const std::string& folder);
// Writes the folder's trend.json, and the page that includes it. If the run is not compared with another one
// yet, compares it with the previous run in the history. Throws RunError, and std::runtime_error as
// write_page() does.
void show_history(const std::string& file, const std::filesystem::path& folder);

}  // namespace qcts::cli
