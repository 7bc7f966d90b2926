// qcts resave IN OUT: the same checkpoint, written anew from what was parsed.
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <system_error>

#include <unistd.h>

#include "suites/cli/commands.h"
#include "suites/cli/file_command.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> rebuilt(const TorchZip& zip, std::vector<std::string>& notes) {
  RebuildNotes kept;
  std::vector<std::byte> bytes = rebuild_torch_zip(zip, &kept);
  const std::string path = zip.file->path();
  if (kept.kept_file) notes.push_back(path + ": another writer's container; its bytes were taken over");
  if (kept.kept_pickle) notes.push_back(path + ": another pickler's spelling; data.pkl was taken over");
  if (kept.kept_serialization_id)
    notes.push_back(path + ": another library's serialization_id; it was taken over");
  return bytes;
}

// Shards rebuilt, every other file copied, in a new folder that gets its name last.
void resave_directory(const Checkpoint& checkpoint, const fs::path& out, std::vector<std::string>& notes) {
  if (fs::exists(out)) throw UsageError(out.string() + ": exists; the copy of a directory needs a new name");
  const fs::path partial =
      out.parent_path() / ("." + out.filename().string() + "." + std::to_string(getpid()) + ".part");
  std::error_code ignored;
  try {
    fs::create_directory(partial);
    std::set<fs::path> written;
    const auto write = [&](const std::string& source, const std::vector<std::byte>& bytes) {
      const fs::path name = fs::relative(source, checkpoint.path);
      fs::create_directories((partial / name).parent_path());
      save_file(partial / name, bytes);
      written.insert(name);
    };
    for (const auto& zip : checkpoint.zips) write(zip->file->path(), rebuilt(*zip, notes));
    for (const auto& file : checkpoint.safetensors) write(file->file->path(), rebuild_safetensors(*file));
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(checkpoint.path)) {
      const fs::path name = fs::relative(entry.path(), checkpoint.path);
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

}  // namespace

void add_resave(CLI::App& app, int& exit_code) {
  struct Words {
    FileOptions options;
    std::string in, out;
  };
  auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("resave", "write a checkpoint anew from what was parsed; byte-identical");
  command->add_option("IN", words->in, "a file, or a directory with config.json and shards")->required();
  command->add_option("OUT", words->out, "the copy, in the same format")->required();
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    exit_code = guarded(words->options.json, [&] {
      const Checkpoint checkpoint = open_checkpoint(words->in, words->options.open);
      if (checkpoint.format == Format::torchscript)
        throw UsageError(words->in + ": a TorchScript archive, which is read here and not written");
      std::vector<std::string> notes = checkpoint.warnings;
      if (checkpoint.format == Format::directory)
        resave_directory(checkpoint, words->out, notes);
      else if (checkpoint.format == Format::torch_zip)
        save_file(words->out, rebuilt(*checkpoint.zips.front(), notes));
      else
        save_file(words->out, rebuild_safetensors(*checkpoint.safetensors.front()));
      if (words->options.json)
        std::cout
            << nlohmann::ordered_json{{"out", words->out}, {"format", format_name(checkpoint.format)}}.dump(2)
            << "\n";
      print_notes(notes);
      return 0;
    });
  });
}

}  // namespace qcts::cli
