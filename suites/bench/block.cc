// SPDX-License-Identifier: BSD-3-Clause
#include "suites/bench/block.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "reference/dialects/dialects.h"
#include "reference/dialects/encoders/encode.h"
#include "reference/numerics/noise.h"
#include "suites/judge/latency_case.h"
#include "suites/judge/latency_measures.h"
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

// Times all layers of a block, one after the other, as one target.
class TimedBlock final : public TimedTarget {
 public:
  explicit TimedBlock(std::vector<std::unique_ptr<VerifiedKernel>> layers) : layers_(std::move(layers)) {}
  void call(size_t copy) override {
    for (const auto& layer : layers_) layer->timed().call(copy);
  }
  size_t copies() const override { return layers_.front()->timed().copies(); }
  uint64_t weight_bytes() const {
    uint64_t bytes = 0;
    for (const auto& layer : layers_) bytes += layer->timed().weight_bytes();
    return bytes;
  }

 private:
  std::vector<std::unique_ptr<VerifiedKernel>> layers_;
};

class Block {
 public:
  Block(const BlockRequest& request, const Registry& registry, const Registry& baseline)
      : request_(request), registry_(registry), baseline_(baseline) {}

  WeightShape shape(size_t layer) const {
    return {DType::bfloat16, kBlockLayers[layer].n / request_.shrink,
            kBlockLayers[layer].k / request_.shrink};
  }

  std::vector<std::byte> weight(size_t layer) const {
    const WeightShape s = shape(layer);
    return noise_bytes(request_.seed + layer, static_cast<size_t>(s.n * s.k), s.dtype, 0x1p-5);
  }

  // Quantizes with the best kernel available, otherwise with the reference.
  std::vector<Planes> quantized(const Scheme& scheme, BlockRow& row) const {
    std::vector<Planes> layers;
    for (size_t i = 0; i < kLayerCount; ++i) layers.push_back(quantized_layer(scheme, i, row));
    return layers;
  }

  void save(const Scheme& scheme, const std::vector<Planes>& layers,
            const std::filesystem::path& file) const {
    const Layout layout = file_layout(scheme);
    std::vector<SchemeTensor> tensors;
    for (size_t i = 0; i < layers.size(); ++i) {
      const WeightShape s = shape(i);
      const bool packed = layout != kPlain;
      tensors.push_back(
          {&scheme, layout, s.dtype, s.n, s.k, packed ? scheme.pack(layers[i], s, layout) : layers[i]});
    }
    std::vector<OutputTensor> encoded;
    for (size_t i = 0; i < tensors.size(); ++i) encoded.push_back({name(i), nullptr, &tensors[i]});
    const EditedZip edited = encode_state_dict(encoded);
    write_file_atomically(
        file, [&](ByteSink& out) { write_torch_zip("block", edited.root, edited.storages, out); });
  }

  std::vector<Planes> load(const Scheme& scheme, const std::filesystem::path& file) const {
    const Checkpoint checkpoint = open_checkpoint(file);
    std::vector<Planes> layers;
    for (size_t i = 0; i < kLayerCount; ++i) {
      const auto found = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                      [&](const NamedTensor& tensor) { return tensor.name == name(i); });
      if (found == checkpoint.tensors.end()) throw std::runtime_error("the file has no " + name(i));
      const std::optional<SchemeTensor> tensor = scheme_tensor(*found, file_layout(scheme).name());
      if (!tensor || tensor->scheme->meaning() != scheme.meaning())
        throw std::runtime_error("the file's " + name(i) + " is not " + std::string(scheme.name()));
      layers.push_back(tensor->layout == kPlain ? tensor->planes
                                                : scheme.unpack(tensor->planes, shape(i), tensor->layout));
    }
    return layers;
  }

  std::unique_ptr<TimedBlock> make(const Scheme& scheme, const std::vector<Planes>& layers, int64_t m,
                                   BlockRow& row) const {
    std::vector<std::unique_ptr<VerifiedKernel>> timed;
    for (const Implementation* implementation : registry_.find(QCTS_OP_LINEAR, scheme.family())) {
      if (!implementation->machine_refusal().empty()) continue;
      timed.clear();
      for (size_t i = 0; i < layers.size(); ++i) {
        KernelInput input = with_x(i, m);
        input.scheme = &scheme;
        input.planes = layers[i];
        timed.push_back(
            std::make_unique<VerifiedKernel>(*implementation->kernel, std::move(input), request_.threads));
        if (timed.back()->supports().status != QCTS_OK) break;
      }
      if (timed.back()->supports().status != QCTS_OK) continue;
      row.linear = implementation->name();
      return verified(std::move(timed), row.quantized_copies);
    }
    throw std::runtime_error("no kernel here runs linear for " + std::string(scheme.name()));
  }

  std::unique_ptr<TimedBlock> make_dense(int64_t m, BlockRow& row) const {
    const auto found = baseline_.find(QCTS_OP_LINEAR, "dense");
    if (found.empty()) throw std::runtime_error("no provider has a dense linear");
    std::vector<std::unique_ptr<VerifiedKernel>> timed;
    for (size_t i = 0; i < kLayerCount; ++i) {
      KernelInput input = with_x(i, m);
      const WeightShape s = shape(i);
      input.planes.push_back({"w", s.dtype, {s.n, s.k}, weight(i)});
      timed.push_back(
          std::make_unique<VerifiedKernel>(*found.front()->kernel, std::move(input), request_.threads));
    }
    row.dense = found.front()->name();
    return verified(std::move(timed), row.dense_copies);
  }

 private:
  static std::string name(size_t layer) {
    return std::string("block.") + kBlockLayers[layer].name + ".weight";
  }

  // Returns the first layout that a torchao class can store.
  static Layout file_layout(const Scheme& scheme) {
    for (const Layout layout : scheme.layouts())
      if (torchao_class(scheme, layout, kWeightOnly, "torchao_v2")) return layout;
    throw std::runtime_error("no file format for " + std::string(scheme.name()));
  }

  Planes quantized_layer(const Scheme& scheme, size_t layer, BlockRow& row) const {
    const WeightShape s = shape(layer);
    KernelInput input;
    input.op = Op::quantize;
    input.scheme = &scheme;
    input.weight = s;
    input.x_dtype = s.dtype;
    input.x = weight(layer);
    for (const Implementation* implementation : registry_.find(QCTS_OP_QUANTIZE, scheme.family())) {
      if (!implementation->machine_refusal().empty()) continue;
      TimedKernel timed(*implementation->kernel, input, request_.threads);
      if (timed.supports().status != QCTS_OK) continue;
      timed.make_ready(1);
      timed.call(0);
      row.quantize = implementation->name();
      return timed.answer().planes;
    }
    row.quantize = "reference";
    return scheme.quantize({s.dtype, s.n, s.k, input.x});
  }

  KernelInput with_x(size_t layer, int64_t m) const {
    KernelInput input;
    input.op = Op::linear;
    input.weight = shape(layer);
    input.m = m;
    input.x_dtype = input.y_dtype = input.bias_dtype = input.weight.dtype;
    input.x =
        noise_bytes(request_.seed + 100 + layer, static_cast<size_t>(m * input.weight.k), input.x_dtype);
    return input;
  }

  std::unique_ptr<TimedBlock> verified(std::vector<std::unique_ptr<VerifiedKernel>> layers,
                                       size_t& copies) const {
    uint64_t bytes = 0;
    for (const auto& layer : layers) {
      layer->timed().query_prepared_bytes();
      bytes += layer->timed().weight_bytes();
    }
    copies = static_cast<size_t>((request_.set_bytes + bytes - 1) / bytes);
    for (size_t i = 0; i < layers.size(); ++i)
      if (const std::string wrong = layers[i]->make_and_verify(copies); !wrong.empty())
        throw std::runtime_error(name(i) + ": " + wrong);
    return std::make_unique<TimedBlock>(std::move(layers));
  }

  const BlockRequest& request_;
  const Registry& registry_;
  const Registry& baseline_;
};

bool same_planes(const std::vector<Planes>& a, const std::vector<Planes>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    for (size_t p = 0; p < a[i].size(); ++p)
      if (a[i][p].name != b[i][p].name || a[i][p].bytes != b[i][p].bytes) return false;
  }
  return true;
}

Interval median_of(const Series& entry, uint64_t seed) {
  std::vector<double> us;
  std::copy_if(entry.us.begin(), entry.us.end(), std::back_inserter(us), [](double v) { return v > 0; });
  return bootstrap_median(us, block_length(us.size()), kLatencyConfidence, 1000, seed);
}

void time_row(TimedBlock& dense, TimedBlock& before, TimedBlock& after, const BlockRequest& request,
              BlockRow& row) {
  std::vector<Series> series = {{.name = "before", .target = &before},
                                {.name = "after", .target = &after},
                                {.name = "dense", .target = &dense}};
  time_rounds(series, request.budget_s, request.seed);
  const auto ratio = [&](const Series& a, const Series& b) {
    return abba_interval(a.us, b.us, kLatencyConfidence, request.seed);
  };
  row.before_us = median_of(series[0], request.seed);
  row.after_us = median_of(series[1], request.seed);
  row.dense_us = median_of(series[2], request.seed);
  row.speedup_before = ratio(series[2], series[0]);
  row.speedup_after = ratio(series[2], series[1]);
  row.before_over_after = ratio(series[0], series[1]);
}

}  // namespace

std::vector<BlockRow> run_block(const BlockRequest& request, const Registry& registry,
                                const Registry& baseline, const std::filesystem::path& folder,
                                const std::function<void(const std::string&)>& progress) {
  const Block block(request, registry, baseline);
  std::vector<BlockRow> rows;
  for (const std::string& name : request.schemes) {
    const Scheme* scheme = find_scheme(name);
    if (!scheme) throw std::runtime_error("unknown scheme '" + name + "'");
    BlockRow common;
    common.scheme = name;
    progress(name + ": quantize, save, load");
    const std::vector<Planes> made = block.quantized(*scheme, common);
    const std::filesystem::path file = folder / ("block_" + name + ".pt");
    block.save(*scheme, made, file);
    common.file_bytes = std::filesystem::file_size(file);
    const std::vector<Planes> loaded = block.load(*scheme, file);
    std::filesystem::remove(file);
    common.reloaded_equal = same_planes(made, loaded);
    for (const int64_t m : request.m) {
      BlockRow row = common;
      row.m = m;
      progress(name + ": m = " + std::to_string(m));
      const auto dense = block.make_dense(m, row);
      const auto before = block.make(*scheme, made, m, row), after = block.make(*scheme, loaded, m, row);
      row.dense_bytes = dense->weight_bytes();
      row.quantized_bytes = before->weight_bytes();
      time_row(*dense, *before, *after, request, row);
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace qcts
