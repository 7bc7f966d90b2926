// SPDX-License-Identifier: BSD-3-Clause
/* A provider whose kernels are in a second library next to it, inner.so, which it opens itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <qcts_kernel.h>
#include <stdio.h>
#include <string.h>

const qcts_provider* qcts_provider_entry(uint32_t host_abi_version) {
  Dl_info own;
  char path[4096];
  if (dladdr((void*)qcts_provider_entry, &own) == 0) return NULL;
  const char* const slash = strrchr(own.dli_fname, '/');
  const int folder_size = slash == NULL ? 0 : (int)(slash - own.dli_fname + 1);
  snprintf(path, sizeof path, "%.*sinner.so", folder_size, own.dli_fname);
  void* const inner = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (inner == NULL) return NULL;
  qcts_provider_entry_fn entry;
  *(void**)&entry = dlsym(inner, "qcts_provider_entry");
  return entry == NULL ? NULL : entry(host_abi_version);
}
