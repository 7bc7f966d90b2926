// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/check/check_print.h"

#include "suites/cli/files/check/check_model.h"
#include "suites/cli/files/file_command.h"
#include "suites/judge/latency/latency_measures.h"

namespace qcts::cli {
namespace {

void note_unseen(const Verdict& size) {
  for (const Measure& measure : size.measures)
    if (measure.name == "unseen_bytes")
      print_notes({"no element reaches " + grouped(static_cast<uint64_t>(measure.value)) +
                   " of the storage bytes: slices keep the whole storage that they were cut from"});
}

// A small group of a small weight does that.
void note_larger(const Verdict& size) {
  const Measure *dense = find_measure(size, "dense_bytes"), *payload = find_measure(size, "payload_bytes");
  if (dense == nullptr || payload == nullptr || dense->value <= 0 || payload->value <= dense->value) return;
  print_notes(
      {"the quantized weights are larger than dense ones: " + grouped(static_cast<uint64_t>(payload->value)) +
       " bytes instead of " + grouped(static_cast<uint64_t>(dense->value))});
}

}  // namespace

void print_check(const Verdict& verdict, Printout& out) {
  constexpr size_t kLabel = 15;
  const std::string name =
      std::string(kind_name(verdict.case_id.kind)) + "." + std::string(op_name(verdict.case_id.op));
  const std::string what =
      verdict.variant.empty() ? name : name + " " + verdict.provider + "_" + verdict.variant;
  out.item(status_name(verdict.status), kLabel, verdict.reason.empty() ? what : what + ": " + verdict.reason);
  if (verdict.mismatch) {
    const Mismatch& m = *verdict.mismatch;
    out.item("", kLabel, m.where + ": want " + m.want + ", got " + m.got);
  }
  for (const LoadedType& type : verdict.loaded)
    out.item("", kLabel,
             type.before + " -> " + type.after + ": " + grouped(type.tensors) +
                 (type.tensors == 1 ? " tensor" : " tensors"));
  if (const std::string peak = peak_text(verdict); !peak.empty()) out.item("", kLabel, peak);
  if (name == "size.file")
    for (const Measure& measure : verdict.measures)
      if (measure.unit == "bytes")
        out.item("", kLabel, measure.name + " " + grouped(static_cast<uint64_t>(measure.value)));
}

void note_size(const Verdict& size) {
  note_unseen(size);
  note_larger(size);
}

void print_open_questions(const std::string& whole, const std::vector<std::string>& unknown, Printout& out) {
  if (!whole.empty()) out.text("not judged: " + whole);
  if (unknown.empty()) return;
  const std::string more =
      unknown.size() > 1 ? " and " + std::to_string(unknown.size() - 1) + " more, which belong to no scheme"
                         : ", which belongs to no scheme";
  out.text("not judged: the meaning of " + unknown.front() + more);
}

void print_error(const QuantizationErrors& errors, Printout& out) {
  if (const size_t missing = errors.missing.size())
    out.item(status_name(Status::fail), 15,
             "original: " + grouped(missing) + (missing == 1 ? " of its tensors is" : " of its tensors are") +
                 " missing");
  out.blank();
  out.text("error against the original (reported, never a failure)");
  print_errors(errors, out);
}

void print_conclusion(const Conclusion& conclusion, const std::vector<Verdict>& verdicts, Printout& out) {
  size_t passes = 0, declined = 0;
  for (const Verdict& verdict : verdicts) {
    passes += verdict.status == Status::pass;
    declined += verdict.status == Status::not_supported;
  }
  const size_t wrong = verdicts.size() - passes - declined;
  std::string text = conclusion.path.string() + ": " + grouped(conclusion.tensors) +
                     (conclusion.tensors == 1 ? " tensor, " : " tensors, ") +
                     (conclusion.quantized == 0 ? "none" : grouped(conclusion.quantized)) + " quantized; " +
                     grouped(passes) + (passes == 1 ? " check passed" : " checks passed");
  if (wrong != 0) text += ", " + grouped(wrong) + " failed";
  if (declined != 0) text += ", " + grouped(declined) + " not supported";
  out.blank();
  if (conclusion.failed) return out.text("NOT SOUND: " + text, 0, Ink::red);
  if (!conclusion.is_judged) return out.text("NOT JUDGED: " + text, 0, Ink::yellow);
  out.text("SOUND: " + text, 0, Ink::green);
}

void print_refusal(const std::filesystem::path& path, const Refusal& refusal, Printout& out) {
  out.text("NOT SOUND: " + path.string() + ": refused (" + std::string(refusal_class_name(refusal.cls)) + ")",
           0, Ink::red);
}

}  // namespace qcts::cli
