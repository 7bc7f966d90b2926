// SPDX-License-Identifier: BSD-3-Clause
// Provider "onednn": int8_row with oneDNN 2.6 (the C++ API of that year). It has no primitive that multiplies
// float activations with int8 weights. So `prepare` lets a reorder widen the codes to float32, and a float32
// matmul multiplies with them; scales and bias come last. Its numerics are declared accordingly: float32
// products and sums in any order, the scale on the sum.
#include <omp.h>
#include <qcts_kernel.h>

#include <cstdio>
#include <cstring>

#include <oneapi/dnnl/dnnl.hpp>

namespace {

constexpr uint64_t kAlignBytes = 64;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

const qcts_plane* plane(const qcts_problem& p, const char* name) {
  for (uint32_t i = 0; i < p.n_planes; ++i)
    if (std::strcmp(p.planes[i].name, name) == 0) return &p.planes[i];
  return nullptr;
}

bool has_weight(const qcts_problem& p) {
  const qcts_plane *codes = plane(p, "qdata"), *scale = plane(p, "scale"), *zero = plane(p, "zero_point");
  return codes && scale && zero && codes->dtype == QCTS_I8 && scale->dtype == QCTS_F32 &&
         zero->dtype == QCTS_I8 && codes->ndim == 2 && codes->shape[0] == p.n && codes->shape[1] == p.k;
}

float bf16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Rounds to nearest, ties to even; a NaN stays a NaN.
uint16_t float_to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float load(uint32_t dtype, const void* base, int64_t index) {
  if (dtype == QCTS_F32) {
    float value;
    std::memcpy(&value, static_cast<const char*>(base) + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char*>(base) + index * 2, 2);
  return bf16_to_float(bits);
}

void store(uint32_t dtype, void* base, int64_t index, float value) {
  if (dtype == QCTS_F32) {
    std::memcpy(static_cast<char*>(base) + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = float_to_bf16(value);
  std::memcpy(static_cast<char*>(base) + index * 2, &bits, 2);
}

// `prepare` writes float32 scales [n], then float32 codes [n, k].
uint64_t codes_offset(const qcts_problem& p) { return aligned(static_cast<uint64_t>(p.n) * 4); }
// `run` needs float32 x [m, k], then float32 sums [m, n].
uint64_t sums_offset(const qcts_problem& p) { return aligned(static_cast<uint64_t>(p.m * p.k) * 4); }

// Limits oneDNN's OpenMP to `count` threads for the length of a call.
class Threads {
 public:
  explicit Threads(uint32_t count) : before_(omp_get_max_threads()) {
    omp_set_num_threads(static_cast<int>(count));
  }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

dnnl::memory matrix(const dnnl::engine& engine, int64_t rows, int64_t columns, dnnl::memory::data_type type,
                    bool transposed, void* data) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
  return {dnnl::memory::desc({rows, columns}, type, strides), engine, data};
}

// Writes float(code - zero point): a reorder s8 -> f32, then the zero points of the rows that have one.
qcts_status widen(const qcts_problem& p, void* prepared) {
  const int8_t* zeros = static_cast<const int8_t*>(plane(p, "zero_point")->data);
  std::memcpy(prepared, plane(p, "scale")->data, static_cast<size_t>(p.n) * 4);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  dnnl::memory codes = matrix(engine, p.n, p.k, dnnl::memory::data_type::s8, false, plane(p, "qdata")->data);
  dnnl::memory wide = matrix(engine, p.n, p.k, dnnl::memory::data_type::f32, false,
                             static_cast<char*>(prepared) + codes_offset(p));
  dnnl::reorder(codes, wide).execute(stream, codes, wide);
  stream.wait();
  // Exact, because both are 8-bit integers.
  auto* weights = reinterpret_cast<float*>(static_cast<char*>(prepared) + codes_offset(p));
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; zeros[n] != 0 && k < p.k; ++k) weights[n * p.k + k] -= zeros[n];
  return QCTS_OK;
}

void multiply(const qcts_problem& p, float* x, const char* prepared, float* sums) {
  const auto type = dnnl::memory::data_type::f32;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  void* codes = const_cast<char*>(prepared) + codes_offset(p);
  dnnl::memory a = matrix(engine, p.m, p.k, type, false, x), b = matrix(engine, p.k, p.n, type, true, codes),
               c = matrix(engine, p.m, p.n, type, false, sums);
  // Whatever ONEDNN_DEFAULT_FPMATH_MODE says.
  dnnl::primitive_attr attributes;
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  // oneDNN keeps what it compiled for these shapes in its own cache.
  const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(a.get_desc(), b.get_desc(), c.get_desc()),
                                          attributes, engine);
  dnnl::matmul(plan).execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  stream.wait();
}

qcts_status linear_steps(const qcts_problem& p) {
  char* workspace = static_cast<char*>(p.workspace);
  float* x = reinterpret_cast<float*>(workspace);
  float* sums = reinterpret_cast<float*>(workspace + sums_offset(p));
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t k = 0; k < p.k; ++k)
      x[m * p.k + k] = load(p.x_dtype, static_cast<const char*>(p.x) + m * p.ldx_bytes, k);
  const char* prepared = static_cast<const char*>(p.prepared);
  multiply(p, x, prepared, sums);
  const float* scale = reinterpret_cast<const float*>(prepared);
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = 0; n < p.n; ++n) {
      float y = sums[m * p.n + n] * scale[n];
      if (p.bias != nullptr) y += load(p.bias_dtype, p.bias, n);
      store(p.y_dtype, static_cast<char*>(p.y) + m * p.ldy_bytes, n, y);
    }
  return QCTS_OK;
}

// No exception may leave a C function.
template <typename Steps>
qcts_status guarded(const qcts_problem* p, Steps steps) {
  const Threads threads(p->threads);
  try {
    return steps();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onednn: %s\n", error.what());
    return QCTS_FAILED;
  }
}

qcts_status refuse(char* why, size_t why_size, const char* reason) {
  std::snprintf(why, why_size, "%s", reason);
  return QCTS_UNSUPPORTED;
}

bool is_float(uint32_t dtype) { return dtype == QCTS_F32 || dtype == QCTS_BF16; }

qcts_status supports(const qcts_problem* p, char* why, size_t why_size) {
  if (p->struct_size < offsetof(qcts_problem, scheme_name))
    return refuse(why, why_size, "the host is older than this provider");
  if (p->device != 0) return refuse(why, why_size, "runs on the host only");
  if (p->m < 0 || p->n < 1 || p->k < 1)
    return refuse(why, why_size, "n and k must be positive, and m not negative");
  if (std::strcmp(p->activation, "weight_only") != 0) return refuse(why, why_size, "float activations only");
  if (!is_float(p->x_dtype) || !is_float(p->y_dtype) || (p->bias != nullptr && !is_float(p->bias_dtype)))
    return refuse(why, why_size, "x, y and bias must be float32 or bfloat16");
  return QCTS_OK;
}

uint64_t workspace_bytes(const qcts_problem* p) {
  return sums_offset(*p) + static_cast<uint64_t>(p->m * p->n) * 4;
}
uint64_t prepared_bytes(const qcts_problem* p) {
  return codes_offset(*p) + static_cast<uint64_t>(p->n * p->k) * 4;
}

qcts_status prepare(const qcts_problem* p, void* prepared) {
  if (!has_weight(*p)) return QCTS_INVALID;
  return guarded(p, [&] { return widen(*p, prepared); });
}

qcts_status run(const qcts_problem* p) {
  if (p->prepared == nullptr || p->prepared_bytes < prepared_bytes(p) ||
      p->workspace_bytes < workspace_bytes(p))
    return QCTS_INVALID;
  if (p->m == 0) return QCTS_OK;
  return guarded(p, [&] { return linear_steps(*p); });
}

const qcts_kernel kLinear = {
    .struct_size = sizeof(qcts_kernel),
    .op = QCTS_OP_LINEAR,
    .scheme = "int8_row",
    .variant = "matmulf32",
    .description =
        "codes widened to float32 once, dnnl::matmul, then scale and bias; reads four bytes per weight",
    .claims = QCTS_CLAIM_DETERMINISTIC,
    .reserved = 0,
    .numerics = {.struct_size = sizeof(qcts_numerics),
                 .x_cast = QCTS_NONE,
                 .scale_cast = QCTS_NONE,
                 .weight_cast = QCTS_NONE,
                 .product_cast = QCTS_F32,
                 .accumulator = QCTS_F32,
                 .partial_cast = QCTS_NONE,
                 .output_cast = QCTS_F32,
                 .flags = QCTS_NUM_SCALE_AFTER_SUM,
                 .reserved = 0},
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .prepared_bytes = prepared_bytes,
    .prepare = prepare,
    .run = run,
    .fused_sums = {},
    .failure = nullptr,
    .reads_layouts = nullptr,
    .align_bytes = 0,
    .row_align_bytes = 0,
};

const qcts_kernel* const kKernels[] = {&kLinear};

const char* version_text() {
  static char text[32];
  const dnnl_version_t* version = dnnl_version();
  std::snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
  return text;
}

}  // namespace

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  static const qcts_provider provider = {
      .struct_size = sizeof(qcts_provider),
      .abi_version = QCTS_ABI_VERSION,
      .name = "onednn",
      .version = version_text(),
      .url = "https://github.com/uxlfoundation/oneDNN/issues",
      .choices = QCTS_CHOICE_REPRESENTABLE_INPUTS,
      .n_kernels = sizeof kKernels / sizeof kKernels[0],
      .claims = 0,
      .kernels = kKernels,
      .load_save = nullptr,
      .run_program = nullptr,
      .profile = nullptr,
  };
  return host_abi_version >= QCTS_ABI_VERSION ? &provider : nullptr;
}
