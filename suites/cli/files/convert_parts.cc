// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <system_error>

#include <unistd.h>

#include "reference/comparison/content.h"
#include "reference/comparison/layers.h"
#include "reference/comparison/words.h"
#include "reference/dialects/dialects.h"
#include "suites/base/did_you_mean.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/convert.h"

namespace qcts::cli {

namespace fs = std::filesystem;

namespace {

void require_dict_of_tensors(const std::string& file, const TorchObject& object) {
  if (is_tensor_node(object.root)) return;
  const std::optional<MappingParts> mapping = mapping_of(object.root);
  if (!mapping)
    throw Failure(file + ": it holds a " + value_text(object.root) +
                  ", but safetensors can hold only a dict of tensors");
  for (const auto& [key, value] : mapping->entries) {
    const std::string path = key_step(key, true);
    if (key->kind != pickle::Kind::string)
      throw Failure(file + ": the key " + value_text(key) + " is not a string, as safetensors requires");
    if (!is_tensor_node(value))
      throw Failure(file + ": '" + path + "' is not a tensor (" + value_text(value) +
                    "), but safetensors can hold only tensors");
  }
}

}  // namespace

void require_names_and_tensors(const Checkpoint& checkpoint) {
  for (const auto& zip : checkpoint.zips) require_dict_of_tensors(zip->file->path(), *zip);
  for (const auto& legacy : checkpoint.legacies) require_dict_of_tensors(legacy->file->path(), *legacy);
}

bool ends_as_safetensors(const std::string& out) { return fs::path(out).extension() == ".safetensors"; }

void require_ending(const std::string& out) {
  const std::vector<std::string> endings = {".pt", ".pth", ".bin", ".safetensors"};
  const std::string ending = fs::path(out).extension().string();
  if (std::find(endings.begin(), endings.end(), ending) == endings.end())
    throw UsageError("OUT '" + out + "' must end in .pt, .pth, .bin or .safetensors" +
                     did_you_mean(ending, endings));
}

Checkpoint read_back(const fs::path& written, const ConvertArguments& words) {
  OpenOptions options = words.options.open;
  options.dialect.clear();
  try {
    return open_checkpoint(written, options);
  } catch (const Refused& error) {
    throw Failure(words.in + ": what would be " + words.out + " could not be read (" +
                  describe(error.refusal()) + "), so it is not written");
  }
}

void copy_beside(const Checkpoint& checkpoint, const fs::path& folder, const std::set<std::string>& left_out,
                 const std::set<std::string>& written) {
  for (const BesideFile& file : files_beside(checkpoint)) {
    if (left_out.contains(file.name)) continue;
    if (written.contains(file.name))
      throw Failure(checkpoint.path.string() + ": " + file.name +
                    " is not read and would be replaced: move it away first");
    fs::create_directories((folder / file.name).parent_path());
    fs::copy_file(checkpoint.path / file.name, folder / file.name);
  }
}

Part::Part(const fs::path& out, const std::string& ending)
    : path_(out.parent_path() /
            ("." + out.stem().string() + "." + std::to_string(getpid()) + ".part" + ending)) {}

Part::~Part() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Part::rename(const fs::path& out) {
  std::error_code error;
  fs::rename(path_, out, error);
  if (error) throw WriteFailure(out.string() + ": rename: " + error.message());
}

}  // namespace qcts::cli
