// qcts check FILE: every kind that needs no manifest. The file against itself (round trip, assignment, size
// law), and each implementation's dequantize against the reference's.
#include <filesystem>
#include <iostream>
#include <memory>

#include "kernels/machine.h"
#include "suites/cli/commands.h"
#include "suites/cli/file_command.h"
#include "suites/compare.h"
#include "suites/judge.h"
#include "suites/kernel_run.h"
#include "suites/paths.h"

namespace qcts::cli {
namespace {

// The file as a golden that nobody vouches for: what it holds is what its own reader says.
Golden unvouched(const Checkpoint& checkpoint, const std::string& cpu_pack) {
  Golden golden;
  golden.id = "file";
  golden.file = checkpoint.path;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    Golden::TensorInfo info;
    info.name = tensor.name;
    info.scheme = tensor.scheme;
    info.layout = tensor.layout;
    if (!tensor.scheme.empty() && tensor.layout.empty()) info.layout = cpu_pack;
    golden.tensors.push_back(info);
  }
  return golden;
}

Verdict judge_file(Kind kind, const Golden& golden, const JudgeContext& context) {
  Case c;
  c.id = std::string(kind_name(kind)) + ".file/any/" + golden.id;
  c.kind = kind;
  c.op = "file";
  c.golden = &golden;
  Verdict verdict = judge(c, context);
  verdict.evidence.clear();
  return verdict;
}

void compare_dequantize(const SchemeTensor& tensor, const Planes& plain, const Implementation& implementation,
                        Verdict& verdict) {
  const WeightShape shape{tensor.dtype, tensor.n, tensor.k};
  KernelInput input;
  input.op = "dequantize";
  input.scheme = tensor.scheme;
  input.weight = shape;
  input.planes = plain;
  input.y_dtype = tensor.dtype;
  KernelRun kernel(*implementation.kernel, input, {});
  if (const Support support = kernel.supports(); support.status != QCTS_OK) {
    verdict.status = Status::not_supported;
    verdict.reason = support.reason;
    return;
  }
  const std::vector<std::byte> want = tensor.scheme->dequantize(plain, shape);
  const Comparison found = compare_bitwise(tensor.dtype, want, kernel.run(Poison::nan).y);
  verdict.status = found.equal() ? Status::pass : Status::fail;
  if (found.equal()) return;
  verdict.reason = found.problem.empty() ? "dequantized weights differ from the reference's" : found.problem;
  const uint64_t columns = static_cast<uint64_t>(tensor.k);
  verdict.mismatch = Mismatch{
      "row " + std::to_string(found.first / columns) + ", column " + std::to_string(found.first % columns),
      found.want, found.got, found.differing, found.total};
}

// dequantize of every quantized tensor by every builtin kernel, a tensor and a kernel a verdict.
std::vector<Verdict> judge_dequantize(const Checkpoint& checkpoint, const std::string& cpu_pack) {
  Registry registry;
  registry.add(builtin_provider());
  std::vector<Verdict> verdicts;
  for (const NamedTensor& named : checkpoint.tensors) {
    const std::optional<SchemeTensor> tensor = scheme_tensor(named, cpu_pack);
    if (!tensor) continue;
    const WeightShape shape{tensor->dtype, tensor->n, tensor->k};
    const Planes plain = tensor->layout == "plain"
                             ? tensor->planes
                             : tensor->scheme->unpack(tensor->planes, shape, tensor->layout);
    for (const Implementation* implementation : registry.find("dequantize", tensor->scheme->family())) {
      Verdict verdict;
      verdict.case_id = "numerics.dequantize/" + std::string(tensor->scheme->name()) + "/" + named.name;
      verdict.provider = implementation->provider;
      verdict.variant = implementation->kernel->variant;
      verdict.reason = variant_refusal(implementation->kernel->variant);
      verdict.status = Status::not_supported;
      if (verdict.reason.empty()) compare_dequantize(*tensor, plain, *implementation, verdict);
      verdicts.push_back(std::move(verdict));
    }
  }
  return verdicts;
}

void print(const std::vector<Verdict>& verdicts) {
  for (const Verdict& verdict : verdicts) {
    std::cout << status_name(verdict.status) << "  " << verdict.full_id();
    if (!verdict.reason.empty()) std::cout << ": " << verdict.reason;
    if (verdict.mismatch)
      std::cout << " (" << verdict.mismatch->where << ": want " << verdict.mismatch->want << ", got "
                << verdict.mismatch->got << ")";
    std::cout << "\n";
  }
}

int run_check(const std::string& file, const FileOptions& options, const std::string& cpu_pack) {
  const Checkpoint checkpoint = open_checkpoint(file, options.open);
  print_notes(checkpoint.warnings);
  const std::string layout = assumed_layout(checkpoint, cpu_pack.empty() ? "" : cpu_layout(cpu_pack));
  const Golden golden = unvouched(checkpoint, layout);
  const ScratchFolder scratch;
  JudgeContext context;
  context.scratch = scratch.path();
  context.targets = targets_folder();
  context.program = program_word();
  std::vector<Verdict> verdicts;
  for (Kind kind : {Kind::round_trip, Kind::assign, Kind::size})
    verdicts.push_back(judge_file(kind, golden, context));
  for (Verdict& verdict : judge_dequantize(checkpoint, layout)) verdicts.push_back(std::move(verdict));

  bool failed = false, proved = false;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Verdict& verdict : verdicts) {
    proved |= verdict.status == Status::pass;
    failed |= verdict.status != Status::pass && verdict.status != Status::not_supported;
    list.push_back(to_json(verdict));
  }
  if (options.json)
    std::cout << list.dump(2) << "\n";
  else
    print(verdicts);
  return failed ? 1 : proved ? 0 : 3;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  struct Words {
    FileOptions options;
    std::string file, cpu_pack;
  };
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand("check", "judge a file by every kind that needs no manifest");
  command->add_option("file", words->file, "checkpoint: a file or a directory")->required();
  command->add_option("--cpu-pack", words->cpu_pack,
                      "which CPU packed int4 weights whose file does not say: avx512, avx2, default");
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    exit_code =
        guarded(words->options.json, [&] { return run_check(words->file, words->options, words->cpu_pack); });
  });
}

}  // namespace qcts::cli
