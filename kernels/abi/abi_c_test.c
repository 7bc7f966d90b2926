// SPDX-License-Identifier: BSD-3-Clause
/* Compiled as C11 with -Wpedantic, because a vendor's plug-in in C needs only this header. */
#include "kernels/abi/qcts_kernel.h"

_Static_assert(offsetof(qcts_problem, struct_size) == 0, "every struct begins with its size");
_Static_assert(offsetof(qcts_plane, struct_size) == 0, "every struct begins with its size");
_Static_assert(offsetof(qcts_numerics, struct_size) == 0, "every struct begins with its size");
_Static_assert(offsetof(qcts_kernel, struct_size) == 0, "every struct begins with its size");
_Static_assert(offsetof(qcts_scheme_params, struct_size) == 0, "every struct begins with its size");
_Static_assert(offsetof(qcts_provider, struct_size) == 0, "every struct begins with its size");

static const qcts_provider provider = {
    .struct_size = sizeof provider, .abi_version = QCTS_ABI_VERSION, .name = "c"};

const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version >= QCTS_ABI_VERSION ? &provider : NULL;
}
