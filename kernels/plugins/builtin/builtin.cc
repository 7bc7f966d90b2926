// SPDX-License-Identifier: BSD-3-Clause
// The kernels of kernels.inc as a shared library, so that a host loads them like anybody's.
#include "kernels/registry.h"

extern "C" QCTS_EXPORT const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  return host_abi_version == QCTS_ABI_VERSION ? &qcts::builtin_provider() : nullptr;
}
