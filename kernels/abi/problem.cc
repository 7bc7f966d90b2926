// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/abi/problem.h"

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace qcts {
namespace {

// Is `word` in a list separated by commas?
bool lists_word(const char* list, const char* word) {
  const size_t length = std::strlen(word);
  for (const char* next = list; next != nullptr;) {
    const size_t listed = std::strcspn(next, ",");
    if (listed == length && std::strncmp(next, word, length) == 0) return true;
    next = next[listed] == ',' ? next + listed + 1 : nullptr;
  }
  return false;
}

}  // namespace

qcts_status refuse(qcts_status status, char* why, size_t why_size, const char* format, ...) {
  if (why == nullptr || why_size == 0) return status;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(why, why_size, format, arguments);
  va_end(arguments);
  return status;
}

bool same_text(const char* text, const char* other) {
  return text != nullptr && std::strcmp(text, other) == 0;
}

bool has_scheme_params(const qcts_problem& problem) {
  constexpr size_t kReach = offsetof(qcts_problem, params) + sizeof problem.params;
  return problem.struct_size >= kReach && problem.params != nullptr &&
         problem.params->struct_size >= sizeof(qcts_scheme_params);
}

const qcts_scheme_params& scheme_params(const qcts_problem& problem) {
  static constexpr qcts_scheme_params kNone = {};
  return has_scheme_params(problem) ? *problem.params : kNone;
}

uint32_t scale_dtype(const qcts_problem& problem) {
  const uint32_t stored = scheme_params(problem).scale_dtype;
  return stored == QCTS_LIKE_W ? problem.w_dtype : stored;
}

bool is_tile_packed(const char* layout) {
  return same_text(layout, "tile_packed_4d") || same_text(layout, "tile_packed_4d_v1");
}

bool lists_policy(const char* scheme, const char* activation) {
  if (activation == nullptr) return false;
  const char* policy = std::strchr(scheme, ':');
  if (policy == nullptr) return same_text(activation, "weight_only");
  return lists_word(policy + 1, "*") || lists_word(policy + 1, activation);
}

bool is_plain(const char* layout) {
  return layout == nullptr || *layout == '\0' || same_text(layout, "plain");
}

bool reads_layout(const char* reads_layouts, const char* layout) {
  return is_plain(layout) || (reads_layouts != nullptr && lists_word(reads_layouts, layout));
}

const qcts_plane* find_plane(const qcts_plane* planes, uint32_t count, const char* name) {
  for (uint32_t i = 0; i < count; ++i)
    if (same_text(planes[i].name, name)) return &planes[i];
  return nullptr;
}

void* plane_data(const qcts_plane* planes, uint32_t count, const char* name) {
  const qcts_plane* plane = find_plane(planes, count, name);
  return plane == nullptr ? nullptr : plane->data;
}

uint32_t plane_dtype(const qcts_plane* planes, uint32_t count, const char* name) {
  const qcts_plane* plane = find_plane(planes, count, name);
  return plane == nullptr ? static_cast<uint32_t>(QCTS_NONE) : plane->dtype;
}

bool has_no_rows(uint32_t op, const qcts_problem& problem) {
  return problem.m == 0 && (op == QCTS_OP_LINEAR || op == QCTS_OP_QUANTIZE_ACTIVATION);
}

uint32_t dtype_bytes(uint32_t dtype) {
  switch (dtype) {
    case QCTS_F64:
    case QCTS_I64:
      return 8;
    case QCTS_F32:
    case QCTS_I32:
      return 4;
    case QCTS_F16:
    case QCTS_BF16:
    case QCTS_I16:
      return 2;
    case QCTS_F8_E4M3FN:
    case QCTS_F8_E5M2:
    case QCTS_F8_E8M0:
    case QCTS_I8:
    case QCTS_U8:
      return 1;
    default:
      return 0;
  }
}

}  // namespace qcts
