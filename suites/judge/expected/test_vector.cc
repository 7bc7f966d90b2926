// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/expected/test_vector.h"

#include <algorithm>
#include <stdexcept>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/transcode/kernel_planes.h"
#include "reference/formats/safetensors/safetensors.h"
#include "reference/numerics/noise.h"
#include "reference/schemes/choices/other_recipes.h"
#include "suites/inputs/generate.h"
#include "suites/inputs/inputs.h"

namespace qcts {
namespace {

// One tensor of a golden: the producer's file, and the values its producer's own tools computed.
class GoldenTensor {
 public:
  GoldenTensor(const Golden& golden, const std::string& name)
      : golden_(golden), info_(find_info(golden, name)) {
    const Checkpoint checkpoint = open_checkpoint(golden.file);
    const auto found = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                    [&](const NamedTensor& tensor) { return tensor.name == name; });
    if (found == checkpoint.tensors.end())
      throw std::runtime_error(golden.id + ": the file has no tensor " + name);
    if (!golden.expected.empty()) expected_ = read_safetensors(MappedFile::open(golden.expected.string()));
    if (is_joined()) {
      read_joined(*found);
      return;
    }
    std::optional<SchemeTensor> tensor = scheme_tensor(*found, info_.layout);
    if (!tensor) throw std::runtime_error(golden.id + ": " + name + " has no known scheme");
    if (!same_meaning(tensor->scheme->name(), info_.scheme) || tensor->layout != info_.layout ||
        tensor->activation != info_.activation)
      throw std::runtime_error(golden.id + ": " + name + " is " + std::string(tensor->scheme->name()) +
                               " in layout " + std::string(tensor->layout.name()) + ", " +
                               std::string(tensor->activation.name()) + ", the manifest says " +
                               info_.scheme + " in layout " + info_.layout + ", " + info_.activation);
    tensor_ = std::move(*tensor);
    tensor_.scheme = find_scheme(info_.scheme);  // the file does not record the recipe
  }

  const SchemeTensor& tensor() const { return tensor_; }
  const Golden::TensorInfo& info() const { return info_; }
  WeightShape weight() const { return {tensor_.dtype, tensor_.n, tensor_.k}; }

  // Is it a weight of another library, in the planes of a scheme?
  bool is_joined() const { return !info_.kernel_scheme.empty(); }
  // Did the model see the rows of the planes as columns?
  bool is_transposed() const { return is_transposed_; }

  bool has(std::string_view what) const { return entry(what) != nullptr; }
  // Throws std::runtime_error naming the missing entry.
  const Tensor& expected(std::string_view what) const {
    const SafetensorsEntry* found = entry(what);
    if (!found)
      throw std::runtime_error(golden_.id + ": the expected file has no " + info_.name + "|" +
                               std::string(what));
    return found->tensor;
  }
  std::vector<std::byte> bytes(std::string_view what) const { return row_major_bytes(expected(what)); }

  std::vector<std::byte> float_weight() const {
    if (has("w")) return bytes("w");
    if (!info_.w_seed) throw std::runtime_error(golden_.id + ": " + info_.name + " has neither w nor w_seed");
    return noise_bytes(*info_.w_seed, static_cast<size_t>(tensor_.n * tensor_.k), tensor_.dtype);
  }

  // Returns the producer's planes in layout "plain" without using our unpacking: the file's own if they are
  // plain, otherwise the codes and parameters that the producer's tools gave.
  Planes plain_from_producer() const {
    if (tensor_.layout == kPlain) return tensor_.planes;
    Planes planes;
    for (const PlaneSpec& spec : tensor_.scheme->plane_specs(weight())) {
      Plane plane{spec.name, spec.dtype, spec.shape,
                  spec.name == "qdata" ? codes_as(spec) : bytes(spec.name)};
      if (plane.bytes.size() != spec.bytes())
        throw std::runtime_error(golden_.id + ": " + info_.name + "|" + spec.name + " has " +
                                 std::to_string(plane.bytes.size()) + " bytes, the scheme " +
                                 std::to_string(spec.bytes()));
      planes.push_back(std::move(plane));
    }
    return planes;
  }

  // Returns the file's planes, unpacked by the reference if they are packed.
  Planes plain_from_file() const {
    if (tensor_.layout == kPlain) return tensor_.planes;
    return tensor_.scheme->unpack(tensor_.planes, weight(), tensor_.layout);
  }

 private:
  void read_joined(const NamedTensor& found) {
    tensor_ = kernel_planes(found);
    is_transposed_ = found.coded->transposed;
    if (tensor_.scheme->name() != info_.kernel_scheme)
      throw std::runtime_error(golden_.id + ": " + info_.name + " has planes of " +
                               std::string(tensor_.scheme->name()) + ", kernel_planes.json says " +
                               info_.kernel_scheme);
  }

  static const Golden::TensorInfo& find_info(const Golden& golden, const std::string& name) {
    for (const Golden::TensorInfo& info : golden.tensors)
      if (info.name == name) return info;
    throw std::runtime_error(golden.id + ": the manifest has no tensor " + name);
  }

  const SafetensorsEntry* entry(std::string_view what) const {
    const std::string key = info_.name + "|" + std::string(what);
    for (const SafetensorsEntry& entry : expected_.entries)
      if (entry.name == key) return &entry;
    return nullptr;
  }

  // Converts the producer's record (one code per element [n, k]) to the plane. Two codes per byte: even k in
  // the high nibble, as in the bytes that aten::_convert_weight_to_int4pack takes (torch 2.13).
  std::vector<std::byte> codes_as(const PlaneSpec& spec) const {
    std::vector<std::byte> codes = bytes("codes");
    if (codes.size() == spec.bytes()) return codes;
    if (codes.size() != 2 * spec.bytes())
      throw std::runtime_error(golden_.id + ": " + info_.name + "|codes does not fit plane " + spec.name);
    std::vector<std::byte> pairs(spec.bytes());
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = codes[2 * i] << 4 | codes[2 * i + 1];
    return pairs;
  }

  const Golden& golden_;
  const Golden::TensorInfo& info_;
  SchemeTensor tensor_;
  bool is_transposed_ = false;
  Safetensors expected_;
};

void add_rows_of_x(const GoldenTensor& golden, KernelInput& input) {
  const Tensor& x = golden.expected("x");
  input.planes = golden.plain_from_file();
  for (const Plane& plane : golden.tensor().policy_planes) input.planes.push_back(plane);
  input.activation = golden.tensor().activation;
  input.x = row_major_bytes(x);
  input.x_dtype = x.dtype;
  input.m = input.weight.k == 0 ? 0 : x.numel() / input.weight.k;
}

Planes recorded_activation(const GoldenTensor& golden, const KernelInput& input) {
  Planes planes;
  for (const PlaneSpec& spec : input.scheme->activation_specs(input.x_matrix(), input.activation)) {
    planes.push_back({spec.name, spec.dtype, spec.shape, golden.bytes("act." + spec.name)});
    if (planes.back().bytes.size() != spec.bytes() || golden.expected("act." + spec.name).dtype != spec.dtype)
      throw std::runtime_error(golden.info().name + "|act." + spec.name + " is not a plane of " +
                               std::string(input.activation.name()));
  }
  return planes;
}

void add_linear(const GoldenTensor& golden, TestVector& test_vector) {
  KernelInput& input = test_vector.input;
  add_rows_of_x(golden, input);
  input.y_dtype = golden.expected("y").dtype;
  test_vector.recorded_y = golden.bytes("y");
  if (golden.has("bias")) {
    input.bias = golden.bytes("bias");
    input.bias_dtype = golden.expected("bias").dtype;
  }
}

constexpr int64_t kJoinedRows = 5;  // of x

// Dequantizes to what the library recorded, if it did, and multiplies with noise. No library records that
// product for such files.
TestVector joined_test_vector(const Case& c, const GoldenTensor& golden) {
  KernelInput input;
  input.op = c.id.op;
  input.scheme = golden.tensor().scheme;
  input.weight = golden.weight();
  input.x_dtype = input.y_dtype = input.bias_dtype = input.weight.dtype;
  input.planes = golden.tensor().planes;
  if (c.id.op == Op::linear) {
    input.m = kJoinedRows;
    input.activation = c.activation();
    input.x =
        noise_bytes(name_hash(c.id.input), static_cast<size_t>(input.m * input.weight.k), input.x_dtype);
  }
  TestVector test_vector = test_vector_for(std::move(input));
  if (c.id.op == Op::dequantize && golden.has("dequant") && !golden.is_transposed())
    test_vector.expected.y = golden.bytes("dequant");
  return test_vector;
}

TestVector golden_test_vector(const Case& c, const TensorQuestion& question) {
  const GoldenTensor golden(*question.golden, question.tensor);
  if (golden.is_joined()) return joined_test_vector(c, golden);
  TestVector test_vector;
  KernelInput& input = test_vector.input;
  input.op = c.id.op;
  input.scheme = golden.tensor().scheme;
  input.weight = golden.weight();
  input.x_dtype = input.y_dtype = input.bias_dtype = input.weight.dtype;
  if (c.id.op == Op::quantize) {
    // Include the layout: the producers of two layouts may use different recipes.
    input.layout = golden.tensor().layout;
    if (golden.has("w")) input.weight.dtype = golden.expected("w").dtype;  // not every file records it
    input.x = golden.float_weight();
    test_vector.expected.planes = golden.plain_from_producer();
  } else if (c.id.op == Op::quantize_activation) {
    add_rows_of_x(golden, input);
    test_vector.expected.planes = recorded_activation(golden, input);
  } else if (c.id.op == Op::dequantize) {
    input.planes = golden.plain_from_file();
    test_vector.expected.y = golden.bytes("dequant");
  } else if (c.id.op == Op::pack || c.id.op == Op::unpack) {
    input.layout = golden.tensor().layout;
    Planes plain = golden.plain_from_producer();
    input.planes = c.id.op == Op::pack ? plain : golden.tensor().planes;
    test_vector.expected.planes = c.id.op == Op::pack ? golden.tensor().planes : std::move(plain);
  } else if (c.id.op == Op::linear) {
    add_linear(golden, test_vector);
    test_vector.recorded_dense =
        std::ranges::find(question.golden->flags, "dense_linear") != question.golden->flags.end();
  } else {
    throw std::logic_error("no golden has expected values for op " + std::string(op_name(c.id.op)));
  }
  return test_vector;
}

TestVector synthetic_test_vector(const Case& c, Synthetic synthetic, uint64_t seed,
                                 const PlayedRecipe* recipe) {
  if (seed != 0) synthetic.seed = splitmix64(synthetic.seed, seed);
  Generated made = generate(*c.scheme, c.id.op, c.layout(), synthetic, synthetic.seed);
  made.input.recipe = recipe;
  TestVector test_vector = test_vector_for(std::move(made.input));
  if (test_vector.is_refused != (synthetic.generator == Generator::not_sparse))
    throw std::logic_error(c.id.text() +
                           ": the reference disagrees about whether the scheme can represent it");
  test_vector.exact_bits = made.exact_bits;
  test_vector.related = std::move(made.related);
  if (!test_vector.related.empty()) test_vector.relation = synthetic.generator;
  return test_vector;
}

const PlayedRecipe* recipe_of(const Case& c, const PlayedProfiles* played) {
  return played != nullptr && c.scheme != nullptr ? played->recipe(c.id.op, *c.scheme) : nullptr;
}

}  // namespace

Planes quantized_planes(const KernelInput& input) {
  const Scheme& scheme = *input.scheme;
  if (input.op == Op::quantize)
    return quantized_by(input.recipe, scheme, {input.weight.dtype, input.weight.n, input.weight.k, input.x},
                        input.layout);
  if (input.recipe != nullptr && input.recipe->quantize) return input.recipe->quantize(input.x_matrix());
  return scheme.quantize_activation(input.x_matrix(), input.activation, input.planes);
}

TestVector test_vector_for(KernelInput given) {
  TestVector test_vector;
  test_vector.input = std::move(given);
  const KernelInput& input = test_vector.input;
  const Scheme& scheme = *input.scheme;
  if (input.op == Op::quantize) {
    try {
      test_vector.expected.planes = quantized_planes(input);
    } catch (const std::invalid_argument&) {
      test_vector.is_refused = true;
    }
  } else if (input.has_no_rows()) {
    // There is no answer.
  } else if (input.op == Op::quantize_activation) {
    test_vector.expected.planes = quantized_planes(input);
  } else if (input.op == Op::dequantize) {
    test_vector.expected.y = scheme.dequantize(input.planes, input.weight);
  } else if (input.op == Op::pack) {
    test_vector.expected.planes = scheme.pack(input.planes, input.weight, input.layout);
  } else if (input.op == Op::unpack) {
    test_vector.expected.planes = scheme.unpack(input.planes, input.weight, input.layout);
  } else if (input.op != Op::linear) {
    throw std::invalid_argument("the reference has no op " + std::string(op_name(input.op)));
  }
  return test_vector;
}

TestVector make_test_vector(const Case& c, uint64_t seed, const PlayedProfiles* played) {
  const PlayedRecipe* recipe = recipe_of(c, played);
  if (const auto* tensor = std::get_if<TensorQuestion>(&c.question)) {
    TestVector test_vector = golden_test_vector(c, *tensor);
    test_vector.input.recipe = recipe;
    if (recipe != nullptr && recipe->quantize)
      test_vector.expected.planes = quantized_planes(test_vector.input);
    return test_vector;
  }
  if (c.synthetic() && c.scheme) return synthetic_test_vector(c, *c.synthetic(), seed, recipe);
  throw std::logic_error(c.id.text() + " has neither a golden nor a synthetic input");
}

const TestVector& TestVectorCache::get(const Case& c, uint64_t seed, const PlayedProfiles* played) {
  if (test_vector_ && case_id_ == c.id && seed_ == seed) return *test_vector_;
  reference_.reset();
  beside_.clear();
  test_vector_.reset();
  test_vector_ = qcts::make_test_vector(c, seed, played);
  case_id_ = c.id;
  seed_ = seed;
  return *test_vector_;
}

const TestVector& TestVectorCache::beside(const std::string& name, const std::function<TestVector()>& make) {
  const auto found = beside_.find(name);
  return found != beside_.end() ? found->second : beside_.emplace(name, make()).first->second;
}

const LinearReference& TestVectorCache::reference() {
  if (!reference_) reference_.emplace(test_vector_->input);
  return *reference_;
}

}  // namespace qcts
