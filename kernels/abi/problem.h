// SPDX-License-Identifier: BSD-3-Clause
// Reading a qcts_problem: its planes, dtypes, names and parameters. Ordinary functions, compiled once for the
// baseline processor.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Writes the reason (printf format, cut at why_size) and returns `status`. why may be NULL.
__attribute__((format(printf, 4, 5))) qcts_status refuse(qcts_status status, char* why, size_t why_size,
                                                         const char* format, ...);

// Are the texts equal? No where `text` is NULL.
bool same_text(const char* text, const char* other);

// The parameters of the problem's scheme; all 0 where the host gave none or fewer than this program reads.
const qcts_scheme_params& scheme_params(const qcts_problem& problem);
bool has_scheme_params(const qcts_problem& problem);
// In which the weight's scales are stored.
uint32_t scale_dtype(const qcts_problem& problem);

// Is `activation` one of the policies that a kernel's scheme lists ("int8_row:dyn_row_sym,dyn_row_asym",
// "F:*" for all)? One without policies serves weight_only.
bool lists_policy(const char* scheme, const char* activation);

// tile_packed_4d and tile_packed_4d_v1: one order of the bytes, two producers.
bool is_tile_packed(const char* layout);

// The plane called `name`, its data, its dtype; NULL, NULL, QCTS_NONE when absent.
const qcts_plane* find_plane(const qcts_plane* planes, uint32_t count, const char* name);
void* plane_data(const qcts_plane* planes, uint32_t count, const char* name);
uint32_t plane_dtype(const qcts_plane* planes, uint32_t count, const char* name);

// 1, 2, 4 or 8; 0 for QCTS_NONE and for dtypes that share bytes.
uint32_t dtype_bytes(uint32_t dtype);

}  // namespace qcts
