// SPDX-License-Identifier: BSD-3-Clause
// Readers under fuzzing. A target reads any bytes, uses what it accepted and checks what has to hold then.
// Refused is the one exception that it may meet; everything else that escapes it (Finding, another exception,
// a sanitizer's abort) is a finding.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace qcts::fuzz {

using Input = std::span<const std::byte>;

// What was accepted does not keep what the reader promises.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

#define QCTS_FUZZ_TARGET(name, seeds, longest_bytes) bool use_##name(Input input);  // true: accepted
#include "suites/fuzz/targets.inc"
#undef QCTS_FUZZ_TARGET

enum class SeedKind : uint8_t {
  files,              // every given file
  archives,           // those that begin as a zip does
  pickles,            // the data.pkl of each archive
  legacies,           // those that begin as a pickle does
  safetensors_files,  // *.safetensors
};

struct Target {
  std::string_view name;
  SeedKind seeds;
  size_t longest_bytes;
  bool (*use)(Input);
};
std::span<const Target> targets();

struct Seed {
  std::string name;
  std::vector<std::byte> bytes;
};
// Seeds of a target from the files below `folders`, sorted by path, none longer than the target's
// longest_bytes.
std::vector<Seed> seeds_of(const Target& target, const std::vector<std::filesystem::path>& folders);

}  // namespace qcts::fuzz
