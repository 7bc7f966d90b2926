// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/buffer_trials.h"

#include <algorithm>
#include <iterator>

namespace qcts {
namespace {

constexpr int64_t kLargeElems = int64_t{1} << 22;
constexpr uint32_t kManyThreads[] = {2, 3, 4, 8};
// With such a stride, the second row is more than 16 bits away. Few rows, so that it costs little.
constexpr size_t kWideGapElems = 33'000, kGapElems = 16;
constexpr int64_t kMaxWideRows = 60;

// Returns a number that varies between shapes and is constant for each shape.
size_t shape_number(const KernelInput& input) {
  return static_cast<size_t>(input.m + input.weight.n + 3 * input.weight.k);
}

}  // namespace

bool is_large(const KernelInput& input) {
  return input.weight.n * input.weight.k * (input.op == Op::linear ? input.m : 1) > kLargeElems;
}

std::vector<RunOptions> irregular_buffers(const KernelInput& input, uint32_t threads) {
  if (is_large(input)) threads = std::max(threads, kLargeThreads);
  const size_t off = 1 + shape_number(input) % 7;
  return {{.threads = threads, .misalign_elems = off, .gap_elems = 3, .planes_gone = true, .renamed = true},
          {.threads = threads, .misalign_elems = off, .planes_gone = true, .renamed = true},
          {.threads = threads, .planes_gone = true, .renamed = true}};
}

std::vector<RunOptions> many_threads(const KernelInput& input, uint32_t threads) {
  const size_t number = shape_number(input), off = number % 3 == 0 ? 0 : 1 + number % 7;
  threads = std::max(threads, kManyThreads[number % std::size(kManyThreads)]);
  const Misaligned which = number % 3 == 1 ? Misaligned::outputs : Misaligned::inputs;
  const bool is_wide = input.m + input.weight.n < kMaxWideRows && number % 4 == 1;
  std::vector<RunOptions> trials = {{threads, off, is_wide ? kWideGapElems : kGapElems, true, which},
                                    {threads, 0, kGapElems, true},
                                    {threads, 0, 0, true}};
  // A weight is prepared at load, where the threads are others than those of a call.
  for (RunOptions& trial : trials) trial.prepares_alone = number % 2 == 0;
  return trials;
}

std::vector<RunOptions> at_edges(const KernelInput& input, uint32_t threads) {
  std::vector<RunOptions> trials = {{.threads = threads, .flush = Flush::end}};
  if (shape_number(input) % 4 == 3) trials.push_back({.threads = threads, .flush = Flush::start});
  return trials;
}

std::string described(const RunOptions& options, uint32_t threads) {
  if (options.flush == Flush::end) return "every buffer ends where memory ends";
  if (options.flush == Flush::start) return "every buffer begins where memory begins";
  const std::string which = options.misaligned == Misaligned::outputs  ? "aligned inputs, outputs "
                            : options.misaligned == Misaligned::inputs ? "aligned outputs, inputs "
                                                                       : "buffers ";
  return (options.misalign_elems ? which + std::to_string(options.misalign_elems) + " elements off alignment"
                                 : std::string("aligned buffers")) +
         (options.gap_elems ? ", gaps between rows" : "") +
         (options.planes_reversed ? ", planes in reverse order" : "") +
         (options.threads != threads ? ", " + std::to_string(options.threads) + " threads" : "");
}

}  // namespace qcts
