// SPDX-License-Identifier: BSD-3-Clause
// qcts resave IN OUT: writes the same checkpoint again from its parsed form, piece by piece.
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <system_error>

#include <unistd.h>

#include "reference/formats/torch/compact.h"
#include "suites/base/json_document.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;

struct ResaveArguments {
  FileOptions options;
  std::string in, out;
  bool compact = false;
};

void note_kept(const std::string& path, const RebuildNotes& kept, std::vector<std::string>& notes) {
  if (kept.kept_file) notes.push_back(path + ": another writer's container; its bytes were taken over");
  if (kept.kept_pickle) notes.push_back(path + ": another pickler's spelling; its pickle was taken over");
  if (kept.kept_serialization_id)
    notes.push_back(path + ": another library's serialization_id; it was taken over");
}

// Saves every file of a checkpoint again, under the name that `name_of` returns.
class Saver {
 public:
  Saver(const Checkpoint& checkpoint, bool compact, std::vector<std::string>& notes)
      : checkpoint_(checkpoint), compact_(compact), notes_(notes) {}

  void save(const std::function<fs::path(const MappedFile&)>& name_of) {
    for (const auto& zip : checkpoint_.zips) save_one(*zip, rebuild_zip, name_of);
    for (const auto& legacy : checkpoint_.legacies) save_one(*legacy, rebuild_legacy, name_of);
    for (const auto& file : checkpoint_.safetensors)
      save_file(name_of(*file->file), [&](ByteSink& sink) { rebuild_safetensors(*file, sink); });
    for (const auto& file : checkpoint_.ggufs)
      save_file(name_of(*file->file), [&](ByteSink& sink) { rebuild_gguf(*file, sink); });
  }

  const CompactReport& report() const { return report_; }

 private:
  static void rebuild_zip(const TorchZip& zip, ByteSink& sink, RebuildNotes* kept) {
    rebuild_torch_zip(zip, sink, kept);
  }
  static void rebuild_legacy(const TorchLegacy& legacy, ByteSink& sink, RebuildNotes* kept) {
    rebuild_torch_legacy(legacy, sink, kept);
  }

  template <typename File>
  void save_one(const File& file, void (*rebuild)(const File&, ByteSink&, RebuildNotes*),
                const std::function<fs::path(const MappedFile&)>& name_of) {
    RebuildNotes kept;
    save_file(name_of(*file.file), [&](ByteSink& sink) {
      if (compact_)
        rebuild(compacted(file, report_), sink, &kept);
      else
        rebuild(file, sink, &kept);
    });
    note_kept(file.file->path(), kept, notes_);
  }

  const Checkpoint& checkpoint_;
  bool compact_;
  std::vector<std::string>& notes_;
  CompactReport report_;
};

// Writes shards again and copies the other files into a new folder, which is renamed to OUT at the end.
void resave_directory(const Checkpoint& checkpoint, Saver& saver, const fs::path& out) {
  if (fs::exists(out)) throw UsageError(out.string() + ": exists; the copy of a directory needs a new name");
  const fs::path partial =
      out.parent_path() / ("." + out.filename().string() + "." + std::to_string(getpid()) + ".part");
  std::error_code ignored;
  try {
    fs::create_directory(partial);
    std::set<fs::path> written;
    saver.save([&](const MappedFile& source) {
      // Compares names, because a shard may be a link into the hub's cache.
      const fs::path name = fs::path(source.path()).lexically_relative(checkpoint.path);
      fs::create_directories((partial / name).parent_path());
      written.insert(name);
      return partial / name;
    });
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(checkpoint.path)) {
      const fs::path name = entry.path().lexically_relative(checkpoint.path);
      if (entry.is_directory()) fs::create_directories(partial / name);
      if (entry.is_regular_file() && !written.contains(name)) fs::copy_file(entry.path(), partial / name);
    }
    fs::rename(partial, out);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(partial, ignored);
    throw WriteFailure(error.what());
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
}

// Readers that go by the ending would misread the copy.
void check_ending(const Checkpoint& checkpoint, const std::string& out) {
  const std::string ending = fs::path(out).extension().string();
  const bool names_pickle = ending == ".pt" || ending == ".pth" || ending == ".bin" || ending == ".ckpt";
  const bool is_safetensors = checkpoint.format == Format::safetensors,
             is_gguf = checkpoint.format == Format::gguf;
  if ((names_pickle && (is_safetensors || is_gguf)) || (ending == ".safetensors" && !is_safetensors) ||
      (ending == ".gguf" && !is_gguf))
    throw UsageError(out + ": '" + ending + "' is not an ending of " +
                     std::string(format_name(checkpoint.format)) + ", the format that resave keeps");
}

int resave(const ResaveArguments& words) {
  const Checkpoint checkpoint = open_checkpoint(words.in, words.options.open);
  if (checkpoint.format == Format::torchscript)
    throw UsageError(words.in + ": a TorchScript archive, which qcts reads but does not write");
  if (checkpoint.format == Format::gguf && checkpoint.ggufs.size() > 1)
    throw UsageError(words.in + ": the first of " + std::to_string(checkpoint.ggufs.size()) +
                     " parts; pass the folder that holds them, and a new one");
  if (checkpoint.format != Format::directory) check_ending(checkpoint, words.out);
  print_findings(checkpoint);
  std::vector<std::string> notes;
  Saver saver(checkpoint, words.compact, notes);
  if (checkpoint.format == Format::directory)
    resave_directory(checkpoint, saver, words.out);
  else
    saver.save([&](const MappedFile&) { return fs::path(words.out); });
  nlohmann::ordered_json report = {{"out", words.out}, {"format", format_name(checkpoint.format)}};
  if (words.compact) {
    report["dropped_bytes"] = saver.report().dropped_bytes;
    report["changed_storages"] = saver.report().changed_storages;
  }
  if (words.options.json) print_json("resave", report);
  print_written(words.out, words.options.json);
  print_notes(notes);
  return 0;
}

}  // namespace

void add_resave(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<ResaveArguments>();
  CLI::App* command = app.add_subcommand("resave", "parse a checkpoint and write it again, byte-identical");
  command->add_option("IN", words->in, "a file, or a directory with config.json and shards")->required();
  command->add_option("OUT", words->out, "the copy, in the same format")->required();
  command->add_flag("--compact", words->compact,
                    "leave out storage bytes that no tensor uses; views stay shared");
  add_file_options(*command, words->options);
  command->callback(
      [words, &exit_code] { exit_code = guarded(words->options.json, [&] { return resave(*words); }); });
}

}  // namespace qcts::cli
