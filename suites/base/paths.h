// SPDX-License-Identifier: BSD-3-Clause
// Paths of the program and its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace qcts {

std::filesystem::path executable_path();  // with symlinks resolved
// Returns the path of the qcts program that workers run.
// The program is this process, or the one next to it if this process is a test or a benchmark.
std::filesystem::path program_path();
// Returns QCTS_ROOT if it is set. Otherwise returns the nearest folder that holds suites/plans.
// In an installation, this is share/qcts/suites/plans.
// The folder is searched above the executable, then above the working directory.
// Throws std::runtime_error if there is none.
std::filesystem::path repository_root();
std::filesystem::path fixtures_folder();  // <root>/fixtures
std::filesystem::path targets_folder();   // <root>/suites/targets
// Returns <root>/suites/plans/NAME.json for NAME. A name with a slash or ".json" is a path already.
std::filesystem::path plan_path(const std::string& name);
std::vector<std::string> plan_names();
// Returns the sorted shared libraries in two folders.
// Relative to the executable's folder, the two are ../lib/plugins and ../lib/qcts/plugins.
std::vector<std::filesystem::path> discovered_plugins();
// Returns the plug-in with kernels for CUDA devices. It is in the folder `cuda` of one of these folders.
// Returns nullopt if it was not built.
std::optional<std::filesystem::path> cuda_plugin();
// Returns the library whose kernels measure a GPU: QCTS_CUDA_CLOCK if it is set, or else
// libqcts_cudaclock.so next to cuda_plugin(). Returns nullopt if it was not built.
std::optional<std::filesystem::path> cuda_clock();

// Returns the library of the builtin kernels: builtin/libqcts_builtin.so, next to the plug-ins' folder.
// Throws std::runtime_error if there is none.
std::filesystem::path builtin_library();

// Returns true if the path ends in .so, or in .so with a version.
bool is_shared_library(const std::filesystem::path& path);

// Returns the path as a command in the current folder would write it.
// A path inside that folder becomes relative, any other path absolute.
// The result always contains a slash, so that it is not mistaken for a name.
std::string path_word(const std::filesystem::path& path);
std::string program_word();  // path_word() of program_path(), quoted
// Quotes the text for a shell, if necessary.
std::string shell_word(const std::string& text);

// A new folder in the system's temporary folder. The destructor removes it with its contents.
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
