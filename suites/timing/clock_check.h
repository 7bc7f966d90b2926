// SPDX-License-Identifier: BSD-3-Clause
// Compares the times that a host's events report with this process's clock.
#pragma once

#include <cstddef>
#include <string>

namespace qcts {

// A batch of graphs on a device.
struct GraphBatch {
  double wall_us = 0;    // by this process's clock, from the word to begin until the answer
  double events_us = 0;  // between the events around each graph, summed; the host's claim
  size_t graphs = 0;
};

// The time that this process's clock adds to that of the events, by an empty batch: once per batch, and once
// per graph.
struct EmptyBatch {
  double road_us = 0, graph_us = 0;
};

class ClockCheck {
 public:
  // The clocks may differ by this much of the events' time, and by what an empty batch takes.
  static constexpr double kMargin = 0.05;

  void set_empty(const EmptyBatch& empty) { empty_ = empty; }
  // Returns true if the clock confirms the events. If it does not and the batch `is_last`, the batch counts
  // nevertheless, and its time is in doubt; otherwise it is timed again.
  bool take(const GraphBatch& batch, bool is_last);
  // Returns the largest time of the clock, less what is allowed, over the events' of all batches that count.
  double largest_ratio() const { return largest_ratio_; }
  size_t batches() const { return batches_; }      // that count
  size_t timed_again() const { return retried_; }  // that do not
  // Returns "" or why the times are in doubt.
  std::string doubt() const;

 private:
  EmptyBatch empty_;
  size_t batches_ = 0, retried_ = 0, unconfirmed_ = 0;
  double largest_ratio_ = 0;
};

}  // namespace qcts
