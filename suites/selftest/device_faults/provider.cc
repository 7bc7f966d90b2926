// SPDX-License-Identifier: BSD-3-Clause
// A provider for the fake device with one fault, which its file name says: qcts_device_wrong.so. It
// dequantizes int8_row on a stream of the fake driver, and multiplies by it; "none" has no fault.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "kernels/abi/problem.h"
#include "kernels/abi/qcts_kernel.h"
#include "kernels/fakecuda/fake_driver.h"

namespace {

std::string fault_of_file() {
  Dl_info info{};
  ::dladdr(reinterpret_cast<const void*>(&fault_of_file), &info);
  const std::string path = info.dli_fname, prefix = "qcts_device_";
  const size_t first = path.rfind(prefix) + prefix.size();
  return path.substr(first, path.rfind('.') - first);
}
const std::string fault = fault_of_file();

// Acts as if it had changed the driver in its process: all events report this time.
const bool has_patched_events =
    fault == "patches_events" && ::setenv("QCTS_FAKECUDA_EVENT_US", "205", 1) == 0;

void* driver() {
  static void* const library = ::dlopen(std::getenv("QCTS_CUDA_DRIVER"), RTLD_NOW);
  return library;
}

template <class Function>
Function* driver_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(driver(), name));
}

qcts::FakeEnqueue enqueue_function() {
  return reinterpret_cast<qcts::FakeEnqueue>(::dlsym(driver(), qcts::kFakeEnqueue));
}

// The work of one call: what a kernel on a GPU would get as its arguments.
struct Work {
  int64_t n, k, row_bytes;
  const int8_t* codes;
  const void* scales;
  bool scales_are_bf16;  // otherwise float32
  void* y;
  bool is_bf16;  // otherwise float32
  qcts_device_status* status;
  const qcts_problem* problem;  // of the call, which has returned
  std::vector<int8_t> kept{};   // codes of the first run of this work
};

float widened(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Rounds to nearest, ties to even. The inputs have no NaN.
uint16_t narrowed(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

void dequantize(Work& work) {
  const int8_t* codes = qcts::real_place(work.codes);
  if (fault == "stale_replay") {
    if (work.kept.empty()) work.kept.assign(codes, codes + work.n * work.k);
    codes = work.kept.data();
  }
  const void* scales = qcts::real_place(work.scales);
  auto* y = static_cast<std::byte*>(qcts::real_place(work.y));
  for (int64_t row = 0; row < work.n; ++row) {
    const int64_t of = fault == "wrong" ? 0 : row;
    const float scale = work.scales_are_bf16 ? widened(static_cast<const uint16_t*>(scales)[of])
                                             : static_cast<const float*>(scales)[of];
    for (int64_t i = 0; i < work.k; ++i) {
      const float value = static_cast<float>(codes[row * work.k + i]) * scale;
      const uint16_t narrow = narrowed(value);
      if (work.is_bf16)
        std::memcpy(y + row * work.row_bytes + i * 2, &narrow, sizeof narrow);
      else
        std::memcpy(y + row * work.row_bytes + i * 4, &value, sizeof value);
    }
  }
}

const char* compute(void* context) {
  Work& work = *static_cast<Work*>(context);
  if (fault == "kept_problem") work.n = work.problem->n, work.k = work.problem->k;
  auto* y = static_cast<std::byte*>(qcts::real_place(work.y));
  if (fault == "fails") return "an illegal memory access was encountered";
  while (fault == "hangs") std::this_thread::sleep_for(std::chrono::seconds(1));
  if (fault == "status") qcts::real_place(work.status)->status |= QCTS_FAILED;
  dequantize(work);
  const int64_t row_bytes = work.k * (work.is_bf16 ? 2 : 4);
  if (fault == "past_end") *(y + (work.n - 1) * work.row_bytes + row_bytes + 1000) = std::byte{1};
  if (fault == "before_start") *(y - 300) = std::byte{1};
  // These write beyond the red zones, or only read.
  if (fault == "far_past_end") *(y + (work.n - 1) * work.row_bytes + row_bytes + 8192) = std::byte{1};
  if (fault == "far_before_start") *(y - 12288) = std::byte{1};
  if (fault == "reads_past_end")
    static_cast<void>(*static_cast<const volatile int8_t*>(qcts::real_place(work.codes) + work.n * work.k));
  if (fault == "input") *const_cast<int8_t*>(qcts::real_place(work.codes)) ^= 1;
  return nullptr;
}

void drop(void* context) { delete static_cast<Work*>(context); }

bool is_capturing(void* stream) {
  int status = 0;
  driver_function<int(void*, int*)>("cuStreamIsCapturing")(stream, &status);
  return status != 0;
}

const qcts_plane& plane_of(const qcts_problem& p, std::string_view name) {
  for (uint32_t i = 0; i < p.n_planes; ++i)
    if (p.planes[i].name == name) return p.planes[i];
  std::abort();
}

qcts_status supports(const qcts_problem* problem, char* why, size_t why_size) {
  const bool is_served_dtype = problem->w_dtype == QCTS_F32 || problem->w_dtype == QCTS_BF16;
  const bool serves = problem->device != 0 && is_served_dtype && problem->device_info->capability >= 80;
  if (serves) return QCTS_OK;
  std::strncpy(why, "float32 and bfloat16 on a device of capability 8.0 or newer", why_size - 1);
  return QCTS_UNSUPPORTED;
}

qcts_status run(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  auto* const work = new Work{p.n,
                              p.k,
                              p.ldy_bytes,
                              static_cast<const int8_t*>(plane_of(p, "qdata").data),
                              plane_of(p, "scale").data,
                              plane_of(p, "scale").dtype == QCTS_BF16,
                              p.y,
                              p.w_dtype == QCTS_BF16,
                              p.device_status,
                              problem};
  void* stream = p.stream;
  if (fault == "host_read" && work->codes[0] == 1) return QCTS_FAILED;
  if (fault == "no_stream") stream = nullptr;
  if (fault == "own_stream") driver_function<int(void**, unsigned)>("cuStreamCreate")(&stream, 1);
  if (fault == "no_work") return QCTS_OK;
  if (fault == "skips_capture" && is_capturing(stream)) return QCTS_OK;
  if (fault == "allocates") {
    uint64_t address = 0;
    if (driver_function<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&address, 1) != 0) return QCTS_FAILED;
  }
  if (enqueue_function()(stream, compute, drop, work) != 0) return QCTS_FAILED;
  if (fault == "waits") driver_function<int(void*)>("cuStreamSynchronize")(stream);
  return QCTS_OK;
}

// Rows of x by a weight of int8_row, in bfloat16.
struct Product {
  qcts_problem problem;
  const void *codes, *scales;
  bool scales_are_bf16;
  bool is_done = false;  // of the first run of this work
};

void multiply(Product& product) {
  const qcts_problem& p = product.problem;
  const auto* x = qcts::real_place(static_cast<const uint16_t*>(p.x));
  const auto* codes = qcts::real_place(static_cast<const int8_t*>(product.codes));
  const void* scales = qcts::real_place(product.scales);
  auto* y = qcts::real_place(static_cast<uint16_t*>(p.y));
  for (int64_t n = 0; n < p.n; ++n) {
    const float scale = product.scales_are_bf16 ? widened(static_cast<const uint16_t*>(scales)[n])
                                                : static_cast<const float*>(scales)[n];
    for (int64_t row = 0; row < p.m; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k) sum += double{widened(x[row * p.k + k])} * codes[n * p.k + k];
      y[row * p.n + n] = narrowed(static_cast<float>(sum * double{scale}));
    }
  }
}

const char* compute_late(void* context) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  multiply(*static_cast<Product*>(context));
  return nullptr;
}

void drop_product(void* context) { delete static_cast<Product*>(context); }

const char* compute_product(void* context) {
  Product& product = *static_cast<Product*>(context);
  if (fault == "stale_replay" && std::exchange(product.is_done, true)) return nullptr;
  if (fault != "late_work") {
    multiply(product);
    return nullptr;
  }
  // The stream reaches its next event at once, and another stream does the work.
  static void* other = nullptr;
  if (other == nullptr) driver_function<int(void**, unsigned)>("cuStreamCreate")(&other, 1);
  enqueue_function()(other, compute_late, drop_product, new Product(product));
  return nullptr;
}

qcts_status supports_linear(const qcts_problem* problem, char* why, size_t why_size) {
  if (problem->device != 0 && problem->x_dtype == QCTS_BF16 && problem->bias_dtype == QCTS_NONE)
    return QCTS_OK;
  std::strncpy(why, "bfloat16 on a device, without a bias", why_size - 1);
  return QCTS_UNSUPPORTED;
}

qcts_status run_linear(const qcts_problem* problem) {
  auto* const product =
      new Product{*problem, plane_of(*problem, "qdata").data, plane_of(*problem, "scale").data,
                  plane_of(*problem, "scale").dtype == QCTS_BF16};
  const int result = enqueue_function()(problem->stream, compute_product, drop_product, product);
  return result == 0 ? QCTS_OK : QCTS_FAILED;
}

const qcts_kernel kLinear = {.struct_size = sizeof kLinear,
                             .op = QCTS_OP_LINEAR,
                             .scheme = "int8_row",
                             .variant = "fake",
                             .description = "a loop",
                             .claims = QCTS_CLAIM_EMULATED | QCTS_CLAIM_CAPTURABLE,
                             .reserved = 0,
                             .numerics = {.struct_size = sizeof(qcts_numerics),
                                          .x_cast = QCTS_NONE,
                                          .scale_cast = QCTS_NONE,
                                          .weight_cast = QCTS_NONE,
                                          .product_cast = QCTS_NONE,
                                          .accumulator = QCTS_F32,
                                          .partial_cast = QCTS_NONE,
                                          .output_cast = QCTS_F32,
                                          .flags = 0,
                                          .reserved = 0},
                             .supports = supports_linear,
                             .workspace_bytes = nullptr,
                             .prepared_bytes = nullptr,
                             .prepare = nullptr,
                             .run = run_linear,
                             .fused_sums = {},
                             .failure = nullptr,
                             .reads_layouts = nullptr,
                             .align_bytes = 0,
                             .row_align_bytes = 0};
const qcts_kernel kKernel = {.struct_size = sizeof kKernel,
                             .op = QCTS_OP_DEQUANTIZE,
                             .scheme = "int8_row",
                             .variant = "fake",
                             .description = "a loop",
                             .claims = QCTS_CLAIM_BIT_EXACT | QCTS_CLAIM_DETERMINISTIC |
                                       QCTS_CLAIM_THREAD_INVARIANT | QCTS_CLAIM_EMULATED |
                                       QCTS_CLAIM_CAPTURABLE,
                             .reserved = 0,
                             .numerics = {},
                             .supports = supports,
                             .workspace_bytes = nullptr,
                             .prepared_bytes = nullptr,
                             .prepare = nullptr,
                             .run = run,
                             .fused_sums = {},
                             .failure = nullptr,
                             .reads_layouts = nullptr,
                             .align_bytes = 0,
                             .row_align_bytes = 0};
const qcts_kernel* const kKernels[] = {&kKernel, &kLinear};
const qcts_provider kProvider = {.struct_size = sizeof kProvider,
                                 .abi_version = QCTS_ABI_VERSION,
                                 .name = "onfake",
                                 .version = "1",
                                 .url = nullptr,
                                 .choices = nullptr,
                                 .n_kernels = 2,
                                 .claims = 0,
                                 .kernels = kKernels,
                                 .load_save = nullptr,
                                 .run_program = nullptr,
                                 .profile = nullptr};

}  // namespace

extern "C" const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &kProvider : nullptr;
}
