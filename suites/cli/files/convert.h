// SPDX-License-Identifier: BSD-3-Clause
// Parts of `qcts convert`: the request, and outputs that get their names when they are complete.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "reference/dialects/checkpoint.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {

struct ConvertArguments {
  FileOptions options;
  std::string in, out;
  std::string to;       // the target: a dialect, "torchao", "compressed_tensors" or "dense"
  std::string dialect;  // the dialect of OUT where `to` is one, or where `as` needs one
  std::string as;       // "torchao_v2": classes of today
  bool strict = false;
  std::string pack;             // the CPU's layout that --to dense assumes, as --cpu-pack of dequantize
  bool other_rounding = false;  // weights of equal real values may dequantize to other bits
};

// Throws Failure if a pickle holds more than a dict of tensors, which safetensors cannot hold.
void require_names_and_tensors(const Checkpoint& checkpoint);
// Throws UsageError unless OUT has the ending of a pickle or of safetensors.
void require_ending(const std::string& out);
bool ends_as_safetensors(const std::string& out);

// Opens the file that would become OUT, under the name `written`. Throws Failure if it is refused.
Checkpoint read_back(const std::filesystem::path& written, const ConvertArguments& words);

// Copies the files next to the weights into a folder, without those in `left_out`.
// Throws Failure for a file with the name of one in `written`.
void copy_beside(const Checkpoint& checkpoint, const std::filesystem::path& folder,
                 const std::set<std::string>& left_out, const std::set<std::string>& written);

// An unfinished output next to OUT. The destructor removes it unless it was renamed.
class Part {
 public:
  Part(const std::filesystem::path& out, const std::string& ending);
  ~Part();
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  const std::filesystem::path& path() const { return path_; }
  // Throws WriteFailure.
  void rename(const std::filesystem::path& out);

 private:
  std::filesystem::path path_;
};

// Carries out --as torchao_v2 for pickles: a file, or a folder of one or more shards. Returns the exit code.
int convert_to_today(const Checkpoint& checkpoint, const ConvertArguments& words);

// Carry out --to dense, --to compressed_tensors, and --to torchao for weights of other libraries
// (transcode/). Each returns the exit code. Each throws Failure for what the target cannot hold.
int convert_to_dense(const Checkpoint& checkpoint, const ConvertArguments& words);
int convert_to_compressed_tensors(const Checkpoint& checkpoint, const ConvertArguments& words);
int convert_to_torchao(const Checkpoint& checkpoint, const ConvertArguments& words);

}  // namespace qcts::cli
