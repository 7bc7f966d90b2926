// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/latency/latency_peers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/machine/machine.h"
#include "suites/timing/device_roof.h"

namespace qcts {
namespace {

constexpr size_t kWarmCopies = 63;
constexpr const char* kDense = "dense";
constexpr const char* kTorch = "aten";
constexpr const char* kStatic = "static_tensor_sym";

class PeerMaker {
 public:
  PeerMaker(const Case& c, const JudgeContext& context, uint64_t seed)
      : case_(c), context_(context), seed_(seed) {}

  // Uses the first provider's dense layer; a naive loop of our own would not be a fair baseline.
  void make_dense(LatencyPeers& peers) const {
    if (case_.id.op != Op::linear) return;
    std::string why = "no dense baseline here";
    if (context_.dense_peer != nullptr)
      for (const Implementation* implementation : context_.dense_peer->find(QCTS_OP_LINEAR, kDense)) {
        peers.dense = make_peer(*implementation->kernel, dense_latency_input(case_, seed_ + 7), why);
        peers.dense_name = implementation->name();
        if (peers.dense) return;
        why = "no dense baseline: " + implementation->name() + ": " + why;
      }
    peers.why_no_dense = why;
  }

  std::unique_ptr<VerifiedKernel> torch() const { return torch_peer(case_); }

  std::unique_ptr<VerifiedKernel> torch_with_given_scale() const {
    const std::optional<Policy> given = case_.scheme->find_activation(kStatic);
    if (!case_.activation().name().starts_with("dyn_") || !given) return nullptr;
    Case fixed = case_;
    std::get<TimedQuestion>(fixed.question).input.activation = *given;
    return torch_peer(fixed);
  }

 private:
  std::unique_ptr<VerifiedKernel> torch_peer(const Case& c) const {
    if (context_.torch_peer == nullptr || case_.provider() == kTorch) return nullptr;
    for (const Implementation* implementation :
         context_.torch_peer->find(abi_op(c.id.op), c.scheme->family(), c.activation().name())) {
      if (implementation->provider != kTorch) continue;
      std::string why;
      if (auto peer = make_peer(*implementation->kernel, latency_input(c, seed_), why)) return peer;
    }
    return nullptr;
  }

  // Returns a verified peer on the same case, or sets `why` and returns nullptr.
  std::unique_ptr<VerifiedKernel> make_peer(const qcts_kernel& kernel, KernelInput input,
                                            std::string& why) const {
    try {
      return make_live_peer(kernel, std::move(input), why);
    } catch (const HostFailure& failure) {
      why = failure.reason;
      return nullptr;
    }
  }

  std::unique_ptr<VerifiedKernel> make_live_peer(const qcts_kernel& kernel, KernelInput input,
                                                 std::string& why) const {
    auto peer = std::make_unique<VerifiedKernel>(kernel, std::move(input), context_.threads);
    const Support support = peer->supports();
    if (support.status != QCTS_OK) {
      why = support.reason;
      return nullptr;
    }
    const std::string wrong = peer->make_and_verify(copies_of(case_, peer->timed()));
    if (wrong.empty()) return peer;
    why = "wrong answer: " + wrong;
    return nullptr;
  }

  const Case& case_;
  const JudgeContext& context_;
  const uint64_t seed_;
};

}  // namespace

LatencyPeers latency_peers(const Case& c, const JudgeContext& context, uint64_t seed) {
  const PeerMaker maker(c, context, seed);
  LatencyPeers peers;
  maker.make_dense(peers);
  peers.torch = maker.torch();
  peers.given_scale = maker.torch_with_given_scale();
  return peers;
}

size_t copies_of(const Case& c, TimedKernel& timed) {
  if (c.is_warm() && c.id.op == Op::linear) return 1;
  timed.query_prepared_bytes();
  if (c.is_warm()) {
    const uint64_t cache_bytes = std::max<uint64_t>(machine().l3_bytes, uint64_t{1} << 20) / 4;
    return std::clamp<size_t>(cache_bytes / std::max<uint64_t>(timed.copied_bytes(), 1), 1, kWarmCopies);
  }
  if (timed.device() != nullptr) return cold_copies_on_device(timed);
  return cold_copies(timed.copied_bytes(), timed.held_bytes(), machine().l3_bytes, copy_budget_bytes());
}

}  // namespace qcts
