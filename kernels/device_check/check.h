// SPDX-License-Identifier: BSD-3-Clause
// The checks of qcts_device_check. Each check has kernels that use one wrapper of kernels/cuda/, and inputs
// for these kernels. The files *.cu here are compiled twice: by nvcc for a GPU, and by the C++ compiler for
// the executor. Each check therefore exists twice. Both have the same inputs, and each has the run() of the
// side that compiled it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/abi/qcts_kernel.h"
#include "kernels/device_check/values.h"

namespace qcts::device_check {

// The cases are stored one after another: `in` is [count, in_words] and `out` is [count, out_words]. Each
// array begins at a multiple of 256 bytes.
struct Cases {
  const uint8_t* common;
  const uint8_t* in;
  uint8_t* out;
  int64_t count;
};

// Says how the words of an output are compared.
enum class Output : uint8_t {
  bits,        // bit for bit; so are the next three, but their NaNs are counted separately
  f32,         //
  f16x2,       //
  bf16x2,      //
  arithmetic,  // float32, bit for bit, but any NaN equals any other: IEEE 754 leaves their bits open
};

// The checks of one group share a number of tiles (option --tiles).
enum class Tiles : uint8_t { none, mma, wgmma };

struct Check {
  std::string name;
  uint32_t in_words, out_words;  // words of a case
  // Fills the inputs of case `index`.
  void (*fill)(Random& random, int64_t index, uint32_t* in);
  qcts_status (*run)(const Cases&);  // launches the kernels; after QCTS_FAILED, last_failure() says why
  int64_t cases = 1 << 20;           // number of cases, unless the check shares tiles
  Output output = Output::bits;
  int capability = 80;  // compute capability that it needs; 90: that one and no other
  // Words that all cases have in common.
  uint32_t common_words = 0;
  void (*fill_common)(Random& random, uint32_t* common) = nullptr;
  bool whole = false;  // all cases must be in one launch
  Tiles group = Tiles::none;
  uint32_t tiles = 0, share = 0;  // tiles of a case; this check's share of the group's tiles
  // Returns the operands of output word `word` as text, for the reader of a difference. If this is nullptr,
  // the text shows all of `in`.
  std::string (*explain)(const uint32_t* in, uint32_t word) = nullptr;
};

// Both return the same checks in the same order.
namespace on_executor {
std::vector<Check> checks();
}
namespace on_device {
std::vector<Check> checks();
}

// Returns "name=3f800000 00000001" for the words of an operand.
std::string words_text(const char* name, const uint32_t* words, uint32_t count);

}  // namespace qcts::device_check
