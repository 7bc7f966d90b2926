// SPDX-License-Identifier: BSD-3-Clause
// Where the program finds its own things.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qcts {

std::filesystem::path executable_path();  // of this process, links resolved
// The qcts program that workers are made of: this process, or its neighbour when this one is a test or a
// benchmark.
std::filesystem::path program_path();
// QCTS_ROOT when set, else the nearest folder above the executable, then above the working directory, that
// holds suites/plans, or share/qcts/suites/plans where qcts is installed. Throws std::runtime_error.
std::filesystem::path repository_root();
std::filesystem::path fixtures_folder();  // <root>/fixtures
std::filesystem::path targets_folder();   // <root>/suites/targets
// NAME -> <root>/suites/plans/NAME.json; anything with a slash or ".json" is a path.
std::filesystem::path plan_path(const std::string& name);
std::vector<std::string> plan_names();
// Shared libraries in ../lib/plugins and ../lib/qcts/plugins beside the executable's folder, sorted.
std::vector<std::filesystem::path> discovered_plugins();

// Does it end in .so, or .so with a version?
bool is_shared_library(const std::filesystem::path& path);

// How a command typed in the current folder names the path: relative to the folder where it lies inside, else
// absolute. Always with a slash, so that it is taken for no name.
std::string path_word(const std::filesystem::path& path);
std::string program_word();  // path_word of program_path(), quoted
// Quoted for a shell where it needs to be.
std::string shell_word(const std::string& text);

// A fresh folder below the system's temporary one; removed with everything in it by the destructor.
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
