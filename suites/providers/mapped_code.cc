// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/mapped_code.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/io/sha256.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kRuntime = {"ld-linux",     "libc.so",     "libm.so",
                                                      "libstdc++.so", "libgcc_s.so", "libpthread.so",
                                                      "libdl.so",     "librt.so",    "libmvec.so"};

bool is_system_runtime(const fs::path& path) {
  const std::string folder = path.parent_path().string(), name = path.filename().string();
  return (folder.starts_with("/lib") || folder.starts_with("/usr/lib")) &&
         std::ranges::any_of(kRuntime, [&](std::string_view each) { return name.starts_with(each); });
}

}  // namespace

std::string sha256_of(const MappedInode& file) {
  const int fd = ::open(file.first.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string sha256;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && status.st_ino == file.second) {
    try {
      sha256 = sha256_hex(MappedFile::open("/proc/self/fd/" + std::to_string(fd))->bytes());
    } catch (const std::exception&) {  // it cannot be read, which the caller says
    }
  }
  ::close(fd);
  return sha256;
}

std::vector<MappedInode> MappedCode::added(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::error_code none;
  const fs::path program = fs::read_symlink(folder + "/exe", none);
  std::vector<MappedInode> files;
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, permissions, offset, device, path;
    uint64_t inode = 0;
    words >> range >> permissions >> offset >> device >> inode >> std::ws;
    std::getline(words, path);
    if (permissions.size() < 3 || permissions[2] != 'x' || inode == 0 || path == program) continue;
    if (!is_system_runtime(path) && seen_.emplace(path, inode).second) files.emplace_back(path, inode);
  }
  return files;
}

}  // namespace qcts
