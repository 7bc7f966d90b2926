// SPDX-License-Identifier: BSD-3-Clause
// The size kind. Compares payload bytes exactly with the scheme's size formula, the container's overhead with
// a stated bound, and the reduction with the scheme's target (suites/targets/size.json). A storage that
// several tensors share counts once.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <set>
#include <stdexcept>

#include "reference/dialects/blocks/blocks.h"
#include "reference/dialects/classes/coded_weight.h"
#include "reports/waivers.h"
#include "suites/judge/files/container_size.h"
#include "suites/judge/files/file_kinds.h"
#include "suites/judge/files/reached_bytes.h"
#include "suites/judge/files/size.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Mismatch bytes_mismatch(std::string where, uint64_t want, uint64_t got) {
  return {std::move(where), std::to_string(want) + " bytes", std::to_string(got) + " bytes", 1, 1};
}

}  // namespace

Json load_size_targets(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "size.json";
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  try {
    Json targets = Json::parse(in);
    if (targets.at("schema") != 1) throw std::runtime_error("schema is not 1");
    for (const char* key : {"base_bytes", "per_inner_tensor_bytes"})
      (void)targets.at("container").at(key).get<uint64_t>();
    for (const auto& [scheme, target] : targets.at("minimum_reduction").at("schemes").items()) {
      if (std::ranges::none_of(schemes(), [&](const Scheme* one) { return glob_match(scheme, one->name()); }))
        throw std::runtime_error("no scheme '" + scheme + "'");
      for (const char* key : {"min_k", "float32", "float16", "bfloat16"}) (void)target.at(key).get<double>();
    }
    return targets;
  } catch (const std::exception& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

SizeCount count_size(const Checkpoint& checkpoint, const LayoutHints& hints) {
  SizeCount count;
  count.file_bytes = checkpoint.file_bytes;
  const size_t shards = checkpoint.zips.size() + checkpoint.legacies.size() + checkpoint.safetensors.size() +
                        checkpoint.ggufs.size();
  count.files = std::max<uint64_t>(1, shards);
  count.payload_bytes = payload_bytes(checkpoint);
  count.metadata_bytes = metadata_bytes(checkpoint);
  count.padding_bytes = padding_bytes(checkpoint);
  count.dense_bytes = dense_bytes(checkpoint);
  if (checkpoint.script != nullptr)
    for (const ScriptRecord& record : checkpoint.script->records)
      for (const char* folder : {"code/", "extra/", "traced_inputs"})
        if (record.name.starts_with(folder)) count.program_bytes += record.stored_bytes;
  ReachedBytes bytes;
  std::set<const Storage*> of_weights;
  for (const NamedTensor& named : checkpoint.tensors) {
    const auto hint = hints.find(named.name);
    const std::optional<SchemeTensor> tensor = scheme_tensor(named, hint == hints.end() ? "" : hint->second);
    uint64_t element_bytes = 0, fresh_bytes = 0;
    for (const InnerTensor& inner : named.payload) {
      ++count.inner_tensors;
      const Storage* storage = inner.tensor.storage.get();
      if (is_beside_elements(inner.name)) {
        if (storage != nullptr && !of_weights.contains(storage))
          count.expected_bytes += bytes.add_whole(*storage);
        continue;
      }
      element_bytes += bytes_of(inner.tensor.dtype, inner.tensor.shape);
      if (storage == nullptr) continue;
      // A float tensor is expected to have its storage's size.
      const bool whole = !tensor && !named.coded && !named.blocks && !of_weights.contains(storage);
      if (tensor && bytes.reached(*storage) == 0) of_weights.insert(storage);
      fresh_bytes += whole ? bytes.add_whole(*storage) : bytes.add(inner.tensor);
    }
    // Several layers may share one static scale of x, which is stored once.
    const uint64_t shared_bytes = element_bytes - std::min(element_bytes, fresh_bytes);
    if (named.coded || named.blocks) {
      WeightSize weight;
      weight.name = named.name;
      weight.expected_bytes = weight.plain_bytes =
          named.coded ? named.coded->formula_bytes : block_formula_bytes(*named.blocks, named.shape);
      weight.element_bytes = element_bytes;
      weight.dense_bytes = bytes_of(named.dtype, named.shape);
      count.expected_bytes += weight.expected_bytes - std::min(weight.expected_bytes, shared_bytes);
      count.weights.push_back(weight);
      continue;
    }
    if (!tensor) {
      count.expected_bytes += fresh_bytes;
      count.float_bytes += fresh_bytes;
      continue;
    }
    WeightSize weight;
    weight.name = named.name;
    weight.scheme = tensor->scheme;
    weight.shape = {tensor->dtype, tensor->n, tensor->k};
    weight.expected_bytes = tensor->scheme->payload_bytes(weight.shape, tensor->layout, tensor->activation) +
                            static_cast<uint64_t>(tensor->stored_otherwise_bytes);
    weight.plain_bytes = tensor->scheme->payload_bytes(weight.shape, kPlain, tensor->activation);
    weight.policy_bytes =
        weight.plain_bytes - tensor->scheme->payload_bytes(weight.shape, kPlain, kWeightOnly);
    weight.element_bytes = element_bytes;
    weight.dense_bytes = bytes_of(weight.shape.dtype, std::vector<int64_t>{weight.shape.n, weight.shape.k});
    count.expected_bytes += weight.expected_bytes - std::min(weight.expected_bytes, shared_bytes);
    count.weights.push_back(weight);
  }
  for (const Storage* storage : of_weights)
    count.unseen_bytes += storage->bytes.size() - bytes.reached(*storage);
  return count;
}

uint64_t container_bound_bytes(const SizeCount& count, const Json& targets) {
  const Json& container = targets.at("container");
  return count.files * (container.at("base_bytes").get<uint64_t>() +
                        container.at("per_inner_tensor_bytes").get<uint64_t>() * count.inner_tensors);
}

std::optional<SizeFinding> size_finding(const SizeCount& count, const Json& targets) {
  for (const WeightSize& weight : count.weights)
    if (weight.element_bytes != weight.expected_bytes)
      return SizeFinding{"the payload of a weight differs from its scheme's size formula",
                         bytes_mismatch(weight.name, weight.expected_bytes, weight.element_bytes)};
  const uint64_t formula_bytes = count.expected_bytes + count.unseen_bytes;
  if (count.payload_bytes != formula_bytes)
    return SizeFinding{"the payload of the file differs from the sum of its weights' size formulas",
                       bytes_mismatch("payload", formula_bytes, count.payload_bytes)};
  const uint64_t container = count.file_bytes - std::min(count.file_bytes, count.own_bytes());
  const uint64_t bound = container_bound_bytes(count, targets);
  if (container > bound)
    return SizeFinding{"the container's overhead exceeds its bound",
                       Mismatch{"container", "at most " + std::to_string(bound) + " bytes",
                                std::to_string(container) + " bytes", 1, 1}};
  for (const WeightSize& weight : count.weights) {
    const std::optional<double> least = minimum_reduction(weight, targets);
    const double reduction = static_cast<double>(weight.dense_bytes) /
                             static_cast<double>(weight.element_bytes - weight.policy_bytes);
    if (least && !(reduction >= *least)) {
      char want[32], got[32];
      std::snprintf(want, sizeof want, "at least %.2fx", *least);
      std::snprintf(got, sizeof got, "%.4fx", reduction);
      return SizeFinding{"the size reduction of a weight misses its scheme's target",
                         Mismatch{weight.name, want, got, 1, 1}};
    }
  }
  return std::nullopt;
}

std::optional<double> minimum_reduction(const WeightSize& weight, const Json& targets) {
  if (weight.scheme == nullptr || weight.expected_bytes > weight.plain_bytes) return std::nullopt;
  for (const auto& [name, target] : targets.at("minimum_reduction").at("schemes").items()) {
    if (!glob_match(name, weight.scheme->name())) continue;
    if (weight.shape.k < target.at("min_k").get<int64_t>()) return std::nullopt;
    return target.at(std::string(dtype_name(weight.shape.dtype))).get<double>();
  }
  return std::nullopt;
}

void add_size_measures(const SizeCount& count, const Json& targets, Verdict& verdict) {
  const auto add = [&](const char* name, const char* unit, double value) {
    verdict.measures.push_back({name, unit, value, {}, {}, {}});
  };
  add("payload_bytes", "bytes", static_cast<double>(count.payload_bytes));
  add("formula_bytes", "bytes", static_cast<double>(count.expected_bytes));
  if (count.unseen_bytes > 0) add("unseen_bytes", "bytes", static_cast<double>(count.unseen_bytes));
  add("dense_bytes", "bytes", static_cast<double>(count.dense_bytes));
  add("float_bytes", "bytes", static_cast<double>(count.float_bytes));
  add("file_bytes", "bytes", static_cast<double>(count.file_bytes));
  add("container_bytes", "bytes",
      static_cast<double>(count.file_bytes - std::min(count.file_bytes, count.own_bytes())));
  if (count.metadata_bytes > 0) add("metadata_bytes", "bytes", static_cast<double>(count.metadata_bytes));
  if (count.padding_bytes > 0) add("padding_bytes", "bytes", static_cast<double>(count.padding_bytes));
  if (count.program_bytes > 0) add("program_bytes", "bytes", static_cast<double>(count.program_bytes));
  add("container_bound_bytes", "bytes", static_cast<double>(container_bound_bytes(count, targets)));
  if (!count.weights.empty() && count.payload_bytes > 0)
    add("reduction", "x", static_cast<double>(count.dense_bytes) / static_cast<double>(count.payload_bytes));
}

void judge_size(const Case& c, const JudgeContext& context, Verdict& verdict) {
  const Json targets = load_size_targets(context.targets);
  LayoutHints hints;
  for (const Golden::TensorInfo& info : c.golden()->tensors) hints[info.name] = info.layout;
  SizeCount count = count_size(open_checkpoint(c.golden()->file, context.open), hints);
  // The golden says whether a producer may have saved more storage than its tensors use.
  if (std::ranges::find(c.golden()->flags, "unseen_storage") == c.golden()->flags.end())
    count.unseen_bytes = 0;
  add_size_measures(count, targets, verdict);
  if (c.golden()->upstream_payload_bytes)
    verdict.measures.push_back({"upstream_payload_bytes",
                                "bytes",
                                static_cast<double>(*c.golden()->upstream_payload_bytes),
                                {},
                                {},
                                {}});
  std::optional<SizeFinding> finding = size_finding(count, targets);
  const auto compare = [&](const char* what, std::optional<uint64_t> want, uint64_t got) {
    if (!finding && want && *want != got)
      finding = SizeFinding{"the producer's byte count differs", bytes_mismatch(what, *want, got)};
  };
  compare("payload", c.golden()->payload_bytes, count.payload_bytes);
  compare("dense", c.golden()->dense_bytes, count.dense_bytes);
  if (finding) {
    verdict.status = Status::fail;
    verdict.reason = finding->reason;
    verdict.mismatch = finding->mismatch;
    return;
  }
  // Would one more byte have been noticed?
  SizeCount heavier = count;
  ++heavier.payload_bytes;
  verdict.status = Status::pass;
  if (!size_finding(heavier, targets))
    verdict.findings.push_back(
        {Caveat::unnoticed_change, "one more byte of payload would not have been noticed"});
}

}  // namespace qcts
