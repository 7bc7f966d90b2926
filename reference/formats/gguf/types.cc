// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/gguf/types.h"

#include <algorithm>
#include <array>

namespace qcts {
namespace {

constexpr std::array<GgufType, 40> kGgufTypes = {{
    {0, "F32", 1, 4, DType::float32},
    {1, "F16", 1, 2, DType::float16},
    {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},
    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1, DType::int8},
    {25, "I16", 1, 2, DType::int16},
    {26, "I32", 1, 4, DType::int32},
    {27, "I64", 1, 8, DType::int64},
    {28, "F64", 1, 8, DType::float64},
    {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2, DType::bfloat16},
    {31, "Q4_0_4_4", 32, 18},
    {32, "Q4_0_4_8", 32, 18},
    {33, "Q4_0_8_8", 32, 18},
    {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},
    {36, "IQ4_NL_4_4", 32, 18},
    {37, "IQ4_NL_4_8", 32, 18},
    {38, "IQ4_NL_8_8", 32, 18},
    {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
    {42, "Q2_0", 64, 18},
}};

}  // namespace

std::span<const GgufType> gguf_types() { return kGgufTypes; }

const GgufType* find_gguf_type(uint32_t id) {
  const auto found = std::ranges::find(kGgufTypes, id, &GgufType::id);
  return found == kGgufTypes.end() ? nullptr : &*found;
}

std::string unknown_gguf_type(uint32_t id) {
  const std::string type = "type " + std::to_string(id);
  if (id == 4 || id == 5)
    return type + (id == 4 ? " (Q4_2)" : " (Q4_3)") + ", which ggml removed before GGUF";
  if (id == 9) return type + " (Q8_1), which ggml computes with and writes to no file";
  return type + ", which ggml 0.20.2 does not name: a fork of llama.cpp may have numbered it";
}

}  // namespace qcts
