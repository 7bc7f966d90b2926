// What every builtin kernel file may call: ordinary functions, compiled once for the baseline processor. No
// inline code, so that no variant's instructions can leak into another's through the linker.
#pragma once

#include "kernels/abi/qcts_kernel.h"

// Gives each definition `const qcts_kernel qcts_kernel_<op>_<scheme>_<variant>` its external linkage. A file of rows is
// compiled once for each of them (CMakeLists.txt), so that a kernel's code does not depend on its neighbours: all but
// QCTS_ROW are internal then, unused, and left out.
#ifdef QCTS_ROW
extern const qcts_kernel QCTS_ROW;
#else
#define QCTS_KERNEL(op, scheme, variant) extern const qcts_kernel qcts_kernel_##op##_##scheme##_##variant;
#include "kernels/kernels.inc"
#undef QCTS_KERNEL
#endif

namespace qcts {

// Writes the reason (printf format, cut at why_size) and returns `status`. why may be NULL.
__attribute__((format(printf, 4, 5))) qcts_status refuse(qcts_status status, char* why, size_t why_size,
                                                         const char* format, ...);

// Everything that the variants of one (op, scheme) agree on: processor features, device, dimensions, group,
// dtypes, layout, activation policy, and, where planes are given, their names, dtypes, shapes and row-major
// strides. QCTS_OK or QCTS_UNSUPPORTED with a reason.
qcts_status check_problem(const qcts_kernel& kernel, const qcts_problem* problem, char* why, size_t why_size);

// The same, plus that nothing the op reads or writes is NULL. Called first by run(): QCTS_OK or QCTS_INVALID.
qcts_status check_run(const qcts_kernel& kernel, const qcts_problem* problem);

// For prepare(): as check_problem, and the planes are there. QCTS_OK or QCTS_INVALID.
qcts_status check_prepare(const qcts_kernel& kernel, const qcts_problem* problem);

// Does scheme_name, the family with its parameters, contain `part`? No where the host gave none.
bool scheme_name_has(const qcts_problem& problem, const char* part);

// Is `activation` one of the policies that a kernel's scheme lists ("int8_row:dyn_row_sym,dyn_row_asym",
// "F:*" for all)? One without policies serves weight_only.
bool lists_policy(const char* scheme, const char* activation);

// That the planes in which a checkpoint gives a scale of x are as the policy has them, where planes are
// given. QCTS_OK or QCTS_UNSUPPORTED with a reason.
qcts_status check_given_scale(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                              size_t why_size);
// Are they there, as the policy has them, with data? Yes where it has none.
bool gives_scale(const qcts_kernel& kernel, const qcts_problem& problem);

// For quantize_activation: processor features, the policy, device, dtype and rows of x, whole blocks, a given
// scale. QCTS_OK or QCTS_UNSUPPORTED with a reason.
qcts_status check_activation(const qcts_kernel& kernel, const qcts_problem* problem, char* why,
                             size_t why_size);

// tile_packed_4d and tile_packed_4d_v1: one order of the bytes, two producers.
bool is_tile_packed(const char* layout);

// Data of the plane called `name`; NULL when absent.
void* plane_data(const qcts_plane* planes, uint32_t count, const char* name);

// Of a problem that packs or unpacks: every plane but `name`, as it is.
void copy_planes_but(const qcts_problem& problem, const char* name);

// Its dtype; QCTS_NONE when absent.
uint32_t plane_dtype(const qcts_plane* planes, uint32_t count, const char* name);

// 1, 2, 4 or 8; 0 for QCTS_NONE and for dtypes that share bytes.
uint32_t dtype_bytes(uint32_t dtype);

// How a thread reads a weight fastest that it passes over once, in order.
enum class WeightReading : uint8_t {
  // One stream, of which the program asks memory for what comes next: without that an Emerald Rapids core
  // read 4-bit weights at 2/3 of the pace. EPYC Zen 5, m = 1 and 4, one thread: 4 bits 2 times as fast as
  // followed, int8 1.1 to 1.4 times; as four streams the same with AVX-512, with AVX2 0.6 to 1 times.
  prefetched,
  // One stream, left to the core's own prefetchers. EPYC Zen 4, m = 1, one thread: int8 1.06 to 1.2 times as
  // fast as prefetched, 4 bits in groups of 32 1.1 to 1.5 times; as four streams 0.65 to 0.85 times.
  followed,
  // Four streams in turn, where the kernel can (kernels/avx2/streams.h). EPYC Zen 3, m = 1, one thread: int8
  // 1.39 times as fast as one stream prefetched.
  side_by_side,
};
// This machine's (weight_reading_of, kernels/machine/machine.h). QCTS_WEIGHT_READING=prefetched, followed or
// side_by_side in the environment decides instead (not for the emulated provider, which always reads side by
// side): answers are the same. Of another value machine() throws std::runtime_error.
WeightReading weight_reading();

// Calls body(context, first, last) on disjoint ranges that cover [0, count): at most `threads` of them, cut
// at multiples of `grain`. The cut depends on the three numbers alone. Runs in the caller alone when the pool
// is busy.
void parallel_for(uint32_t threads, int64_t count, int64_t grain,
                  void (*body)(void* context, int64_t first, int64_t last), void* context);

}  // namespace qcts
