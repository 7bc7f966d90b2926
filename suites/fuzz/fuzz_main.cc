// SPDX-License-Identifier: BSD-3-Clause
// qcts_fuzz: runs libFuzzer on one target.
//   qcts_fuzz --target=NAME [CORPUS...] [libFuzzer's -options]
//   qcts_fuzz --write-seeds=DIR FOLDER...     writes DIR/<target>/... from the files in the folders
//   qcts_fuzz --list                          prints each target's name and longest input
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "suites/fuzz/targets.h"

namespace {

using qcts::fuzz::Target;

const Target* chosen = nullptr;  // libFuzzer calls a plain C function, so this has to be a global

void write_seeds(const std::filesystem::path& out, const std::vector<std::filesystem::path>& folders) {
  for (const Target& target : qcts::fuzz::targets()) {
    std::filesystem::create_directories(out / target.name);
    int number = 0;
    for (const auto& seed : qcts::fuzz::seeds_of(target, folders)) {
      std::ofstream file(out / target.name / (std::to_string(number++) + "_" + seed.name), std::ios::binary);
      file.write(reinterpret_cast<const char*>(seed.bytes.data()),
                 static_cast<std::streamsize>(seed.bytes.size()));
    }
    std::printf("%s %d\n", std::string(target.name).c_str(), number);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::vector<std::string> words(*argv + 1, *argv + *argc);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("--write-seeds=")) {
      write_seeds(words[i].substr(14), {words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end()});
      std::exit(0);
    }
    for (const Target& target : qcts::fuzz::targets()) {
      if (words[i] == "--list") std::printf("%s %zu\n", std::string(target.name).c_str(), target.max_bytes);
      if (words[i] == "--target=" + std::string(target.name)) chosen = &target;
    }
    if (words[i] == "--list") std::exit(0);
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "qcts_fuzz: --target=NAME is missing or unknown; see --list\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->use({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
