// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/latency/block.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "kernels/machine/machine.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/numerics/noise.h"
#include "suites/judge/latency/latency_case.h"
#include "suites/judge/latency/latency_measures.h"
#include "suites/providers/provider_call.h"
#include "suites/timing/interleaved_timer.h"

namespace qcts {
namespace {

// From config.json of Llama-3.1-8B: hidden_size 4096, intermediate_size 14336, 32 heads of 128, 8 of them for
// keys and values.
struct BlockLayer {
  const char* name;
  int64_t n, k;
};
constexpr BlockLayer kBlockLayers[] = {
    {"self_attn.q_proj", 4096, 4096}, {"self_attn.k_proj", 1024, 4096}, {"self_attn.v_proj", 1024, 4096},
    {"self_attn.o_proj", 4096, 4096}, {"mlp.gate_proj", 14336, 4096},   {"mlp.up_proj", 14336, 4096},
    {"mlp.down_proj", 4096, 14336},
};
constexpr size_t kLayerCount = std::size(kBlockLayers);
constexpr DType kBlockDType = DType::bfloat16;
using Layers = std::vector<std::unique_ptr<VerifiedKernel>>;

// Times all layers of a block, one after the other, as one target.
class TimedBlock final : public TimedTarget {
 public:
  TimedBlock(Layers layers, const qcts_kernel& kernel) : layers_(std::move(layers)), kernel_(kernel) {}
  void call(size_t copy) override {
    for (const auto& layer : layers_) layer->timed().call(copy);
  }
  size_t copies() const override { return layers_.front()->timed().copies(); }
  // One batch runs all layers of one block, and then those of the next.
  double time_us(size_t first, size_t calls, bool rotate) override {
    std::vector<std::vector<qcts_problem>> of_layers;
    for (const auto& layer : layers_) of_layers.push_back(layer->timed().stage(first, calls, rotate));
    std::vector<qcts_problem> problems;
    for (size_t i = 0; i < calls; ++i)
      for (const std::vector<qcts_problem>& of_layer : of_layers) problems.push_back(of_layer[i]);
    const BatchTime time = provider_run_batch(kernel_, problems, [this] {
      for (const auto& layer : layers_) layer->timed().renew();
    });
    spent_.wall_us += time.wall_us;
    spent_.cpu_us += time.cpu_us;
    for (const auto& layer : layers_) layer->timed().note_outputs();
    return layers_.front()->timed().without_road(time.wall_us) / static_cast<double>(calls);
  }
  // Blocks of the same kernel, before and after loading, are compared.
  const void* timed() const override { return &kernel_; }
  size_t max_calls(bool rotate) const override {
    return layers_.front()->timed().max_calls(rotate) / layers_.size();
  }
  double min_sample_us() const override { return layers_.front()->timed().min_sample_us(); }
  double good_sample_us() const override { return layers_.front()->timed().good_sample_us(); }
  double cpu_seconds() const override { return layers_.front()->timed().cpu_seconds(); }
  uint64_t weight_bytes() const {
    uint64_t bytes = 0;
    for (const auto& layer : layers_) bytes += layer->timed().weight_bytes();
    return bytes;
  }
  void verify() const {
    for (size_t i = 0; i < layers_.size(); ++i)
      if (const std::string wrong = layers_[i]->verify(); !wrong.empty())
        throw ProviderFault(std::string("correct before timing, wrong afterwards: ") + kBlockLayers[i].name +
                            ": " + wrong);
  }

 private:
  Layers layers_;
  const qcts_kernel& kernel_;
};

std::string layer_name(size_t layer) { return std::string("block.") + kBlockLayers[layer].name + ".weight"; }

// Returns the first layout that a torchao class can store; nullopt if there is none.
std::optional<Layout> block_file_layout(const Scheme& scheme) {
  for (const Layout layout : scheme.layouts())
    if (torchao_class(scheme, layout, kWeightOnly, "torchao_v2")) return layout;
  return std::nullopt;
}

class Block {
 public:
  explicit Block(const BlockSettings& settings) : settings_(settings) {}

  WeightShape shape(size_t layer) const {
    return {kBlockDType, kBlockLayers[layer].n / settings_.shrink, kBlockLayers[layer].k / settings_.shrink};
  }

  std::vector<std::byte> weight(size_t layer) const {
    const WeightShape s = shape(layer);
    return noise_bytes(settings_.seed + layer, static_cast<size_t>(s.n * s.k), s.dtype, 0x1p-5);
  }

  Planes quantized_layer(const Scheme& scheme, size_t layer, const Registry* registry,
                         std::string& quantized_by) const {
    const WeightShape s = shape(layer);
    KernelInput input;
    input.op = Op::quantize;
    input.scheme = &scheme;
    input.weight = s;
    input.x_dtype = s.dtype;
    input.x = weight(layer);
    if (registry != nullptr)
      for (const Implementation* implementation : registry->find(QCTS_OP_QUANTIZE, scheme.family())) {
        if (!implementation->machine_refusal().empty()) continue;
        TimedKernel timed(*implementation->kernel, input, settings_.threads);
        if (timed.supports().status != QCTS_OK) continue;
        timed.make_ready(1);
        timed.call(0);
        quantized_by = implementation->name();
        return timed.answer().planes;
      }
    quantized_by = "reference";
    return scheme.quantize({s.dtype, s.n, s.k, input.x});
  }

  void save(const Scheme& scheme, const std::vector<Planes>& layers,
            const std::filesystem::path& file) const {
    const Layout layout = block_file_layout(scheme).value();
    std::vector<SchemeTensor> tensors;
    for (size_t i = 0; i < layers.size(); ++i) {
      const WeightShape s = shape(i);
      const bool packed = layout != kPlain;
      tensors.push_back(
          {&scheme, layout, s.dtype, s.n, s.k, packed ? scheme.pack(layers[i], s, layout) : layers[i]});
    }
    std::vector<OutputTensor> encoded;
    for (size_t i = 0; i < tensors.size(); ++i) encoded.push_back({layer_name(i), nullptr, &tensors[i]});
    const EditedZip edited = encode_state_dict(encoded);
    write_file_atomically(
        file, [&](ByteSink& out) { write_torch_zip("block", edited.root, edited.storages, out); });
  }

  std::vector<Planes> load(const Scheme& scheme, const std::filesystem::path& file) const {
    const Checkpoint checkpoint = open_checkpoint(file);
    const Layout layout = block_file_layout(scheme).value();
    std::vector<Planes> layers;
    for (size_t i = 0; i < kLayerCount; ++i) {
      const std::string name = layer_name(i);
      const auto found = std::ranges::find(checkpoint.tensors, name, &NamedTensor::name);
      if (found == checkpoint.tensors.end()) throw std::runtime_error("the file has no " + name);
      const std::optional<SchemeTensor> tensor = scheme_tensor(*found, layout.name());
      if (!tensor || tensor->scheme->meaning() != scheme.meaning())
        throw std::runtime_error("the file's " + name + " is not " + std::string(scheme.name()));
      layers.push_back(tensor->layout == kPlain ? tensor->planes
                                                : scheme.unpack(tensor->planes, shape(i), tensor->layout));
    }
    return layers;
  }

  // scheme: nullptr for the dense block, which has no planes.
  Layers layers_of(const Scheme* scheme, const std::vector<Planes>& planes, const qcts_kernel& kernel,
                   int64_t m) const {
    Layers layers;
    for (size_t i = 0; i < kLayerCount; ++i) {
      const WeightShape s = shape(i);
      KernelInput input;
      input.op = Op::linear;
      input.scheme = scheme;
      input.weight = s;
      input.m = m;
      input.x_dtype = input.y_dtype = input.bias_dtype = s.dtype;
      input.x = noise_bytes(settings_.seed + 100 + i, static_cast<size_t>(m * s.k), s.dtype);
      if (scheme == nullptr)
        input.planes.push_back({"w", s.dtype, {s.n, s.k}, weight(i)});
      else
        input.planes = planes[i];
      layers.push_back(std::make_unique<VerifiedKernel>(kernel, std::move(input), settings_.threads));
    }
    return layers;
  }

  std::unique_ptr<TimedBlock> verified(Layers layers, const qcts_kernel& kernel, size_t& copies) const {
    uint64_t bytes = 0;
    for (const auto& layer : layers) {
      layer->timed().query_prepared_bytes();
      bytes += layer->timed().weight_bytes();
    }
    constexpr uint64_t kBlocks = 3;  // dense, before, after
    copies = settings_.set_bytes != 0
                 ? static_cast<size_t>((settings_.set_bytes + bytes - 1) / bytes)
                 : cold_copies(bytes, bytes, machine().l3_bytes, copy_budget_bytes() / kBlocks);
    for (size_t i = 0; i < layers.size(); ++i)
      if (const std::string wrong = layers[i]->make_and_verify(copies); !wrong.empty())
        throw ProviderFault("not timed: wrong answer: " + layer_name(i) + ": " + wrong);
    return std::make_unique<TimedBlock>(std::move(layers), kernel);
  }

 private:
  const BlockSettings& settings_;
};

// A wrong dense layer is not the fault of the kernel that is judged.
template <class Call>
auto guard_dense(const Implementation& dense, Call call) {
  try {
    return call();
  } catch (const ProviderFault& fault) {
    throw std::runtime_error("the dense baseline " + dense.name() + ": " + fault.what());
  }
}

bool same_planes(const std::vector<Planes>& a, const std::vector<Planes>& b) {
  return std::ranges::equal(a, b, [](const Planes& one, const Planes& other) {
    return std::ranges::equal(
        one, other, [](const Plane& x, const Plane& y) { return x.name == y.name && x.bytes == y.bytes; });
  });
}

Interval median_us_of(const Series& entry, uint64_t seed) {
  std::vector<double> us;
  std::copy_if(entry.us.begin(), entry.us.end(), std::back_inserter(us), [](double v) { return v > 0; });
  return bootstrap_median(us, block_length(us.size()), kLatencyConfidence, 1000, seed);
}

void time_blocks(const BlockSettings& settings, TimedBlock& dense, TimedBlock& before, TimedBlock& after,
                 BlockTimes& times) {
  // `again` starts half the copies away, so that neither finds in a cache what the other has just read.
  std::vector<Series> series = {{.name = "before", .target = &before},
                                {.name = "after", .target = &after},
                                {.name = "again", .target = &before, .next_copy = before.copies() / 2},
                                {.name = "dense", .target = &dense}};
  Canary canary(settings.threads);
  const double start_us = settings.stopwatch.canary_us(canary);
  settings.stopwatch.rounds(series, settings.budget_s, settings.seed);
  if (start_us > 0) times.canary_drift = settings.stopwatch.canary_us(canary) / start_us;
  const auto ratio = [&](const char* a, const char* b) {
    return abba_interval(find_series(series, a)->us, find_series(series, b)->us, kLatencyConfidence,
                         settings.seed);
  };
  times.before_us = median_us_of(series[0], settings.seed);
  times.after_us = median_us_of(series[1], settings.seed);
  times.dense_us = median_us_of(series[3], settings.seed);
  times.speedup_before = ratio("dense", "before");
  times.speedup_after = ratio("dense", "after");
  times.before_over_after = ratio("before", "after");
  times.itself = ratio("again", "before");
  times.samples_us = series[0].us;
  if (times.doubt.empty() && alarms(times.itself)) times.doubt = "ratio_to_itself is not 1";
  if (times.doubt.empty() && canary_changed(times.canary_drift)) times.doubt = "the canary's speed changed";
}

void claim_block_speed(const Scheme& scheme, const BlockSettings& settings, BlockTimes& times) {
  const std::string block = std::string(scheme.name()) + " m=" + std::to_string(times.m) +
                            " block of Llama-3.1-8B" +
                            (settings.shrink == 1 ? "" : "/" + std::to_string(settings.shrink));
  const std::string dense = dense_against(kBlockDType, times.dense);
  const bool doubt = !times.doubt.empty();
  times.claims = {faster_claim(block, dense, times.speedup_before, doubt),
                  faster_claim(block + " after loading", dense, times.speedup_after, doubt),
                  as_fast_claim(block + " after loading", "before saving", times.before_over_after, doubt)};
  times.claims[0].required = times.claims[1].required = times.m < kPrefillRows;
}

}  // namespace

bool has_block_file(const Scheme& scheme) { return block_file_layout(scheme).has_value(); }

BlockPlanes save_and_load_block(const BlockSettings& settings, const Scheme& scheme, const Registry* registry,
                                const std::filesystem::path& folder) {
  if (!has_block_file(scheme)) throw std::runtime_error("no file format for " + std::string(scheme.name()));
  const Block block(settings);
  BlockPlanes planes;
  for (size_t i = 0; i < kLayerCount; ++i)
    planes.made.push_back(block.quantized_layer(scheme, i, registry, planes.quantized_by));
  const std::filesystem::path file = folder / ("block_" + std::string(scheme.name()) + ".pt");
  block.save(scheme, planes.made, file);
  planes.file_bytes = std::filesystem::file_size(file);
  planes.loaded = block.load(scheme, file);
  std::filesystem::remove(file);
  planes.is_equal = same_planes(planes.made, planes.loaded);
  return planes;
}

Support block_support(const BlockSettings& settings, const Scheme& scheme, const BlockPlanes& planes,
                      const Implementation& linear, int64_t m) {
  for (const auto& layer : Block(settings).layers_of(&scheme, planes.made, *linear.kernel, m)) {
    if (const Support support = layer->supports(); support.status != QCTS_OK) return support;
    if (layer->timed().timed_by_provider())
      return {QCTS_UNSUPPORTED, "a provider that is a program times one layer at a time"};
  }
  return {QCTS_OK, ""};
}

BlockTimes time_block(const BlockSettings& settings, const Scheme& scheme, const BlockPlanes& planes,
                      const Implementation& linear, const Implementation& dense, int64_t m) {
  const Block block(settings);
  BlockTimes times;
  times.m = m;
  times.linear = linear.name();
  times.dense = dense.name();
  const auto dense_block = guard_dense(dense, [&] {
    return block.verified(block.layers_of(nullptr, {}, *dense.kernel, m), *dense.kernel, times.dense_copies);
  });
  const auto before = block.verified(block.layers_of(&scheme, planes.made, *linear.kernel, m), *linear.kernel,
                                     times.quantized_copies);
  const auto after = block.verified(block.layers_of(&scheme, planes.loaded, *linear.kernel, m),
                                    *linear.kernel, times.quantized_copies);
  BusyThreads busy;
  if (const std::string many = too_many_threads(*before, settings.threads, busy, settings.spent);
      !many.empty())
    throw ProviderFault("not timed: " + many);
  times.busy_threads = busy.calling;
  if (busy.resting > kBusyMargin) times.doubt = "threads of its process are busy between calls";
  times.dense_bytes = dense_block->weight_bytes();
  times.quantized_bytes = before->weight_bytes();
  time_blocks(settings, *dense_block, *before, *after, times);
  before->verify();
  after->verify();
  guard_dense(dense, [&] { dense_block->verify(); });
  claim_block_speed(scheme, settings, times);
  return times;
}

}  // namespace qcts
