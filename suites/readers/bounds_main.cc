// SPDX-License-Identifier: BSD-3-Clause
// qcts_bounds: measures the cost of reading a file. Each line of stdin is a path, each line of stdout the
// answer, one JSON object: outcome ("accepted", a refusal class, or another exception's text), CPU seconds of
// this process, and peak heap bytes. It is a separate program because it counts every allocation.
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <new>
#include <string>

#include <malloc.h>

#include <nlohmann/json.hpp>

#include "reference/dialects/checkpoint.h"

namespace {

// Single-threaded: the readers start no threads.
size_t in_use = 0, highest = 0;

void* counted(size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  in_use += malloc_usable_size(block);
  if (in_use > highest) highest = in_use;
  return block;
}

void release(void* block) {
  if (block != nullptr) in_use -= malloc_usable_size(block);
  std::free(block);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string outcome(const std::string& path, bool lenient) {
  qcts::OpenOptions options;
  options.lenient = lenient;
  try {
    qcts::open_checkpoint(path, options);
    return "accepted";
  } catch (const qcts::Refused& refused) {
    return std::string(qcts::refusal_class_name(refused.refusal().cls));
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  }
}

}  // namespace

void* operator new(size_t size) { return counted(size); }
void operator delete(void* block) noexcept { release(block); }
void operator delete(void* block, size_t) noexcept { release(block); }

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json answer;
    for (const bool lenient : {false, true}) {
      const size_t before = highest = in_use;
      const double begin = cpu_seconds();
      const std::string result = outcome(line, lenient);
      const double end = cpu_seconds();
      const size_t peak = highest - before;
      answer[lenient ? "lenient" : "strict"] = {
          {"outcome", result}, {"cpu_s", end - begin}, {"heap_bytes", peak}};
    }
    std::cout << answer.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << std::endl;
  }
}
