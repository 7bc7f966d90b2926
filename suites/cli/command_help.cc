// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/command_help.h"

namespace qcts::cli {
namespace {

struct CommandHelp {
  const char *name, *group, *example;
};

constexpr const char *kFiles = "Files", *kKernels = "Kernels", *kRuns = "Runs", *kTimes = "Times",
                     *kItself = "qcts itself";

constexpr CommandHelp kHelp[] = {
    {"inspect", kFiles, "qcts inspect model.safetensors"},
    {"check", kFiles, "qcts check model.safetensors --original dense.safetensors"},
    {"diff", kFiles, "qcts diff a.safetensors b.pt"},
    {"whence", kFiles, "qcts whence dense.safetensors model.pt"},
    {"resave", kFiles, "qcts resave model.pt copy.pt"},
    {"convert", kFiles, "qcts convert gptq_folder new_folder --to compressed_tensors"},
    {"dequantize", kFiles, "qcts dequantize model.safetensors dense.safetensors"},
    {"quantize", kFiles, "qcts quantize --scheme int8_row dense.safetensors model.pt"},
    {"run", kKernels, "qcts run --provider ./libacme.so --filter '*int8_row*' --fail-fast"},
    {"list", kKernels, "qcts list --plan nightly --filter 'numerics.linear/int8_row/*'"},
    {"schemes", kKernels, "qcts schemes int8_row"},
    {"vectors", kKernels, "qcts vectors export --scheme 'mx*,nvfp4*,int4*' --out vectors"},
    {"shrink", kKernels,
     "qcts shrink numerics.dequantize/int8_row/noise_n37_k216_f32 --provider ./libacme.so -o small.data"},
    {"replay", kKernels, "qcts replay small.data --provider ./libacme.so"},
    {"merge", kRuns, "qcts merge out1 out2 out3 --out out"},
    {"statement", kRuns, "qcts statement out --vendor Acme --product 'int8 kernels' --key acme.key"},
    {"verify", kRuns, "qcts verify statement.json --provider ./libacme.so"},
    {"compare", kRuns, "qcts compare out_yesterday out"},
    {"history", kRuns, "qcts history qcts.db --last 30"},
    {"report", kRuns, "qcts report out --badge"},
    {"export", kRuns, "qcts export out --format csv --out verdicts.csv"},
    {"confirm", kRuns, "qcts confirm gpu/nightly.jsonl.gz"},
    {"block", kTimes, "qcts block --scheme int8_row --m 1"},
    {"stopwatch", kTimes, "qcts stopwatch --plan latency_quick --runs 12"},
    {"targets", kTimes, "qcts targets propose out"},
    {"selftest", kItself, "qcts selftest kill --plan quick"},
    {"completion", kItself, "source <(qcts completion bash)"},
};

}  // namespace

void add_groups_and_examples(CLI::App& app) {
  for (const CommandHelp& help : kHelp) {
    CLI::App* command = app.get_subcommand(help.name);
    command->group(help.group);
    const std::string footer = command->get_footer();
    command->footer((footer.empty() ? "" : footer + "\n") + "Example:\n" + help.example);
  }
}

}  // namespace qcts::cli
