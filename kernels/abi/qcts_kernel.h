// SPDX-License-Identifier: BSD-3-Clause
/* qcts kernel ABI 0.13: the only header that a provider of kernels needs. C11, append-only structs, one
 * exported symbol.
 *
 * A provider exports `qcts_provider_entry`, which returns a table of kernels.
 * The host calls it with its own ABI version. As long as it gets NULL, it tries older versions.
 * Every buffer belongs to the caller.
 * A call frees everything that it allocates, does not throw, and keeps no pointer after it returns.
 * `prepare` fills a buffer of the caller, which must not contain pointers to the planes.
 *
 * Every struct begins with struct_size = sizeof at the time its writer was compiled.
 * Read only fields that lie below struct_size: a field beyond it counts as 0 or NULL.
 * New fields are added at the end of a struct.
 * Only qcts_numerics and qcts_fused_sums keep their sizes, because they are inside qcts_kernel.
 */
#ifndef QCTS_KERNEL_H
#define QCTS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QCTS_ABI_VERSION 13u /* 100 * major + minor: 0.13 */

typedef enum qcts_status {
  QCTS_OK = 0,
  QCTS_UNSUPPORTED = 1, /* the kernel does not handle this problem; a reason is given */
  QCTS_INVALID = 2,     /* the problem contradicts itself */
  /* The values rule the problem out. `run` and `prepare` of every op may return it for planes with values
   * that the scheme's recipe does not write for any finite weight, and for no others; QUANTIZE must for a
   * weight that the scheme cannot hold (one that is not 2:4 sparse). On a device, qcts_device_status says it
   * instead. */
  QCTS_FAILED = 3
} qcts_status;

/* Element types. Values are part of the ABI. */
typedef enum qcts_dtype {
  QCTS_NONE = 0, /* absent; in qcts_numerics: no such rounding */
  /* clang-format off */
  QCTS_F32 = 1, QCTS_F64 = 2, QCTS_F16 = 3, QCTS_BF16 = 4,
  QCTS_F8_E4M3FN = 5, QCTS_F8_E5M2 = 6, QCTS_F8_E8M0 = 7, QCTS_F4_E2M1_X2 = 8,
  QCTS_F6_E2M3 = 9, QCTS_F6_E3M2 = 10, /* only in qcts_scheme_params: their planes are QCTS_U8 */
  QCTS_I8 = 16, QCTS_U8 = 17, QCTS_I16 = 18, QCTS_I32 = 20, QCTS_I64 = 22,
  QCTS_BOOL = 24, QCTS_C64 = 32, QCTS_C128 = 33, /* only in programs */
  /* clang-format on */
  QCTS_LIKE_W = 254, /* only in qcts_scheme_params: the w_dtype of the problem */
  QCTS_LIKE_X = 255  /* only in qcts_numerics: the x_dtype of the problem */
} qcts_dtype;

typedef enum qcts_op {
  /* x [n,k] of w_dtype -> out_planes in layout "plain"; QCTS_FAILED if the scheme cannot hold x */
  QCTS_OP_QUANTIZE = 1,
  QCTS_OP_QUANTIZE_ACTIVATION = 2, /* x [m,k] -> out_planes */
  QCTS_OP_DEQUANTIZE = 3,          /* planes "plain" -> y [n,k] of w_dtype, bit-exact */
  QCTS_OP_PACK = 4,                /* planes "plain" -> out_planes in `layout` */
  QCTS_OP_UNPACK = 5,              /* planes in `layout` -> out_planes "plain" */
  /* y [m,n] = x [m,k] * W^T + bias; planes "plain" or in `layout`, or `prepared` */
  QCTS_OP_LINEAR = 6
} qcts_op;

/* One named plane (inner tensor) of a quantized weight. */
typedef struct qcts_plane {
  uint32_t struct_size;
  uint32_t dtype;   /* qcts_dtype */
  const char* name; /* "qdata", "scale", "zero_point", "scale_and_zero" */
  void* data;
  uint32_t ndim;
  uint32_t reserved;
  int64_t shape[8];
  int64_t stride_bytes[8];
} qcts_plane;

/* The GPU that a problem is for, since 0.12. */
enum {
  QCTS_DEVICE_DESCRIBED = 1u, /* no such GPU is there: only `supports` is called */
  QCTS_DEVICE_ECC = 2u,
  QCTS_DEVICE_MIG = 4u
};
typedef struct qcts_device {
  uint32_t struct_size;
  uint32_t flags;      /* QCTS_DEVICE_* */
  uint32_t capability; /* 10 * major + minor: 90 */
  uint32_t multiprocessors, shared_bytes_per_block;
  uint32_t driver_version; /* as cuDriverGetVersion gives it: 1000 * major + 10 * minor */
  uint64_t l2_bytes, memory_bytes;
  const char* name;
} qcts_device;

/* What the data did to a kernel on a device, since 0.12. It lies in device memory, is zero before the call,
 * and is read once the stream has ended. Its size never changes. A kernel that its data defeats ORs a
 * qcts_status into `status` and keeps the largest `place`, which it chooses itself. */
typedef struct qcts_device_status {
  uint32_t status, place;
} qcts_device_status;

/* A problem to compute. The caller fills the fields that the op reads and zeroes the rest. */
typedef struct qcts_problem {
  uint32_t struct_size;
  uint32_t op;      /* qcts_op */
  uint32_t threads; /* maximum for the call, >= 1 */
  /* 0 host; otherwise the CUDA device ordinal + 1. Then the data of planes and out_planes, x, bias, y,
   * prepared, workspace and device_status are device pointers. Structs, arrays and strings are host memory,
   * and the caller may change them once the call has returned. `run` and `prepare` enqueue on `stream` and
   * return: they wait for nothing, allocate nothing, use no other stream, read no device data, and change
   * neither context nor device. The device's primary context is current on the calling thread, and `threads`
   * is 1. Providers of an ABI before 0.12 are asked for problems on the host alone. */
  uint32_t device;
  void* stream;       /* CUstream, never the legacy stream; NULL on the host */
  const char* scheme; /* family: "int8_row", "int4_tinygemm" */
  /* PACK and UNPACK: layout of the packed planes; QUANTIZE: layout whose recipe applies; LINEAR: layout of
   * the planes, "plain" or one of the kernel's reads_layouts; else "plain" */
  const char* layout;
  const char* activation; /* activation policy: "weight_only", "dyn_row_sym", ... */
  /* m: rows of x. LINEAR and QUANTIZE_ACTIVATION may have m = 0, for example for an expert without tokens.
   * Then x, y and the out_planes with a row for each row of x may be NULL, nothing is read or written through
   * them, and `run` returns QCTS_OK. An out_plane for all rows together, such as one scale of x, need not be
   * written. workspace_bytes, prepared_bytes and prepare behave as for m = 1. `supports` may refuse m = 0
   * until 1.0. */
  int64_t m, n, k;
  int64_t group; /* elements along k that share a scale; 0 = the row */
  int64_t tile;  /* the layout's parameter if it has one, else 0 */
  /* w_dtype: logical dtype of the weight */
  uint32_t w_dtype, x_dtype, y_dtype, bias_dtype;
  int64_t ldx_bytes, ldy_bytes; /* distance between rows of x and y */
  const qcts_plane* planes;
  uint32_t n_planes, n_out_planes;
  const qcts_plane* out_planes;
  const void* x;        /* [m,k]; QUANTIZE: the float weight [n,k] */
  const void* bias;     /* [n] or NULL */
  void* y;              /* [m,n]; DEQUANTIZE: [n,k] */
  const void* prepared; /* written by `prepare`, or NULL */
  uint64_t prepared_bytes;
  /* At least workspace_bytes(), contents undefined. It and `prepared` are 64-byte aligned, on a device
   * 256-byte aligned. */
  void* workspace;
  uint64_t workspace_bytes;
  /* only for messages: the family with its parameters, "int4_tinygemm_g128"; kernels use `params` */
  const char* scheme_name;
  /* since 0.10; host memory that lives as long as the problem; NULL for the dense layer, which has no scheme
   */
  const struct qcts_scheme_params* params;
  /* since 0.12; NULL on the host */
  const qcts_device* device_info;    /* host memory */
  qcts_device_status* device_status; /* device memory; NULL for `supports` and the sizes */
} qcts_problem;

/* Claims of a kernel, which the judge checks. */
enum {
  QCTS_CLAIM_BIT_EXACT = 1u,        /* equal to the scheme's definition bit for bit */
  QCTS_CLAIM_DETERMINISTIC = 2u,    /* bitwise equal from run to run */
  QCTS_CLAIM_THREAD_INVARIANT = 4u, /* bitwise equal for every number of threads */
  QCTS_CLAIM_BATCH_INVARIANT = 8u,  /* row i of m rows is bitwise equal to the same row alone */
  QCTS_CLAIM_EMULATED = 16u,        /* instructions are emulated: judged, never timed */
  QCTS_CLAIM_KEEPS_BYTES = 32u,     /* for a provider: load_save writes exactly the bytes that it read */
  /* Since 0.11, for emulated threads. Each run of a problem follows the next of 4 schedules, one run at a
   * time. So 4 runs show as much as many repeats would. */
  QCTS_CLAIM_SCHEDULES = 64u,
  /* Since 0.13, for kernels on a device. `run` may be called while `stream` captures a graph, if the same
   * problem ran before. A replay of the graph computes with what the same addresses hold at that time. */
  QCTS_CLAIM_CAPTURABLE = 128u
};

enum {
  QCTS_NUM_FLUSH_SUBNORMALS = 1u, /* subnormal inputs or results may become zero */
  /* codes are summed first; scale and zero point act on the sum of a group or row */
  QCTS_NUM_SCALE_AFTER_SUM = 2u,
  /* the bias is added in the type of output_cast, and the sum with the bias is rounded to that type;
   * without the flag, or without an output_cast, the bias is added in the accumulator's type (F32 for I32) */
  QCTS_NUM_BIAS_IN_OUTPUT_CAST = 4u
};

/* Declares where `linear` rounds. The error bound of an output element is the sum over these stages.
 * QCTS_NONE means that the stage does not round.
 * The strictest declaration that a float kernel can meet is NONE for all stages and accumulator F32. */
typedef struct qcts_numerics {
  uint32_t struct_size;
  uint32_t x_cast;      /* activations are converted to this first */
  uint32_t scale_cast;  /* scale and zero point are converted to this first */
  uint32_t weight_cast; /* every dequantized weight is rounded to this; its products are exact or fused */
  /* every product x*w is rounded to this before it is added; F32 for mul-then-add, NONE for fma */
  uint32_t product_cast;
  uint32_t accumulator; /* F32, F64, or I32 (exact) */
  /* a finished partial sum (group or row) is rounded to this before the scale acts on it */
  uint32_t partial_cast;
  /* the sum is rounded to this before the bias is added and before y; NONE: straight to y_dtype
   * `flags` says in which type the bias is added */
  uint32_t output_cast;
  uint32_t flags; /* QCTS_NUM_* */
  uint32_t reserved;
} qcts_numerics;

/* Declares that `linear` sums as tensor cores do: several products and the sum so far are aligned to the
 * largest exponent among them, cut toward zero, and added exactly. This applies to an accumulator of F32. If
 * all fields are 0, every addition is IEEE float32. Examples: Ampere bf16 {8, 24, 23, 0}, Hopper bf16
 * {16, 25, 23, 0}, Hopper wgmma fp8 promoted every 128 {32, 13, 13, 128}. */
typedef struct qcts_fused_sums {
  uint32_t struct_size;
  uint32_t terms;         /* products that are added at once, besides the sum so far; 0: none */
  uint32_t fraction_bits; /* bits kept below the largest exponent */
  uint32_t result_bits;   /* fraction bits to which the result of each step is cut; 23: float32 */
  /* elements of k after which the partial sum is added to an IEEE float32 sum and starts anew; 0: never */
  uint32_t promote_every;
  uint32_t reserved;
} qcts_fused_sums;

typedef struct qcts_kernel {
  uint32_t struct_size;
  uint32_t op;
  /* the family; a LINEAR or QUANTIZE_ACTIVATION that quantizes x appends its policies;
   * for example, "int8_row:dyn_row_sym,dyn_row_asym" has two policies, and "F:*" has all */
  const char* scheme;
  const char* variant;     /* "scalar", "avx2", "avx512", ... : the newest feature needed */
  const char* description; /* one line: how it works and what limits it; may be NULL */
  uint32_t claims;         /* QCTS_CLAIM_* */
  uint32_t reserved;
  qcts_numerics numerics; /* LINEAR only; its size never changes */
  /* Returns QCTS_OK if the kernel can run this problem on this machine.
   * Otherwise writes a reason of at most why_size bytes, NUL included. */
  qcts_status (*supports)(const qcts_problem* problem, char* why, size_t why_size);
  /* NULL if there is no workspace. */
  uint64_t (*workspace_bytes)(const qcts_problem* problem);
  /* Private layout of the weight, made once at load, when x, bias and y are NULL, and used for every m.
   * Both functions are NULL if `run` reads the planes.
   * If two calls write equal bytes, the host may copy them to other addresses.
   * A layout that contains its own address is made again each time. */
  uint64_t (*prepared_bytes)(const qcts_problem* problem);
  qcts_status (*prepare)(const qcts_problem* problem, void* prepared);
  /* The op. [thread-safe] for distinct outputs. */
  qcts_status (*run)(const qcts_problem* problem);
  qcts_fused_sums fused_sums; /* since 0.11; LINEAR only */
  /* Since 0.11. Writes why the calling thread's last `run` or `prepare` returned QCTS_FAILED, in at most
   * why_size bytes, NUL included. NULL if the kernel gives no reason. It speaks of what the call saw on the
   * host; device_status of what the data did. */
  void (*failure)(char* why, size_t why_size);
  /* Since 0.11; LINEAR only. Packed layouts that the kernel reads as well as "plain", separated by commas:
   * "tile_packed_4d,tile_packed_4d_v1"; NULL: none. If the problem's `layout` is one of them, the planes of
   * the weight are those that PACK writes, with their padding; `tile` is the layout's parameter if it has
   * one. n, k and group are those of the weight without padding, and the padding must not change y. The
   * planes of an activation policy are the same as for "plain". `prepare` reads the same planes as `run`. */
  const char* reads_layouts;
  /* Since 0.12. Alignment of the data pointers, and of ldx_bytes and ldy_bytes, that the kernel needs. 0: the
   * element's own. It is not asked for less. */
  uint32_t align_bytes, row_align_bytes;
} qcts_kernel;

/* One call of a saved program. */
typedef struct qcts_program_call {
  uint32_t struct_size;
  uint32_t threads;         /* maximum for the call, >= 1 */
  const char* path;         /* the saved program */
  const char* method;       /* "forward", or another that it has */
  const qcts_plane* inputs; /* positional arguments; row-major, names unused */
  uint32_t n_inputs;
  uint32_t reserved;
  /* Called once for each tensor that the method returns, in order.
   * The parts of a tuple, list or dict are emitted depth first; a number is a tensor without dimensions.
   * The plane is row-major and lives while `emit` runs. */
  void (*emit)(void* context, const qcts_plane* output);
  void* context; /* passed to `emit` */
} qcts_program_call;

/* Words of qcts_provider.choices. Without either, the kernels are not asked for planes with values that the
 * scheme's recipe writes for no finite weight. With either, they are, and the words say which answers are
 * right. x, the bias and the float weight of QUANTIZE may hold any value, whatever is declared. */
#define QCTS_CHOICE_REPRESENTABLE_INPUTS "representable_inputs" /* if a file could hold the planes */
#define QCTS_CHOICE_HOSTILE_INPUTS "hostile_inputs"             /* always, with a NaN scale too */
typedef struct qcts_provider {
  uint32_t struct_size;
  uint32_t abi_version; /* the QCTS_ABI_VERSION that it was compiled with */
  const char* name;     /* [a-z0-9]+: "builtin", "aten" */
  const char* version;
  const char* url; /* where to report issues; may be NULL */
  /* Words, space separated; may be NULL: ids of the ledger's choices, QCTS_CHOICE_REPRESENTABLE_INPUTS,
   * QCTS_CHOICE_HOSTILE_INPUTS. */
  const char* choices;
  uint32_t n_kernels;
  uint32_t claims; /* QCTS_CLAIM_KEEPS_BYTES or 0 */
  const qcts_kernel* const* kernels;
  /* Loads a checkpoint and saves it again; NULL if the provider cannot.
   * Leaves a file if it returns QCTS_OK, and otherwise leaves none. */
  qcts_status (*load_save)(const char* input_path, const char* output_path, char* why, size_t why_size);
  /* Loads a saved program (TorchScript) and calls one of its methods; NULL if the provider runs none.
   * If it does not return QCTS_OK, it writes a reason of at most why_size bytes, NUL included.
   * If it is set, load_save is called only with programs. */
  qcts_status (*run_program)(const qcts_program_call* call, char* why, size_t why_size);
  /* Since 0.13. Names of the profiles that the provider promises to meet, space separated; NULL: none. */
  const char* profile;
} qcts_provider;

typedef enum qcts_granularity {
  QCTS_PER_ROW = 1,
  QCTS_PER_TENSOR = 2,
  QCTS_PER_GROUP = 3, /* of a row, along k */
  QCTS_PER_BLOCK = 4  /* of group_rows x group_k */
} qcts_granularity;

typedef enum qcts_zero_point {
  QCTS_ZERO_NONE = 0,
  QCTS_ZERO_INTEGER = 1, /* subtracted from the code, before the scale */
  QCTS_ZERO_FLOAT = 2    /* added after the scale */
} qcts_zero_point;

/* How quantize computes the scale of integer codes. */
typedef enum qcts_mapping {
  QCTS_SYMMETRIC = 1,
  QCTS_SYMMETRIC_NO_CLIPPING = 2, /* neither the smallest nor the largest weight is clamped */
  QCTS_ASYMMETRIC = 3
} qcts_mapping;

/* How quantize rounds the stored scale: to nearest even in its dtype, or to a power of two. */
typedef enum qcts_scale_rounding {
  QCTS_SCALE_NEAREST = 0,
  QCTS_SCALE_FLOOR = 1, /* the four of torchao's MXTensor */
  QCTS_SCALE_CEIL = 2,
  QCTS_SCALE_EVEN = 3,
  QCTS_SCALE_RCEIL = 4
} qcts_scale_rounding;

enum {
  QCTS_SCHEME_CODES_WRAP =
      1u /* quantize keeps the low bits of a code that is out of range, instead of clamping */
};

/* The parameters of a scheme, since 0.10. */
typedef struct qcts_scheme_params {
  uint32_t struct_size;
  uint32_t bits; /* of a code */
  /* qcts_dtype of a code: QCTS_I8 or QCTS_U8 for integers of any width and for table indices,
   * otherwise a float; QCTS_LIKE_W means that codes are stored as floats of that dtype */
  uint32_t element_dtype;
  int32_t code_min, code_max; /* of integer codes and indices; otherwise 0 and 0 */
  uint32_t scale_dtype;       /* qcts_dtype of the stored scale, or QCTS_LIKE_W */
  uint32_t scale_rounding;    /* qcts_scale_rounding */
  uint32_t levels;            /* 1, or 2 if scales have a scale of their own */
  uint32_t granularity;       /* qcts_granularity of the scale, at level 1 */
  uint32_t zero_point;        /* qcts_zero_point: as the planes hold it, even if all are 0 */
  uint32_t mapping;           /* qcts_mapping */
  uint32_t flags;             /* QCTS_SCHEME_* */
  int64_t group_rows;         /* rows that share a scale; 0: all n */
  int64_t group_k;            /* `group` of the problem */
} qcts_scheme_params;

/* The only exported symbol. Returns NULL if it cannot serve a host of this version. */
typedef const qcts_provider* (*qcts_provider_entry_fn)(uint32_t host_abi_version);
#if defined(_WIN32)
#define QCTS_EXPORT __declspec(dllexport)
#else
#define QCTS_EXPORT __attribute__((visibility("default")))
#endif
QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif
#endif
