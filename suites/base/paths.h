// SPDX-License-Identifier: BSD-3-Clause
// Paths of the program and its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace qcts {

std::filesystem::path executable_path();  // with symlinks resolved
// Returns the qcts program that workers run: this process, or the program next to it if this one is a test or
// a benchmark.
std::filesystem::path program_path();
// Returns QCTS_ROOT if set, otherwise the nearest folder above the executable, or else above the working
// directory, that holds suites/plans (share/qcts/suites/plans in an installation). Throws std::runtime_error.
std::filesystem::path repository_root();
std::filesystem::path fixtures_folder();  // <root>/fixtures
std::filesystem::path targets_folder();   // <root>/suites/targets
// Returns <root>/suites/plans/NAME.json for NAME; anything with a slash or ".json" is a path.
std::filesystem::path plan_path(const std::string& name);
std::vector<std::string> plan_names();
// Lists the shared libraries in ../lib/plugins and ../lib/qcts/plugins relative to the executable's folder,
// sorted.
std::vector<std::filesystem::path> discovered_plugins();
// The plug-in with kernels for CUDA devices, in the folder cuda of one of these folders; none if it was not
// built.
std::optional<std::filesystem::path> cuda_plugin();

// Returns whether the path ends in .so, or in .so with a version.
bool is_shared_library(const std::filesystem::path& path);

// Returns the path as a command in the current folder would write it: relative if it is inside that folder,
// otherwise absolute. Always contains a slash, so that it is not taken for a name.
std::string path_word(const std::filesystem::path& path);
std::string program_word();  // path_word of program_path(), quoted
// Quotes the text for a shell if necessary.
std::string shell_word(const std::string& text);

// A new folder in the system's temporary folder; the destructor removes it with its contents.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace qcts
