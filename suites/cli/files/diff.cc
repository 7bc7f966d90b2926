// SPDX-License-Identifier: BSD-3-Clause
// qcts diff A B: are two checkpoints equal in meaning (E1), in all that they hold (E2), in bytes (E3)?
// Tensors are matched by name, whatever their order, container and dialect.
// qcts diff DENSE QUANTIZED --error: how far are the quantized weights from their originals?
#include <algorithm>
#include <iostream>
#include <memory>

#include <unistd.h>

#include "reference/comparison/content.h"
#include "reference/comparison/meaning.h"
#include "suites/base/json_document.h"
#include "suites/base/terminal.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/error_table.h"
#include "suites/cli/files/file_command.h"
#include "suites/judge/files/payload.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct DiffArguments {
  FileOptions options;
  std::string a, b, pack_a, pack_b;
  bool strict = false, all = false, error = false;
};

std::vector<std::shared_ptr<const MappedFile>> files_of(const Checkpoint& checkpoint) {
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (const auto& zip : checkpoint.zips) files.push_back(zip->file);
  for (const auto& legacy : checkpoint.legacies) files.push_back(legacy->file);
  for (const auto& file : checkpoint.safetensors) files.push_back(file->file);
  for (const auto& file : checkpoint.ggufs) files.push_back(file->file);
  if (checkpoint.script) files.push_back(checkpoint.script->file);
  return files;
}

// Compares one window after the other, whose pages are then given back.
bool has_same_bytes(const MappedFile& a, const MappedFile& b) {
  constexpr size_t kWindow = size_t{64} << 20;
  const auto left = a.bytes(), right = b.bytes();
  if (left.size() != right.size()) return false;
  for (size_t at = 0; at < left.size(); at += kWindow) {
    const size_t size = std::min(kWindow, left.size() - at);
    if (!std::ranges::equal(left.subspan(at, size), right.subspan(at, size))) return false;
    a.release_pages();
    b.release_pages();
  }
  return true;
}

ContentDifferences compare_bytes(const Content& a, const Content& b) {
  ContentDifferences found;
  auto left = files_of(a.checkpoint), right = files_of(b.checkpoint);
  for (const BesideFile& file : a.beside) left.push_back(file.file);
  for (const BesideFile& file : b.beside) right.push_back(file.file);
  if (left.size() != right.size())
    found.add({"", "number of files", std::to_string(left.size()), std::to_string(right.size())});
  for (size_t i = 0; i < std::min(left.size(), right.size()) && found.empty(); ++i) {
    if (has_same_bytes(*left[i], *right[i])) continue;
    const std::string name = left.size() > 1 ? fs::path(left[i]->path()).filename().string() : "file";
    if (const auto mismatch = compare_files(name, left[i]->bytes(), right[i]->bytes()))
      found.add({"", mismatch->where, mismatch->want, mismatch->got, mismatch->count, mismatch->total});
  }
  return found;
}

Json difference_json(const ContentDifference& difference) {
  return {{"path", difference.path}, {"field", difference.field}, {"a", difference.a},
          {"b", difference.b},       {"count", difference.count}, {"total", difference.total}};
}

Json list_json(const ContentDifferences& differences) {
  Json list = Json::array();
  for (const ContentDifference& difference : differences.kept()) list.push_back(difference_json(difference));
  return list;
}

// true, false, or null where nothing differs but something could not be compared.
Json verdict(const ContentDifferences& differences, bool undecided) {
  if (!differences.empty()) return false;
  return undecided ? Json(nullptr) : Json(true);
}

Json equality_json(const ContentDifferences& differences, const std::vector<std::string>& undecided) {
  return {{"equal", verdict(differences, !undecided.empty())},
          {"differing", differences.count()},
          {"first", differences.empty() ? Json(nullptr) : difference_json(differences.kept().front())},
          {"differences", list_json(differences)},
          {"undecided", undecided}};
}

void print_list(const ContentDifferences& differences, bool all, Printout& out) {
  constexpr size_t kShown = 20;
  const size_t shown = all ? differences.kept().size() : std::min(kShown, differences.kept().size());
  for (size_t i = 0; i < shown; ++i) {
    const ContentDifference& difference = differences.kept()[i];
    std::string text = difference.where() + ": " + difference.a + " | " + difference.b;
    if (difference.count > 1)
      text += " (" + std::to_string(difference.count) + " of " + std::to_string(difference.total) + ")";
    out.text(text, 2);
  }
  if (differences.count() > shown)
    out.text("and " + std::to_string(differences.count() - shown) + " more" + (all ? "" : ": --all"), 2);
}

void print_equality(const char* title, const ContentDifferences& differences,
                    const std::vector<std::string>& undecided, bool all, Printout& out) {
  constexpr size_t kTitle = 12, kLabel = 23;
  const std::string label = title + std::string(kTitle - std::string_view(title).size(), ' ');
  const std::string places =
      std::to_string(differences.count()) + (differences.count() == 1 ? " place" : " places");
  if (!differences.empty())
    out.item(label + "differs", kLabel, "in " + places);
  else if (undecided.empty())
    out.item(label, kTitle, "equal");
  else
    out.item(label + "undecided", kLabel, undecided.front());
  print_list(differences, all, out);
}

// The quantization error, which has no right or wrong: 0, or 3 if no weight was compared.
int print_error(const DiffArguments& words, const QuantizationErrors& errors) {
  if (words.options.json) {
    Json json = {{"a", words.a}, {"b", words.b}};
    json.update(error_json(errors));
    print_json("error", json);
  } else {
    Printout out(screen_of(STDOUT_FILENO));
    print_errors(errors, out);
    std::cout << out.str();
  }
  if (errors.layers.empty())
    print_notes({words.b + " has no quantized weight that can be compared with " + words.a});
  return errors.layers.empty() ? 3 : 0;
}

// Equal bytes are equal whatever they mean, so that weights of an unknown pack are compared too.
std::string layout_to_compare(const Checkpoint& checkpoint, const std::string& asked) {
  std::string why_not;
  std::string layout = layout_if_shown(checkpoint, asked, why_not);
  if (!why_not.empty()) print_notes({why_not});
  return layout;
}

int run_diff(const DiffArguments& words) {
  for (const std::string& pack : {words.pack_a, words.pack_b})
    if (!pack.empty()) cpu_layout(pack);
  const Checkpoint a = open_checkpoint(words.a, words.options.open),
                   b = open_checkpoint(words.b, words.options.open);
  for (const Checkpoint* side : {&a, &b}) {
    std::vector<std::string> notes;
    for (const std::string& note : side->warnings) notes.push_back(side->path.string() + ": " + note);
    print_notes(notes);
  }
  const std::string pack_b = words.pack_b.empty() ? words.pack_a : words.pack_b;
  if (words.error)
    return print_error(words,
                       quantization_errors(a, b, assumed_layout(a, words.pack_a), assumed_layout(b, pack_b)));
  const std::string layout_a = layout_to_compare(a, words.pack_a), layout_b = layout_to_compare(b, pack_b);
  const Content left = content_of(a, layout_a), right = content_of(b, layout_b);
  const MeaningFindings e1 = compare_meaning(a, b, layout_a, layout_b);
  ContentFindings found = compare_content(left, right);
  if (words.strict) found = strictly(std::move(found));
  const ContentDifferences e3 = compare_bytes(left, right);
  if (words.options.json) {
    const Json json = {{"a", words.a},
                       {"b", words.b},
                       {"strict", words.strict},
                       {"e1", equality_json(e1.different, e1.undecided)},
                       {"e2", equality_json(found.different, {})},
                       {"e3", equality_json(e3, {})},
                       {"spelling", list_json(found.spelling)},
                       {"not_comparable", list_json(found.not_comparable)}};
    print_json("diff", json);
  } else {
    Printout out(screen_of(STDOUT_FILENO));
    print_equality("E1 meaning", e1.different, e1.undecided, words.all, out);
    print_equality("E2 content", found.different, {}, words.all, out);
    print_equality("E3 file", e3, {}, words.all, out);
    if (!found.spelling.empty()) out.text("equal, spelled differently:");
    print_list(found.spelling, words.all, out);
    if (!found.not_comparable.empty() && !words.strict)
      out.text("not comparable, because the other format cannot hold it:");
    if (!words.strict) print_list(found.not_comparable, words.all, out);
    std::cout << out.str();
  }
  return found.different.empty() ? 0 : 1;
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<DiffArguments>();
  CLI::App* command =
      app.add_subcommand("diff",
                         "say whether two checkpoints are equal in meaning, in content and "
                         "in bytes: exit code 1 if their content differs, 5 if one cannot be read");
  command->add_option("A", words->a, "a file or a directory")->required();
  command->add_option("B", words->b, "a file or a directory")->required();
  command->add_option(
      "--cpu-pack", words->pack_a,
      "the CPU layout of packed int4 weights, if A does not record it: avx512, avx2 or default");
  command->add_option("--cpu-pack-b", words->pack_b, "the same, for B only");
  CLI::Option* strict = command->add_flag("--strict", words->strict,
                                          "count anything that one of the two cannot store as a difference");
  CLI::Option* all =
      command->add_flag("--all", words->all, "show every difference, not only the first twenty of each list");
  command
      ->add_flag("--error", words->error,
                 "B was quantized from A: show each layer's SQNR, largest error, saturated codes and zero "
                 "groups, and what only one of them has; never fail")
      ->excludes(strict)
      ->excludes(all);
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    bool compared = false;
    const int code = guarded(words->options.json, [&] {
      const int result = run_diff(*words);
      compared = true;
      return result;
    });
    exit_code = code == 1 && !compared ? 5 : code;  // 1 says that the contents differ, and nothing else does
  });
}

}  // namespace qcts::cli
