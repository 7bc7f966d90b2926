// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/failure.h"

#include <cstdarg>
#include <cstdio>

namespace qcts {
namespace {

thread_local char failure_text[1024] = "";

}  // namespace

qcts_status launch_failed(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(failure_text, sizeof failure_text, format, arguments);
  va_end(arguments);
  return QCTS_FAILED;
}

void last_failure(char* why, size_t why_size) {
  if (why != nullptr && why_size > 0) std::snprintf(why, why_size, "%s", failure_text);
}

}  // namespace qcts
