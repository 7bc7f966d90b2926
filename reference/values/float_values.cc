// SPDX-License-Identifier: BSD-3-Clause
// Float tensors, and quantized tensors that no scheme describes.
#include <algorithm>
#include <array>

#include "reference/dialects/dense.h"
#include "reference/numerics/special_values.h"
#include "reference/values/collector.h"

namespace qcts {
namespace {

std::string_view last_step(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(dot + 1);
}

// The states of torch.optim and of torchao.optim, per parameter.
bool is_optimizer_state(const NamedTensor& tensor) {
  constexpr std::array<std::string_view, 18> kStates = {"exp_avg",
                                                        "exp_avg_sq",
                                                        "max_exp_avg_sq",
                                                        "exp_inf",
                                                        "momentum_buffer",
                                                        "square_avg",
                                                        "grad_avg",
                                                        "acc_delta",
                                                        "sum",
                                                        "prev",
                                                        "step_size",
                                                        "prev_flat_grad",
                                                        "mu_product",
                                                        "row_var",
                                                        "col_var",
                                                        "ax",
                                                        "eta",
                                                        "mu"};
  if (tensor.type.starts_with("OptimState")) return true;
  return tensor.name.find("state.") != std::string::npos &&
         std::ranges::find(kStates, last_step(tensor.name)) != kStates.end();
}

// Observers of torch.ao begin with min_val = inf and max_val = -inf.
bool is_observer_range(std::string_view name) {
  const std::string_view step = last_step(name);
  return step == "min_val" || step == "max_val" || step == "min_vals" || step == "max_vals";
}

// Names an element of a tensor by its indices: "[3, 17]".
std::string index_text(const std::vector<int64_t>& shape, uint64_t index) {
  std::vector<uint64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const uint64_t size = static_cast<uint64_t>(shape[d]);
    at[d] = index % size;
    index /= size;
  }
  std::string text = "[";
  for (size_t d = 0; d < at.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(at[d]);
  return text + "]";
}

// Drops the dimensions that repeat the same elements, so that an expanded view is read once.
Tensor without_repeats(Tensor tensor) {
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.stride[d] == 0 && tensor.shape[d] > 1) tensor.shape[d] = 1;
  return tensor;
}

bool is_complex(DType dtype) {
  return dtype == DType::complex32 || dtype == DType::complex64 || dtype == DType::complex128;
}

}  // namespace

void ValueCollector::add_float(const NamedTensor& named) {
  const Tensor& whole = named.payload.front().tensor;
  if (!whole.storage || whole.numel() == 0 || !has_special_values(whole.dtype)) return;
  const Tensor tensor = without_repeats(whole);
  std::vector<std::byte> scratch;
  const SpecialValues values = special_values(tensor.dtype, row_major_view(tensor, scratch));
  if (values.all_zero) {
    const bool weight = tensor.shape.size() > 1 || (last_step(named.name) == "weight" && tensor.numel() > 1);
    if (weight) note("all zero", named.name, "float tensors");
    return;
  }
  const auto add = [&](ValueRule rule, uint64_t count, uint64_t first, const char* value) {
    const uint64_t element = is_complex(tensor.dtype) ? first / 2 : first;
    found_.findings.push_back({.rule = rule,
                               .tensor = named.name,
                               .place = index_text(tensor.shape, element),
                               .value = value,
                               .expected = "a float tensor",
                               .count = count,
                               .total = values.elements});
  };
  const bool state = is_optimizer_state(named);
  if (values.nans != 0) {
    if (state)
      note("NaN in optimizer states", named.name, "tensors", values.nans);
    else
      add(ValueRule::not_a_number, values.nans, *values.first_nan, "NaN");
  }
  if (values.infinities == 0) return;
  if (state)
    note("infinities in optimizer states", named.name, "tensors", values.infinities);
  else if (values.is_mask && tensor.shape.size() > 1)
    note("-inf and one other number, a mask", named.name, "float tensors");
  else if (is_observer_range(named.name))
    note("infinity, an observer without data", named.name, "float tensors");
  else if (tensor.shape.empty())
    note("an infinite number", named.name, "float tensors without dimensions");
  else
    add(ValueRule::infinity, values.infinities, *values.first_infinity, "infinity");
}

}  // namespace qcts
