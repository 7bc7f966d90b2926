// SPDX-License-Identifier: BSD-3-Clause
// Runs TorchScript with LibTorch's own loader: torch/csrc/jit, 2.13.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "kernels/plugins/aten/aten.h"

namespace qcts_aten {
namespace {

struct DTypePair {
  uint32_t abi;
  at::ScalarType torch;
};
constexpr DTypePair kDTypes[] = {
    {QCTS_F32, at::kFloat},
    {QCTS_F64, at::kDouble},
    {QCTS_F16, at::kHalf},
    {QCTS_BF16, at::kBFloat16},
    {QCTS_F8_E4M3FN, at::kFloat8_e4m3fn},
    {QCTS_F8_E5M2, at::kFloat8_e5m2},
    {QCTS_I8, at::kChar},
    {QCTS_U8, at::kByte},
    {QCTS_I16, at::kShort},
    {QCTS_I32, at::kInt},
    {QCTS_I64, at::kLong},
    {QCTS_BOOL, at::kBool},
    {QCTS_C64, at::kComplexFloat},
    {QCTS_C128, at::kComplexDouble},
};

at::ScalarType torch_type(uint32_t dtype) {
  for (const DTypePair& pair : kDTypes)
    if (pair.abi == dtype) return pair.torch;
  throw std::runtime_error("dtype " + std::to_string(dtype) + " is not one of a program's inputs");
}

uint32_t abi_type(at::ScalarType type) {
  for (const DTypePair& pair : kDTypes)
    if (pair.torch == type) return pair.abi;
  throw std::runtime_error(std::string("the program returns elements of ") + c10::toString(type));
}

at::Tensor input_of(const qcts_plane& plane) {
  const at::IntArrayRef shape(plane.shape, plane.ndim);
  return at::from_blob(plane.data, shape, at::TensorOptions().dtype(torch_type(plane.dtype))).clone();
}

void emit_tensor(const qcts_program_call& call, const at::Tensor& returned) {
  const at::Tensor tensor = returned.resolve_conj().resolve_neg().contiguous();
  qcts_plane plane = {};
  plane.struct_size = sizeof plane;
  plane.dtype = abi_type(tensor.scalar_type());
  plane.name = "";
  plane.data = tensor.data_ptr();
  if (tensor.dim() > 8) throw std::runtime_error("the program returns a tensor of more than 8 dimensions");
  plane.ndim = static_cast<uint32_t>(tensor.dim());
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    plane.shape[d] = tensor.size(d);
    plane.stride_bytes[d] = tensor.stride(d) * static_cast<int64_t>(tensor.element_size());
  }
  call.emit(call.context, &plane);
}

void emit_value(const qcts_program_call& call, const c10::IValue& value) {
  if (value.isTensor()) return emit_tensor(call, value.toTensor());
  if (value.isBool()) return emit_tensor(call, at::scalar_tensor(value.toBool(), at::kBool));
  if (value.isInt()) return emit_tensor(call, at::scalar_tensor(value.toInt(), at::kLong));
  if (value.isDouble()) return emit_tensor(call, at::scalar_tensor(value.toDouble(), at::kDouble));
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) emit_value(call, item);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) emit_value(call, item);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) emit_value(call, entry.value());
  } else {
    throw std::runtime_error("the program returns a " + value.tagKind());
  }
}

qcts_status say(const std::string& text, qcts_status status, char* why, size_t why_size) {
  if (why != nullptr && why_size > 0)
    std::snprintf(why, why_size, "%s", text.substr(0, text.find('\n')).c_str());
  return status;
}

template <typename Body>
qcts_status reported(Body body, char* why, size_t why_size) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return say(error.what_without_backtrace(), QCTS_FAILED, why, why_size);
  } catch (const std::exception& error) {
    return say(error.what(), QCTS_FAILED, why, why_size);
  } catch (...) {
    return say("an exception of a foreign type", QCTS_FAILED, why, why_size);
  }
}

// LibTorch's message names the missing record if the file is another archive, and its zip reader if it is not
// an archive.
bool is_program(const char* path) {
  try {
    caffe2::serialize::PyTorchStreamReader reader{std::string(path)};
    return reader.hasRecord("constants.pkl");
  } catch (const c10::Error&) {
    return false;
  }
}

void write_whole(const std::string& path, const std::string& bytes) {
  const std::string partial = path + ".part";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out && std::rename(partial.c_str(), path.c_str()) == 0) return;
  std::remove(partial.c_str());
  throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

qcts_status load_save(const char* input_path, const char* output_path, char* why, size_t why_size) {
  return reported(
      [&] {
        if (!is_program(input_path))
          return say("LibTorch loads and saves only TorchScript", QCTS_UNSUPPORTED, why, why_size);
        std::ostringstream saved;
        torch::jit::load(input_path).save(saved);
        write_whole(output_path, saved.str());
        return QCTS_OK;
      },
      why, why_size);
}

qcts_status run_program(const qcts_program_call* call, char* why, size_t why_size) {
  return reported(
      [&] {
        if (call->struct_size < sizeof(qcts_program_call))
          return say("qcts_program_call is smaller than this plug-in was compiled with", QCTS_INVALID, why,
                     why_size);
        if (!is_program(call->path))
          return say("LibTorch runs only TorchScript", QCTS_UNSUPPORTED, why, why_size);
        torch::jit::Module program = torch::jit::load(call->path);
        const auto method = program.find_method(call->method);
        if (!method) return say("the program has no such method", QCTS_INVALID, why, why_size);
        const c10::InferenceMode no_autograd;
        const int threads = static_cast<int>(call->threads > 0 ? call->threads : 1);
        if (at::get_num_threads() != threads) at::set_num_threads(threads);
        std::vector<c10::IValue> inputs;
        for (uint32_t i = 0; i < call->n_inputs; ++i) inputs.emplace_back(input_of(call->inputs[i]));
        emit_value(*call, (*method)(std::move(inputs)));
        return QCTS_OK;
      },
      why, why_size);
}

}  // namespace qcts_aten
