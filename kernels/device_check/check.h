// SPDX-License-Identifier: BSD-3-Clause
// The checks of qcts_device_check: each has kernels that use one wrapper of kernels/cuda/, and inputs for
// them. The files *.cu here are compiled twice, by nvcc for a GPU and by the C++ compiler for the executor,
// so each check exists twice: both have the same inputs, and run() of the side that compiled it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/abi/qcts_kernel.h"
#include "kernels/device_check/values.h"

namespace qcts::device_check {

// Cases one after the other: in [count, in_words], out [count, out_words]. Each begins at a multiple of 256
// bytes.
struct Cases {
  const uint8_t* common;
  const uint8_t* in;
  uint8_t* out;
  int64_t count;
};

// How the words of an output are compared.
enum class Output : uint8_t {
  bits,        // bit for bit; so are the next three, whose NaNs are counted apart
  f32,         //
  f16x2,       //
  bf16x2,      //
  arithmetic,  // float32, bit for bit, but any NaN equals any: IEEE 754 leaves their bits open
};

// The checks of one group share a number of tiles (option --tiles).
enum class Tiles : uint8_t { none, mma, wgmma };

struct Check {
  std::string name;
  uint32_t in_words, out_words;  // of a case
  // Fills the inputs of case `index`.
  void (*fill)(Random& random, int64_t index, uint32_t* in);
  qcts_status (*run)(const Cases&);  // launches; QCTS_FAILED with last_failure()
  int64_t cases = 1 << 20;           // unless it shares tiles
  Output output = Output::bits;
  int capability = 80;  // compute capability that it needs; 90: that one alone
  // Words that all cases have in common.
  uint32_t common_words = 0;
  void (*fill_common)(Random& random, uint32_t* common) = nullptr;
  bool whole = false;  // all cases must be in one launch
  Tiles group = Tiles::none;
  uint32_t tiles = 0, share = 0;  // tiles of a case; this check's part of the group's tiles
  // The operands of output word `word`, for whoever reads a difference; nullptr: all of `in`.
  std::string (*explain)(const uint32_t* in, uint32_t word) = nullptr;
};

// The same checks in the same order.
namespace on_executor {
std::vector<Check> checks();
}
namespace on_device {
std::vector<Check> checks();
}

// "name=3f800000 00000001" for the words of an operand.
std::string words_text(const char* name, const uint32_t* words, uint32_t count);

}  // namespace qcts::device_check
