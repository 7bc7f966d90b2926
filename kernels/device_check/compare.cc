// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/device_check/compare.h"

#include <cstdio>
#include <cstring>

namespace qcts::device_check {
namespace {

constexpr size_t kExamples = 24, kNanExamples = 8;

bool is_nan32(uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }

// Returns true if each half is either equal in the two words or NaN in both.
bool halves_differ_in_nan_only(uint32_t a, uint32_t b, uint32_t infinity) {
  for (int shift = 0; shift < 32; shift += 16) {
    const uint32_t x = a >> shift & 0xFFFF, y = b >> shift & 0xFFFF;
    if (x != y && ((x & 0x7FFF) <= infinity || (y & 0x7FFF) <= infinity)) return false;
  }
  return true;
}

bool differ_in_nan_only(Output output, uint32_t a, uint32_t b) {
  switch (output) {
    case Output::bits:
      return false;
    case Output::f16x2:
      return halves_differ_in_nan_only(a, b, 0x7C00);
    case Output::bf16x2:
      return halves_differ_in_nan_only(a, b, 0x7F80);
    default:
      return is_nan32(a) && is_nan32(b);
  }
}

void compare_case(const Check& check, int64_t index, const uint32_t* in, const uint32_t* executor,
                  const uint32_t* device, Comparison* comparison) {
  uint32_t n_different = 0, n_nan_only = 0, shown = 0;
  for (uint32_t word = 0; word < check.out_words; ++word) {
    if (executor[word] == device[word]) continue;
    const bool nan_only = differ_in_nan_only(check.output, executor[word], device[word]);
    if (nan_only && check.output == Output::arithmetic) {
      ++comparison->nan_bits;
      continue;
    }
    // Shows the first word that differs, preferably one that is not NaN.
    if (n_different == n_nan_only && (n_different == 0 || !nan_only)) shown = word;
    ++n_different;
    if (nan_only) ++n_nan_only;
  }
  if (n_different == 0) return;
  const bool nan_only = n_nan_only == n_different;
  ++comparison->different;
  comparison->different_words += n_different;
  if (nan_only) ++comparison->nan_only;
  size_t alike = 0;
  for (const Difference& example : comparison->examples) alike += example.nan_only == nan_only ? 1 : 0;
  if (alike >= (nan_only ? kNanExamples : kExamples)) return;
  comparison->examples.push_back(
      {index, shown, executor[shown], device[shown], nan_only,
       check.explain != nullptr ? check.explain(in, shown) : words_text("in", in, check.in_words)});
}

}  // namespace

std::string words_text(const char* name, const uint32_t* words, uint32_t count) {
  std::string text = name;
  for (uint32_t i = 0; i < count; ++i) {
    char word[16];
    std::snprintf(word, sizeof word, "%c%08x", i == 0 ? '=' : ' ', words[i]);
    text += word;
  }
  return text;
}

void compare(const Check& check, int64_t first, int64_t count, const uint32_t* in, const uint32_t* executor,
             const uint32_t* device, Comparison* comparison) {
  comparison->cases += count;
  comparison->words += count * check.out_words;
  const size_t bytes = size_t{4} * check.out_words;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t out = i * check.out_words;
    if (std::memcmp(executor + out, device + out, bytes) != 0)
      compare_case(check, first + i, in + i * check.in_words, executor + out, device + out, comparison);
  }
}

}  // namespace qcts::device_check
