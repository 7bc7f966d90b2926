// SPDX-License-Identifier: BSD-3-Clause
// The messages between a judge and a host.
// A request is in the input window, its answer in the output window. The judge then sends the
// request's number as a line of decimal digits, and the host sends it back when the answer is there.
// A host serves two lanes, each with its own thread, descriptors and messages, so that two calls may run
// at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/qcts_kernel.h"
#include "suites/host/windows.h"

namespace qcts {

inline constexpr size_t kLanes = 2;
inline constexpr size_t kMessageBytes = size_t{1} << 24;  // of one lane's request, and of its answer
// Buffers begin here, in either window.
inline constexpr size_t kBuffersOffset = kLanes * kMessageBytes;

enum class HostCall : uint32_t {
  facts,  // kernel_facts.h
  supports,
  workspace_bytes,
  prepared_bytes,
  prepare,
  run,
  capture,        // on a device: a run that the host's stream captures in a graph; nothing is computed
  replay,         // on a device: computes what the lane captured last
  capture_batch,  // on a device: runs of the batch that the host's stream captures in graphs
  time_batch,     // on a device: launches these graphs, timed as run_batch is, and by events
  run_batch,      // the judge's clock runs from HostRequest::go until the answer's line
  load_save,
  run_program
};

// Whole pages that a call may use; none if the call runs on a device. Everything else in the windows is
// inaccessible to the host during the call.
struct OpenPages {
  uint64_t address, bytes;
  uint32_t writable;
  uint32_t populate;  // 1: for timed calls; touched before the call, so that it has no page fault
};
inline constexpr uint32_t kMaxOpenPages = 128;

struct HostRequest {
  HostCall call;
  uint32_t kernel;              // index in the provider's table
  const qcts_problem* problem;  // in the input window, with all that it points to
  void* prepared;               // prepare: where to write the prepared weight
  // run_batch, capture_batch: problems in the input window, to be run one after another.
  const qcts_problem* const* batch;
  uint64_t n_batch;
  uint64_t calls_a_graph;   // capture_batch: how many problems go into each graph
  uint32_t graphs, unused;  // capture_batch, time_batch: the number under which the host keeps the graphs
  uint64_t n_awake;  // run_batch: how many problems run before the host is ready, to wake threads and code
  uint32_t go;       // run_batch, time_batch: 1 once the host may begin
  uint32_t gated;    // run on a device: 1 if its stream waits for the judge (device_memory.h)
  // run_batch: after each call, the host waits for this part of its time. A planted slowdown tests
  // stopwatches.
  double slowed;
  const char *input, *output;  // load_save: paths
  const qcts_program_call* program;
  // run_program: where emitted planes go, one after another: a qcts_plane and its data, both padded to
  // 64 bytes. The plane's own pointers mean nothing to the judge.
  std::byte* emitted;
  uint64_t emitted_bytes;
  uint32_t n_open;
  uint32_t flushes;  // run: 1 if the caller flushes subnormals to zero, which is its own affair
  OpenPages open[kMaxOpenPages];
};

// device_fault: work on the device failed, and the host computes no more.
enum class HostOutcome : uint32_t { answered, provider_fault, harm_fault, device_fault };

// The host's answer. It is a claim of the provider: the judge checks it against bytes.
struct HostAnswer {
  HostOutcome outcome;
  int32_t status;           // qcts_status
  uint64_t bytes;           // workspace_bytes, prepared_bytes; run_program: bytes of emitted planes; capture,
                            // capture_batch: kernels
  double events_us;         // time_batch: the sum of the times between the events around each graph
  uint64_t prepared_bytes;  // facts
  uint64_t fault_address;   // nonzero: a signal handler saw an access there, which ended the host
  HostOutcome failure_outcome;  // of failure(), which is called after QCTS_FAILED
  int32_t before_data;          // facts: qcts_status of supports() without data
  uint32_t
      is_ready;     // run_batch, time_batch: 1 once the host waits for HostRequest::go; gated: run() returned
  char text[4096];  // reason, or what(); ends with a NUL
  char failure[4096];  // of prepare and run; facts: the reason of before_data
};

// Returns the bytes of a row-major plane: 0 without data, UINT64_MAX if its shape makes no sense.
// A type that only schemes have counts as one byte.
uint64_t bytes_of_plane(const qcts_plane& plane);

// Returns where a lane's request and answer are, in the windows that start at `inputs` and `outputs`.
inline HostRequest& request_of(std::byte* inputs, size_t lane) {
  return *reinterpret_cast<HostRequest*>(inputs + lane * kMessageBytes);
}
inline HostAnswer& answer_of(std::byte* outputs, size_t lane) {
  return *reinterpret_cast<HostAnswer*>(outputs + lane * kMessageBytes);
}

}  // namespace qcts
