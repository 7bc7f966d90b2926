// SPDX-License-Identifier: BSD-3-Clause
// Prints the answers of `qcts check`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "reference/formats/refusal.h"
#include "reports/verdict.h"
#include "suites/base/terminal.h"
#include "suites/cli/files/error_table.h"

namespace qcts::cli {

void print_check(const Verdict& verdict, Printout& out);
// Notes storage that no element reaches, which makes a file larger and says nothing about its weights, and
// weights that quantization made larger. `size` is the file's verdict on its size.
void note_size(const Verdict& size);
// `whole` says why the file as a whole is not judged, or is empty. `unknown` names weights without a scheme.
void print_open_questions(const std::string& whole, const std::vector<std::string>& unknown, Printout& out);
// Reported in addition to the verdicts: no error is a failure, but a tensor that the file lost is.
void print_error(const QuantizationErrors& errors, Printout& out);

struct Conclusion {
  std::filesystem::path path;
  size_t tensors = 0, quantized = 0;
  bool failed = false, is_judged = true;
};
// The last line: "SOUND: model.pt: 231 tensors, 96 quantized; 6 checks passed, 2 not supported".
void print_conclusion(const Conclusion& conclusion, const std::vector<Verdict>& verdicts, Printout& out);

// The last line of a checkpoint that is not read: "NOT SOUND: model.pt: refused (Truncated)".
void print_refusal(const std::filesystem::path& path, const Refusal& refusal, Printout& out);

}  // namespace qcts::cli
