// SPDX-License-Identifier: BSD-3-Clause
// Readers under fuzzing. A target reads arbitrary bytes, uses the accepted values and checks its invariants.
// A reader may throw only Refused.
// Anything else that escapes (Finding, another exception, a sanitizer's abort) is a finding.
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

// Reports that the accepted input violates an invariant of the reader.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

#define QCTS_FUZZ_TARGET(name, seeds, max_bytes) bool use_##name(Input input);  // returns true if accepted
#include "suites/fuzz/targets.inc"
#undef QCTS_FUZZ_TARGET

enum class SeedKind : uint8_t {
  files,              // all files
  archives,           // files that begin like a zip
  pickles,            // the data.pkl of each archive
  legacies,           // files that begin like a pickle
  safetensors_files,  // *.safetensors
  gguf_files,         // *.gguf
};

struct Target {
  std::string_view name;
  SeedKind seeds;
  size_t max_bytes;
  bool (*use)(Input);
};
std::span<const Target> targets();

struct Seed {
  std::string name;
  std::vector<std::byte> bytes;
};
// Returns a target's seeds from the files in `folders` and below, sorted by path.
// No seed is longer than max_bytes.
std::vector<Seed> seeds_of(const Target& target, const std::vector<std::filesystem::path>& folders);

}  // namespace qcts::fuzz
