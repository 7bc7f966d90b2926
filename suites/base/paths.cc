// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/paths.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace qcts {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> above(fs::path folder) {
  for (;; folder = folder.parent_path()) {
    for (const fs::path& root : {folder, folder / "share" / "qcts"})
      if (fs::is_directory(root / "suites" / "plans")) return root;
    if (folder == folder.root_path() || folder.empty()) return std::nullopt;
  }
}

std::vector<fs::path> plugin_folders() {
  const fs::path lib = executable_path().parent_path().parent_path() / "lib";
  return {lib / "plugins", lib / "qcts" / "plugins"};
}

}  // namespace

fs::path executable_path() { return fs::read_symlink("/proc/self/exe"); }

fs::path program_path() {
  const fs::path self = executable_path();
  if (self.filename() == "qcts") return self;
  const fs::path neighbour = self.parent_path() / "qcts";
  if (!fs::exists(neighbour)) throw std::runtime_error("no qcts program next to " + self.string());
  return neighbour;
}

fs::path repository_root() {
  if (const char* root = std::getenv("QCTS_ROOT"); root != nullptr && *root != '\0') return root;
  if (const auto found = above(executable_path().parent_path())) return *found;
  if (const auto found = above(fs::current_path())) return *found;
  throw std::runtime_error("no folder with suites/plans above " + executable_path().string() +
                           ": set QCTS_ROOT");
}

fs::path fixtures_folder() { return repository_root() / "fixtures"; }
fs::path targets_folder() { return repository_root() / "suites" / "targets"; }

std::vector<std::string> plan_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(repository_root() / "suites" / "plans"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path plan_path(const std::string& name) {
  if (name.find('/') != name.npos || name.ends_with(".json")) return name;
  return repository_root() / "suites" / "plans" / (name + ".json");
}

std::vector<fs::path> discovered_plugins() {
  std::vector<fs::path> found;
  std::error_code none;
  for (const fs::path& folder : plugin_folders())
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
      if (entry.path().extension() == ".so") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<fs::path> cuda_plugin() {
  for (const fs::path& folder : plugin_folders())
    if (const fs::path plugin = folder / "cuda" / "libqcts_cuda.so"; fs::exists(plugin)) return plugin;
  return std::nullopt;
}

std::optional<fs::path> cuda_clock() {
  if (const char* named = std::getenv("QCTS_CUDA_CLOCK"); named != nullptr && named[0] != '\0') return named;
  for (const fs::path& folder : plugin_folders())
    if (const fs::path clock = folder / "cuda" / "libqcts_cudaclock.so"; fs::exists(clock)) return clock;
  return std::nullopt;
}

fs::path builtin_library() {
  const fs::path file = fs::path("builtin") / "libqcts_builtin.so";
  for (const fs::path& folder : plugin_folders())
    if (const fs::path library = folder.parent_path() / file; fs::exists(library)) return library;
  throw std::runtime_error("no " + file.string() + " next to the folder " +
                           plugin_folders().front().string());
}

bool is_shared_library(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".so") || name.find(".so.") != name.npos;
}

std::string path_word(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const fs::path relative = absolute.lexically_relative(fs::current_path());
  if (relative.empty() || *relative.begin() == "..") return absolute.string();
  const std::string word = relative.string();
  return word.find('/') == word.npos ? "./" + word : word;
}

std::string program_word() { return shell_word(path_word(program_path())); }

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.,:=@%+-";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "qcts.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": " + std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace qcts
