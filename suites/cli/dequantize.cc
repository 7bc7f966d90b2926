// SPDX-License-Identifier: BSD-3-Clause
// qcts dequantize IN OUT.safetensors: every tensor under its own name, in the dtype that its scheme
// dequantizes to.
#include <iostream>
#include <memory>

#include "reference/dialects/dense.h"
#include "suites/cli/commands.h"
#include "suites/cli/file_command.h"

namespace qcts::cli {
namespace {

std::vector<std::pair<std::string, Tensor>> dense_tensors(const Checkpoint& checkpoint,
                                                          const std::string& layout) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    std::optional<Tensor> dense = dense_of(tensor, layout);
    if (!dense) throw Failure(checkpoint.path.string() + ": " + tensor.name + ": " + why_not_dense(tensor));
    tensors.emplace_back(tensor.name, std::move(*dense));
  }
  return tensors;
}

void require_safetensors_name(const std::string& out) {
  if (!out.ends_with(".safetensors"))
    throw UsageError("OUT is written as safetensors: '" + out + "' should end in .safetensors");
}

}  // namespace

void add_dequantize(CLI::App& app, int& exit_code) {
  struct Words {
    FileOptions options;
    std::string in, out, pack;
  };
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand("dequantize", "write every tensor as floats under its own name");
  command->add_option("IN", words->in, "a file, or a directory with config.json and shards")->required();
  command->add_option("OUT", words->out, "a .safetensors file")->required();
  command->add_option("--cpu-pack", words->pack,
                      "which CPU packed int4 weights that do not say so: avx512, avx2 or default");
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    exit_code = guarded(words->options.json, [&] {
      require_safetensors_name(words->out);
      if (!words->pack.empty()) cpu_layout(words->pack);
      const Checkpoint checkpoint = open_checkpoint(words->in, words->options.open);
      print_notes(checkpoint.warnings);
      const std::string layout = assumed_layout(checkpoint, words->pack);
      const auto tensors = dense_tensors(checkpoint, layout);
      save_file(words->out, [&](ByteSink& sink) { write_safetensors(tensors, {{"format", "pt"}}, sink); });
      if (words->options.json) {
        nlohmann::ordered_json report = {{"out", words->out}, {"tensors", tensors.size()}};
        report["cpu_pack"] =
            layout.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(layout);
        std::cout << report.dump(2) << "\n";
      }
      return 0;
    });
  });
}

}  // namespace qcts::cli
