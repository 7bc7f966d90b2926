// SPDX-License-Identifier: BSD-3-Clause
// Answers the questions about a file that need no manifest: round_trip, assign, size against the formula, and
// whether all implementations agree on what its bytes mean.
#include <functional>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "kernels/machine/machine.h"
#include "reference/dialects/dense.h"
#include "reference/values/collector.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/base/printable.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/check/check_model.h"
#include "suites/cli/files/check/check_print.h"
#include "suites/cli/files/check/check_program.h"
#include "suites/cli/files/check/check_values.h"
#include "suites/cli/files/error_table.h"
#include "suites/cli/files/file_command.h"
#include "suites/cli/files/strict.h"
#include "suites/judge/expected/compare.h"
#include "suites/judge/judge.h"
#include "suites/providers/kernel_run.h"
#include "suites/run/environment/environment.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct CheckArguments {
  FileOptions file;
  fs::path path, model, original;
  std::string cpu_pack;
  ValueLimits limits;
  bool run_program = false, strict = false;
};

// The file as a golden of which nothing is known but itself.
Golden as_golden(const fs::path& path, const Checkpoint& checkpoint, const std::string& cpu_layout) {
  Golden golden;
  golden.id = "file";
  golden.file = path;
  golden.flags = {"unseen_storage"};  // of a slice torch.save writes the whole storage
  if (checkpoint.script) golden.flags.emplace_back("torchscript");
  for (const NamedTensor& named : checkpoint.tensors) {
    Golden::TensorInfo info;
    info.name = named.name;
    info.scheme = named.scheme;
    info.layout = !named.layout && !named.scheme.empty() ? cpu_layout : layout_name(named.layout);
    info.activation = named.activation.name();
    golden.tensors.push_back(std::move(info));
  }
  return golden;
}

Verdict judge_file(Kind kind, const Golden& golden, const JudgeContext& context, const std::string& rerun) {
  Case c;
  c.question = FileQuestion{&golden};
  c.id = {kind, Op::file, "any", "file"};
  Verdict verdict = judge(c, context);
  verdict.evidence = {"file"};
  verdict.rerun = rerun;
  return verdict;
}

// LibTorch runs a file's __setstate__ when it loads it, and its __getstate__ when it saves it, which may
// write any file: only a user who knows the program can want that.
Verdict program_not_run(const Golden& golden, const JudgeContext& context, const std::string& rerun) {
  Verdict verdict = judge_file(Kind::round_trip, golden, context, rerun);
  if (verdict.status != Status::not_supported) return verdict;
  verdict.reason =
      "a program is not loaded unless you ask, because loading runs code from the file (--run-program lets "
      "LibTorch "
      "load and save it)";
  return verdict;
}

// The round trip of a program by a plug-in, or by nobody. Options that the file was read with are not passed
// on to the plug-in's worker.
Verdict judge_program_round_trip(const Checkpoint& checkpoint, const Golden& golden,
                                 const JudgeContext& context, const std::string& rerun) {
  const bool own_options = context.open.lenient || !context.open.allow.empty();
  std::optional<Verdict> verdict;
  if (!own_options) verdict = judge_program_file(checkpoint, context);
  if (!verdict) return judge_file(Kind::round_trip, golden, context, rerun);
  verdict->evidence = {"file"};
  verdict->rerun = rerun;
  if (verdict->status == Status::pass && verdict->has(Caveat::code_not_run))
    print_notes(
        {"the program's contents survive load and save; its methods were not called: no inputs are known"});
  return *verdict;
}

// A file is not worse for a spelling of its pickle or container other than torch's: its contents were written
// again, read and compared, and a changed bit or value was seen.
Verdict judge_round_trip_of(const Golden& golden, const JudgeContext& context, const std::string& rerun) {
  Verdict verdict = judge_file(Kind::round_trip, golden, context, rerun);
  for (const VerdictFinding& finding : verdict.findings)
    if (verdict.status == Status::pass && finding.caveat == Caveat::copied_bytes)
      print_notes({finding.text + "; its contents were written again and compared"});
  return verdict;
}

struct Weight {
  std::string name;
  KernelInput input;
  std::vector<std::byte> meaning;  // by the reference
};

// Do all implementations read the same weights as the reference? One weight after the other is in memory.
class MeaningJudge {
 public:
  explicit MeaningJudge(std::string rerun) : rerun_(std::move(rerun)) {
    registry_.add(builtin_provider());
    for (const Implementation& implementation : registry_.implementations())
      if (implementation.kernel->op == QCTS_OP_DEQUANTIZE) judged_.push_back({implementation, {}});
  }

  void add(const Weight& weight) {
    for (Judged& judged : judged_) {
      if (weight.input.scheme->family() != judged.implementation.kernel->scheme) continue;
      if (!judged.verdict) judged.verdict = begin(judged.implementation);
      if (judged.verdict->status == Status::pass)
        compare(weight, judged.implementation, *judged.verdict, judged.elements);
    }
  }

  // One for each implementation of a family that some weight has.
  std::vector<Verdict> verdicts() const {
    std::vector<Verdict> found;
    for (const Judged& judged : judged_) {
      if (!judged.verdict) continue;
      found.push_back(*judged.verdict);
      if (found.back().status == Status::pass)
        found.back().measures.push_back(
            {"elements", "elements", static_cast<double>(judged.elements), {}, {}, {}});
    }
    return found;
  }

 private:
  struct Judged {
    Implementation implementation;
    std::optional<Verdict> verdict;
    uint64_t elements = 0;
  };

  Verdict begin(const Implementation& implementation) const {
    Verdict verdict;
    verdict.case_id =
        parse_case_id("numerics.dequantize/" + std::string(implementation.kernel->scheme) + "/file").value();
    verdict.provider = implementation.provider;
    verdict.variant = implementation.kernel->variant;
    verdict.rerun = rerun_;
    verdict.reason = variant_refusal(implementation.kernel->variant);
    verdict.status = verdict.reason.empty() ? Status::pass : Status::not_supported;
    if (verdict.status == Status::pass) verdict.evidence = {"reference"};
    return verdict;
  }

  static void compare(const Weight& weight, const Implementation& implementation, Verdict& verdict,
                      uint64_t& elements) {
    KernelRun run(*implementation.kernel, weight.input, {});
    const Support support = run.supports();
    if (support.status != QCTS_OK) {
      verdict.status = Status::not_supported;
      verdict.reason = weight.name + ": " + support.reason;
      return;
    }
    const Comparison compared =
        compare_bitwise(weight.input.weight.dtype, weight.meaning, run.run(Poison::nan).y);
    elements += compared.total;
    if (compared.equal()) return;
    const int64_t k = weight.input.weight.k, index = static_cast<int64_t>(compared.first);
    verdict.status = Status::fail;
    verdict.reason = "dequantizes differently from the reference";
    verdict.mismatch =
        Mismatch{weight.name + ": row " + std::to_string(index / k) + ", column " + std::to_string(index % k),
                 compared.want, compared.got, compared.differing, compared.total};
  }

  Registry registry_;
  std::string rerun_;
  std::vector<Judged> judged_;
};

// Shows every tensor to `values`, and the weights that can be read to `meanings`.
void look_at_tensors(const Checkpoint& checkpoint, ValueCollector& values, MeaningJudge& meanings) {
  PageRelease pages(checkpoint);
  for (const NamedTensor& named : checkpoint.tensors) {
    if (std::optional<ReadWeight> read = values.add(named)) {
      Weight weight;
      weight.name = named.name;
      weight.input.op = Op::dequantize;
      weight.input.scheme = read->scheme;
      weight.input.weight = read->shape;
      weight.input.planes = std::move(read->plain);
      weight.meaning = std::move(read->dense);
      meanings.add(weight);
    }
    pages.was_read(named);
  }
}

// Why the file as a whole is not judged; empty: it is.
std::string not_judged(const Checkpoint& checkpoint) {
  for (const CheckpointFinding& finding : checkpoint.findings)
    if (finding.kind == CheckpointFinding::Kind::foreign) return finding.text;
  return checkpoint.tensors.empty() ? "nothing to judge: it holds no tensor" : "";
}

// Quantized weights that no scheme means: their bytes are judged, and not what they stand for. A tensor on
// `meta` has no bytes.
std::vector<std::string> without_meaning(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (tensor.scheme.empty() && !tensor.coded && !tensor.blocks && tensor.foreign.empty() &&
        !tensor.payload.empty() && !is_plain(tensor))
      names.push_back(tensor.name);
  return names;
}

// The verdict on the file itself; one without measures if there is none.
Verdict verdict_of(const std::vector<Verdict>& verdicts, Kind kind) {
  for (const Verdict& verdict : verdicts)
    if (verdict.case_id.kind == kind) return verdict;
  return {};
}

// The round trip compares the file's own bytes, so it reads the device tags as they are stored.
OpenOptions as_stored(OpenOptions options) {
  for (const auto& [from, to] : options.map_locations) options.allow_locations.push_back(from);
  options.map_locations.clear();
  return options;
}

// Opens the checkpoint. If it is refused, the last line of the output says so before the reason goes to
// stderr.
Checkpoint opened(const CheckArguments& words) {
  try {
    Checkpoint checkpoint = open_checkpoint(words.path, words.file.open);
    print_findings(checkpoint);
    if (words.strict) require_no_further(checkpoint);
    return checkpoint;
  } catch (const Refused& error) {
    Printout out(screen_of(STDOUT_FILENO));
    print_refusal(words.path, error.refusal(), out);
    if (!words.file.json) std::cout << out.str() << std::flush;
    throw;
  }
}

int check(const CheckArguments& words) {
  const Checkpoint checkpoint = opened(words);
  const std::string whole = not_judged(checkpoint);
  const std::vector<std::string> unknown = without_meaning(checkpoint);
  const auto show = [&](const auto& print_to) {
    Printout out(screen_of(STDOUT_FILENO));
    print_to(out);
    if (!words.file.json) std::cout << out.str() << std::flush;
  };
  show([&](Printout& out) { print_open_questions(whole, unknown, out); });
  const std::string cpu_layout = assumed_layout(checkpoint, words.cpu_pack);
  const Golden golden = as_golden(words.path, checkpoint, cpu_layout);
  const ScratchFolder scratch;
  JudgeContext context;
  context.scratch = scratch.path();
  context.targets = targets_folder();
  context.program = program_word();
  context.purpose = Purpose::check;
  context.open = as_stored(words.file.open);
  const std::string rerun = context.program + " check " + shell_word(words.path.string());
  std::vector<Verdict> verdicts;
  for (const Kind kind : {Kind::round_trip, Kind::assign, Kind::size}) {
    const bool by_law = kind == Kind::size;  // of a foreign weight nobody here knows it
    if (checkpoint.tensors.empty() || (by_law && !whole.empty())) continue;
    const bool program = kind == Kind::round_trip && checkpoint.script;
    if (program && !words.run_program) {
      verdicts.push_back(program_not_run(golden, context, rerun));
      continue;
    }
    verdicts.push_back(program ? judge_program_round_trip(checkpoint, golden, context, rerun)
                       : kind == Kind::round_trip ? judge_round_trip_of(golden, context, rerun)
                                                  : judge_file(kind, golden, context, rerun));
    if (by_law) note_size(verdicts.back());
  }
  ValueCollector collector(words.limits, cpu_layout);
  MeaningJudge meanings(rerun);
  look_at_tensors(checkpoint, collector, meanings);
  const CheckpointValues values = collector.finish();
  print_value_findings(values);
  if (!checkpoint.tensors.empty()) verdicts.push_back(values_verdict(values, rerun));
  for (Verdict& verdict : meanings.verdicts()) verdicts.push_back(std::move(verdict));
  bool failed = false;
  Json json = Json::array();
  for (const Verdict& verdict : verdicts) {
    failed = failed || (verdict.status != Status::pass && verdict.status != Status::not_supported);
    json.push_back(to_json(verdict));
    show([&](Printout& out) {
      print_check(verdict, out);
      if (verdict.case_id.kind == Kind::values) print_values(values, out);
    });
  }
  Json model;
  if (!words.model.empty()) {
    const KeyMatch match = match_keys(checkpoint, open_checkpoint(words.model, words.file.open));
    const Verdict loading = verdict_of(verdicts, Kind::assign);
    failed = failed || !match.all_matched();
    model = model_json(match, loading);
    show([&](Printout& out) { print_model(match, loading, out); });
  }
  std::optional<QuantizationErrors> errors;
  if (!words.original.empty()) {
    const Checkpoint original = open_checkpoint(words.original, words.file.open);
    errors = quantization_errors(original, checkpoint, assumed_layout(original, words.cpu_pack), cpu_layout);
    failed = failed || !errors->missing.empty();
    show([&](Printout& out) { print_error(*errors, out); });
  }
  show([&](Printout& out) {
    const auto quantized = std::ranges::count_if(checkpoint.tensors, std::not_fn(is_plain));
    print_conclusion(
        {words.path, checkpoint.tensors.size(), static_cast<size_t>(quantized), failed, whole.empty()},
        verdicts, out);
  });
  const Json passed = failed ? Json(false) : whole.empty() ? Json(true) : Json(nullptr);
  if (words.file.json) {
    Json report = {{"file", words.path.string()},
                   {"passed", passed},
                   {"not_judged", whole.empty() ? Json(nullptr) : Json(whole)},
                   {"meaning_not_judged", unknown},
                   {"findings", findings_json(checkpoint)},
                   {"verdicts", json},
                   {"values", values_json(values)}};
    if (!words.model.empty()) report["model"] = model;
    if (errors) report["error"] = error_json(*errors);
    print_json("check", report);
  }
  return failed ? 1 : whole.empty() ? 0 : 3;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand(
      "check",
      "judge a checkpoint by everything that needs no manifest: round trip, assign, size, values, meaning");
  command->add_option("FILE", words->path, "a checkpoint, or a folder with config.json and shards")
      ->required();
  command->add_option(
      "--model", words->model,
      "a state dict, on meta or not, or a folder: check that names and shapes fit this model");
  command->add_option("--original", words->original,
                      "the float checkpoint that FILE was quantized from: show each layer's error, as diff "
                      "--error does; fail if FILE lacks one of its tensors");
  command->add_option(
      "--cpu-pack", words->cpu_pack,
      "the CPU layout of packed int4 weights, which files do not record: avx512, avx2 or default");
  command->add_flag(
      "--run-program", words->run_program,
      "let LibTorch load and save a TorchScript file, which runs its code: only for files that you trust");
  add_value_limits(*command, words->limits);
  add_strict(*command, words->strict);
  add_file_options(*command, words->file);
  command->callback([words, &exit_code] {
    exit_code = guarded(
        words->file.json, [&] { return check(*words); }, words->path);
  });
}

}  // namespace qcts::cli
