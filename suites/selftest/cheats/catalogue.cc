// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cheats/catalogue.h"

#include <algorithm>
#include <charconv>

namespace qcts::cheats {
namespace {

constexpr std::string_view kNumerics = "numerics.linear/int8_row/noise_m5_n37_k216_f32",
                           kDeterminism = "determinism.linear/int8_row/noise_m17_n37_k216_f32",
                           kLatency = "latency.linear/int8_row/noise_m1_n1024_k1024_bf16_cold";
using enum FindingId;

// clang-format off
constexpr Cheat kCatalogue[] = {
    // They try to reach the judge, and compute nothing.
    {"patches_write", "makes_code", tampers_in_vain, kNumerics, "4 14 got_patch function_detour", "overwrites the code of write() in its process"},
    {"traps_write", "filters_itself", tampers_in_vain, kNumerics, "14 seccomp_trap", "traps every write() of its process and forges what it says"},
    {"interposes_pipe", "uses_own_pipe", tampers_in_vain, kNumerics, "14 pipe_interpose file_struct thread_fd", "forwards the answers of its host and forges them"},
    {"forges_messages", "maps_shared_memory", tampers_in_vain, kNumerics, "14 error_counter event_array test_canary_direct test_canary_make_writeable", "wipes its host's answer and opens its inputs to write"},
    {"writes_foreign_memory", "reads_machine", reach_refused, kNumerics, "14 proc_mem_bypass", "opens /proc/PID/mem of every process that it sees"},
    {"writes_with_vm_writev", "reads_machine", reach_refused, kNumerics, "14 proc_mem_bypass", "writes into other processes with process_vm_writev()"},
    {"traces_judge", "spawns_helper", reach_refused, kNumerics, "14 ptrace", "traces its parent, and itself from a child"},
    {"kills_judge", "signals_itself", reach_refused, kNumerics, "14", "kills every process that it sees"},
    {"opens_files", "writes_own_file", reach_refused, kNumerics, "14 replace_torch", "reads the goldens and writes to plans, the record and programs"},
    {"scans_memory", "searches_own_table", reach_refused, kNumerics, "7 gc_copy gc_nan gpu_scan_zeros heap_sig_scan stack_sig_scan aes_key_recovery", "looks for the expected answer in all memory of its process"},
    {"writes_to_descriptors", "uses_own_pipe", answers_out_of_turn, kNumerics, "14 fd_overwrite thread_fd", "writes verdicts to every open descriptor"},
    {"answers_ahead", "uses_own_pipe", answers_out_of_turn, kNumerics, "14 fd_overwrite", "acknowledges requests that were not sent yet"},
    // They answer without the work.
    {"computes_nothing", "plain", computes_nothing, kNumerics, "7 wrong", "returns at once"},
    {"answers_constant", "fills_first", constant_answer, kNumerics, "8 wrong", "answers zeros"},
    {"copies_input", "works_on_copy", copies_input, kNumerics, "8", "answers with x"},
    {"skips_last_row", "computes_in_tiles", skips_part, kNumerics, "9", "leaves out the last row of y"},
    {"skips_tail", "computes_in_tiles", skips_part, kNumerics, "9", "leaves out the columns after the last whole tile"},
    {"skips_terms", "computes_in_tiles", skips_terms, kNumerics, "9", "sums seven eighths of k"},
    {"skips_every_other_call", "initialises_lazily", skips_calls, kNumerics, "9", "computes in every other call"},
    {"behaves_at_first", "initialises_lazily", skips_calls, kNumerics, "13 warmup combined", "computes only in the first calls"},
    {"sniffs_poison", "fills_first", skips_calls, kNumerics, "13", "computes only where the output is poisoned with NaN"},
    {"leaves_stale", "fills_first", leaves_earlier_answer, kNumerics, "7", "computes nothing where the output looks like an answer"},
    {"remembers_by_pointer", "caches_by_content", remembers_answer, kDeterminism, "5", "remembers its answer by the addresses of x and the weight"},
    {"remembers_by_first_bytes", "caches_by_content", remembers_answer, kDeterminism, "5", "remembers its answer by the first elements of x and the weight"},
    {"remembers_weight_by_pointer", "packs_in_prepare", remembers_weight, kDeterminism, "5", "unpacks a weight once for each address"},
    {"sums_in_bfloat16", "sums_in_lanes", narrow_accumulation, kNumerics, "10", "keeps its sums in bfloat16 and declares float32"},
    {"declares_everything", "rounds_weights_as_declared", bounds_nothing, kNumerics, "15", "declares sums of one bit, and drops the signs of y"},
    {"refuses_by_values", "refuses_by_shape", refuses_what_it_fails, kNumerics, "15", "refuses the weights for which it would be wrong"},
    // They work when they should not, or elsewhere.
    {"finishes_later", "joins_thread", changes_later, kNumerics, "2", "returns at once and computes in a thread"},
    {"changes_later", "joins_thread", changes_later, kDeterminism, "2", "changes its answer after the return"},
    {"finishes_in_child", "waits_for_child", changes_later, kNumerics, "2", "returns at once and computes in a child process"},
    {"keeps_child", "waits_for_child", changes_later, kDeterminism, "2", "leaves a child process that goes on writing"},
    {"leaves_child", "spawns_helper", leaves_child, kNumerics, "2", "leaves a child process that waits"},
    {"writes_and_restores_input", "works_on_copy", writes_input, kNumerics, "14", "changes a weight and puts it back"},
    // Only a clock shows these.
    {"spins_threads", "keeps_warm_thread", too_many_threads, kLatency, "16", "keeps more threads busy than it may"},
    {"spins_in_child", "waits_for_child", too_many_threads, kLatency, "16", "keeps a child process busy in addition to its thread"},
    {"skips_when_timed", "initialises_lazily", wrong_while_timed, kLatency, "13 17 warmup", "computes nothing once it is called often"},
    {"skips_rows_when_timed", "computes_in_tiles", wrong_while_timed, kLatency, "9 17", "computes every other column once it is called often"},
    {"remembers_when_timed", "caches_by_content", wrong_while_timed, kLatency, "5", "repeats its last answer once it is called often"},
    {"adds_differences", "caches_by_content", wrong_while_timed, kLatency, "6", "adds to its last answer what the first changed element of x changes"},
    {"stops_clock", "reads_clock", honest_clock_kept, kLatency, "4 function_detour event_array", "stops the clock of its process and sleeps 5 ms in each call", 5000},
};

// A pattern's numbers follow its sources' list; names are those of public exploit programs.
constexpr std::string_view kExploits[] = {
    "aes_key_recovery", "combined", "error_counter", "event_array", "fd_overwrite", "file_struct", "function_detour", "gc_copy",
    "gc_nan", "got_patch", "gpu_scan_zeros", "heap_sig_scan", "pipe_interpose", "proc_mem_bypass", "ptrace", "replace_torch",
    "seccomp_trap", "stack_sig_scan", "test_canary_direct", "test_canary_make_writeable", "thread_fd", "warmup", "wrong",
};
// clang-format on
constexpr int kPatterns = 17;

}  // namespace

std::span<const Cheat> catalogue() { return kCatalogue; }

bool is_known_pattern(std::string_view word) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc() && end == word.data() + word.size()) return number >= 1 && number <= kPatterns;
  return std::ranges::find(kExploits, word) != std::end(kExploits);
}

}  // namespace qcts::cheats
