// SPDX-License-Identifier: BSD-3-Clause
// Reads a qcts_problem: its planes, dtypes, names and parameters.
#pragma once

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Writes the reason to `why` (printf format, truncated to why_size) and returns `status`. `why` may be NULL.
__attribute__((format(printf, 4, 5))) qcts_status refuse(qcts_status status, char* why, size_t why_size,
                                                         const char* format, ...);

// True if the texts are equal; false if `text` is NULL.
bool same_text(const char* text, const char* other);

// Returns the parameters of the problem's scheme.
// All are 0 if the host gave none, or gave a struct shorter than ours.
const qcts_scheme_params& scheme_params(const qcts_problem& problem);
bool has_scheme_params(const qcts_problem& problem);
// Returns the dtype in which the scales of the weight are stored.
uint32_t scale_dtype(const qcts_problem& problem);

// True if a kernel's scheme lists the policy `activation`.
// For example, "int8_row:dyn_row_sym,dyn_row_asym" lists two policies, and "F:*" lists all.
// A scheme without policies serves only weight_only.
bool lists_policy(const char* scheme, const char* activation);

// True for "plain", and for NULL and "", which mean the same.
bool is_plain(const char* layout);
// True if a linear with these qcts_kernel::reads_layouts (NULL: none) takes planes in `layout`: plain, or
// listed.
bool reads_layout(const char* reads_layouts, const char* layout);

// True for tile_packed_4d and tile_packed_4d_v1. They have the same byte order but come from two producers.
bool is_tile_packed(const char* layout);

// Return the plane called `name`, its data or its dtype; NULL, NULL or QCTS_NONE if there is none.
const qcts_plane* find_plane(const qcts_plane* planes, uint32_t count, const char* name);
void* plane_data(const qcts_plane* planes, uint32_t count, const char* name);
uint32_t plane_dtype(const qcts_plane* planes, uint32_t count, const char* name);

// True for an op on rows of x that has none. Its run() then returns QCTS_OK, and no pointer is used.
bool has_no_rows(uint32_t op, const qcts_problem& problem);

// Returns 1, 2, 4 or 8; returns 0 for QCTS_NONE and for dtypes that store two elements in a byte.
uint32_t dtype_bytes(uint32_t dtype);

}  // namespace qcts
