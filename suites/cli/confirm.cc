// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <memory>
#include <span>

#include "reference/formats/io/mapped_file.h"
#include "suites/base/paths.h"
#include "suites/base/printable.h"
#include "suites/base/run_error.h"
#include "suites/base/terminal.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/history/confirm.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;

struct ConfirmArguments {
  ConfirmRequest request;
  fs::path into;
};

Outcome confirm(ConfirmArguments& words) {
  ConfirmRequest& request = words.request;
  request.root = repository_root();
  if (request.library.empty()) {
    const std::optional<fs::path> own = cuda_plugin();
    if (!own) throw UsageError("this build has no libqcts_cuda.so: --library names the one that was judged");
    request.library = *own;
  }
  if (!fs::is_regular_file(request.library)) throw UsageError("no library " + request.library.string());
  const Confirmation confirmation = confirmed(request);
  const Ledger& ledger = confirmation.ledger;
  uint64_t failed = 0;
  for (const LedgerRow& row : ledger.rows) failed += row.failed != 0;
  const fs::path into = words.into.empty() ? request.root / "suites/confirmed" : words.into;
  fs::create_directories(into);
  const std::string text = to_json(ledger).dump(1) + "\n";
  write_file_atomically(into / ledger_name(ledger.gpu), std::as_bytes(std::span(text)));
  std::cout << (into / ledger_name(ledger.gpu)).string() << ": " << ledger.rows.size() << " rows on "
            << ledger.gpu << (ledger.complete ? ", the complete plan" : ", a part of the plan") << "; "
            << failed << (failed == 1 ? " row has failures\n" : " rows have failures\n");
  if (!request.executor_runs.empty()) std::cout << printable(confirmation.digests.text()) << "\n";
  return failed + confirmation.digests.differing() == 0 ? Outcome::conformant : Outcome::failed;
}

}  // namespace

void add_confirm(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ConfirmArguments>();
  CLI::App* command = app.add_subcommand(
      "confirm", "write the ledger of kernels that passed on a GPU, from the records of runs there");
  command->add_option("RUN", words->request.runs, "folders of `qcts run --device cuda`, or their records")
      ->required();
  command->add_option("--library", words->request.library,
                      "the libqcts_cuda.so that was judged; default: this build's");
  command->add_option(
      "--executor", words->request.executor_runs,
      "runs of the same cases by provider cudaemu, whose outputs have to be equal bit for bit");
  command->add_option("--into", words->into, "the ledger's folder; default: suites/confirmed");
  command->callback([words, &exit_code] { exit_code = exit_code_of([&] { return confirm(*words); }); });
}

}  // namespace qcts::cli
