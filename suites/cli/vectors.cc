// SPDX-License-Identifier: BSD-3-Clause
// qcts vectors export, qcts vectors check: vectors for implementations that never link qcts.
#include "suites/vectors/vectors.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "reference/formats/io/mapped_file.h"
#include "suites/base/json_document.h"
#include "suites/base/paths.h"
#include "suites/base/run_error.h"
#include "suites/base/terminal.h"
#include "suites/cli/command_line.h"
#include "suites/cli/commands.h"
#include "suites/vectors/agreement.h"
#include "suites/vectors/answers.h"
#include "suites/vectors/write.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kSchemaFile = "vectors.schema.json", *kAgreementFile = "agreement.json";

struct VectorsArguments {
  std::string schemes, out, file;
  bool json = false;
};

std::filesystem::path vectors_folder() { return repository_root() / "suites" / "vectors"; }

std::string of_words(size_t part, size_t all) {
  return with_commas(static_cast<double>(part)) + " of " + with_commas(static_cast<double>(all));
}

// The files of one scheme, as written.
struct ExportedScheme {
  std::string name;
  size_t vectors = 0, bytes = 0;
  std::map<std::string, std::pair<size_t, size_t>> agreeing;  // of a library: agreeing, asked
  std::map<std::string, std::map<std::string, size_t>>
      by_choice;  // of a library: how many differ by an option
};

size_t write_to(const std::filesystem::path& file, const std::string& text) {
  try {
    write_file_atomically(file, std::as_bytes(std::span(text)));
  } catch (const IoError& error) {
    throw WriteFailure(file.string() + " cannot be written: " + error.what());
  }
  return text.size();
}

std::filesystem::path made_folder(const std::string& out) {
  std::error_code failed;
  std::filesystem::create_directories(out, failed);
  if (failed) throw WriteFailure(out + " cannot be made: " + failed.message());
  return out;
}

ExportedScheme export_scheme(const Scheme& scheme, const Fixtures& fixtures, const AgreementTable& agreement,
                             const std::filesystem::path& folder) {
  const std::vector<VectorGroup> groups = make_vectors(scheme, fixtures);
  ExportedScheme done;
  done.name = scheme.name();
  for (const VectorGroup& group : groups) {
    done.vectors += group.vectors.size();
    for (const Agreement* row : agreement.of(group)) {
      auto& [agreeing, asked] = done.agreeing[row->library];
      agreeing += row->asked - row->differing.size();
      asked += row->asked;
      for (const auto& [choice, ids] : row->by_choice) done.by_choice[row->library][choice] += ids.size();
    }
    for (const std::string& library : agreement.outdated(group))
      std::cerr << "qcts: note: whether " << library << " agrees on " << scheme.name()
                << " was measured on other vectors: scripts/vector_agreement measures again\n";
  }
  done.bytes = write_to(folder / (done.name + ".json"), vectors_json(groups, agreement)) +
               write_to(folder / (done.name + ".tsv"), vectors_text(groups));
  return done;
}

Json exported_json(const std::vector<ExportedScheme>& all, const std::string& out, size_t bytes) {
  Json rows = Json::array();
  for (const ExportedScheme& one : all) {
    Json agreeing = Json::object();
    for (const auto& [library, counts] : one.agreeing)
      agreeing[library] = {{"agreeing", counts.first}, {"asked", counts.second}};
    for (const auto& [library, by_choice] : one.by_choice) agreeing[library]["by_choice"] = by_choice;
    rows.push_back(
        {{"scheme", one.name}, {"vectors", one.vectors}, {"bytes", one.bytes}, {"agree", agreeing}});
  }
  return {{"out", out}, {"bytes", bytes}, {"schemes", rows}};
}

void print_exported(const std::vector<ExportedScheme>& all, const std::string& out, size_t bytes) {
  Printout text(screen_of(STDOUT_FILENO));
  size_t vectors = 0;
  for (const ExportedScheme& one : all) {
    std::string line = one.name + ": " + with_commas(static_cast<double>(one.vectors)) + " vectors, " +
                       with_commas(static_cast<double>(one.bytes)) + " bytes";
    for (const auto& [library, counts] : one.agreeing) {
      line += "; " + library + " agrees on " + of_words(counts.first, counts.second);
      if (const auto found = one.by_choice.find(library); found != one.by_choice.end())
        for (const auto& [choice, count] : found->second)
          line += ", " + with_commas(static_cast<double>(count)) + " others are " + choice;
    }
    text.text(line);
    vectors += one.vectors;
  }
  text.text("wrote " + with_commas(static_cast<double>(vectors)) + " vectors of " +
            with_commas(static_cast<double>(all.size())) + (all.size() == 1 ? " scheme, " : " schemes, ") +
            with_commas(static_cast<double>(bytes)) + " bytes, below " + out);
  std::cout << text.str();
}

Outcome export_vectors(const VectorsArguments& words) {
  const std::vector<const Scheme*> chosen = schemes_matching(words.schemes);
  const AgreementTable agreement = read_agreement(vectors_folder() / kAgreementFile);
  const Fixtures fixtures = load_fixtures(fixtures_folder());
  const std::filesystem::path folder = made_folder(words.out);
  const std::shared_ptr<const MappedFile> schema = MappedFile::open(vectors_folder() / kSchemaFile);
  size_t bytes =
      write_to(folder / kSchemaFile,
               std::string(reinterpret_cast<const char*>(schema->bytes().data()), schema->bytes().size()));
  std::vector<ExportedScheme> all;
  for (const Scheme* scheme : chosen) {
    all.push_back(export_scheme(*scheme, fixtures, agreement, folder));
    bytes += all.back().bytes;
  }
  if (words.json)
    print_json("vectors_export", exported_json(all, words.out, bytes));
  else
    print_exported(all, words.out, bytes);
  return Outcome::conformant;
}

Json part_json(const GroupJudgement& group, AnswerPart part) {
  const PartScore& score = group.parts[static_cast<size_t>(part)];
  return {{"answered", score.answered}, {"right", score.right}};
}

Json judgement_json(const std::string& file, const std::vector<GroupJudgement>& groups, Outcome outcome) {
  Json rows = Json::array();
  for (const GroupJudgement& group : groups) {
    Json wrong = Json::array(), flags = Json::array();
    for (const VectorFlag flag : group.flags_of_all_wrong()) flags.push_back(flag_name(flag));
    for (const WrongAnswer& one : group.wrong)
      wrong.push_back({{"id", one.id},
                       {"part", part_name(one.part)},
                       {"difference", one.what},
                       {"hunts", one.hunts},
                       {"choices", one.choices}});
    rows.push_back({{"scheme", group.scheme->name()},
                    {"dtype", dtype_name(group.dtype)},
                    {"vectors", group.vectors},
                    {"codes", part_json(group, AnswerPart::codes)},
                    {"scales", part_json(group, AnswerPart::scales)},
                    {"outputs", part_json(group, AnswerPart::outputs)},
                    {"wrong", wrong},
                    {"flags_of_all_wrong", flags},
                    {"computes", group.computes},
                    {"missing", group.missing}});
  }
  return {{"file", file},
          {"verdict", outcome == Outcome::conformant ? "right"
                      : outcome == Outcome::failed   ? "wrong"
                                                     : "incomplete"},
          {"groups", rows}};
}

void print_group(const GroupJudgement& group, Printout& out) {
  constexpr size_t kShown = 5;
  std::string line = std::string(group.scheme->name()) + ", " + std::string(dtype_name(group.dtype)) + ": ";
  for (size_t part = 0; part < kAnswerParts; ++part) {
    const PartScore& score = group.parts[part];
    line += (part == 0 ? "" : "; ") + std::string(part_name(static_cast<AnswerPart>(part))) + " " +
            (score.answered == 0 ? "not answered" : "right in " + of_words(score.right, group.vectors));
  }
  out.text(line);
  for (size_t i = 0; i < std::min(kShown, group.wrong.size()); ++i) {
    const WrongAnswer& wrong = group.wrong[i];
    out.text(wrong.id + ": " + std::string(part_name(wrong.part)) + ": " + wrong.what, 2, Ink::red);
    out.text("hunts: " + wrong.hunts, 4);
    for (const std::string& choice : wrong.choices) out.text("that is " + choice + " of the ledger", 4);
  }
  for (const std::string& option : group.computes)
    out.text("all finite vectors have the codes and scales of " + option, 2);
  for (const VectorFlag flag : group.flags_of_all_wrong())
    out.text("every wrong one has the flag " + std::string(flag_name(flag)) + ", which hunts " +
                 std::string(vector_flags()[static_cast<size_t>(flag)].hunts),
             2);
  if (group.wrong.size() > kShown)
    out.text("and " + with_commas(static_cast<double>(group.wrong.size() - kShown)) + " more (--json)", 2);
  if (!group.missing.empty())
    out.text(with_commas(static_cast<double>(group.missing.size())) + " without a full answer, first " +
                 group.missing.front(),
             2);
}

Outcome verdict_of(const std::vector<GroupJudgement>& groups) {
  Outcome outcome = Outcome::conformant;
  for (const GroupJudgement& group : groups) {
    if (!group.wrong.empty()) return Outcome::failed;
    if (!group.missing.empty()) outcome = Outcome::nothing_proved;
  }
  return outcome;
}

Outcome check_answers(const VectorsArguments& words) {
  std::vector<GroupJudgement> groups;
  try {
    groups = judge_answers(read_answers(words.file), load_fixtures(fixtures_folder()));
  } catch (const std::exception& error) {
    throw RunError(Outcome::infrastructure, error.what());
  }
  const Outcome outcome = verdict_of(groups);
  if (words.json) {
    print_json("vectors_check", judgement_json(words.file, groups, outcome));
    return outcome;
  }
  Printout out(screen_of(STDOUT_FILENO));
  for (const GroupJudgement& group : groups) print_group(group, out);
  out.text(outcome == Outcome::conformant ? "RIGHT: every answer matches its vector"
           : outcome == Outcome::failed   ? "WRONG"
                                          : "INCOMPLETE: what was answered is right");
  std::cout << out.str();
  return outcome;
}

}  // namespace

void add_vectors(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<VectorsArguments>();
  CLI::App* command = app.add_subcommand(
      "vectors", "test vectors (inputs and correct answers) as files, for programs that do not link qcts");
  command->require_subcommand(1);
  CLI::App* exporting = command->add_subcommand(
      "export", "write test vectors for schemes: NAME.json and NAME.tsv for each, and their JSON Schema");
  exporting->add_option("--scheme", words->schemes, "names or patterns with * and ?, separated by commas")
      ->required();
  exporting->add_option("--out", words->out, "folder to write to")->required();
  exporting->add_flag("--json", words->json, "print JSON");
  exporting->callback(
      [words, &exit_code] { exit_code = exit_code_of([&] { return export_vectors(*words); }); });
  CLI::App* checking = command->add_subcommand(
      "check",
      "judge answers that another program wrote in the format of the vectors: exit code 1 if one is wrong, 3 "
      "if a "
      "vector is missing from a scheme and type that was answered, 5 if the file cannot be read");
  checking->add_option("FILE", words->file, "JSON or tab-separated text with id, and codes, scales or y")
      ->required();
  checking->add_flag("--json", words->json, "print JSON");
  checking->callback(
      [words, &exit_code] { exit_code = exit_code_of([&] { return check_answers(*words); }); });
}

}  // namespace qcts::cli
