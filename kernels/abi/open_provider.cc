// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/abi/open_provider.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace qcts {
namespace {

std::string last_error() {
  const char* text = dlerror();
  return text == nullptr ? "" : text;
}

}  // namespace

OpenProvider open_provider(const std::filesystem::path& library) {
  OpenProvider provider;
  // NODELETE: threads that the library started may still run its code after dlclose.
  provider.handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (provider.handle == nullptr) throw std::runtime_error(last_error());
  const auto refuse = [&](const std::string& reason) {
    dlclose(provider.handle);
    throw std::runtime_error(library.string() + ": " + reason);
  };
  const auto entry = reinterpret_cast<qcts_provider_entry_fn>(dlsym(provider.handle, "qcts_provider_entry"));
  if (entry == nullptr) refuse("exports no qcts_provider_entry");
  for (uint32_t version = QCTS_ABI_VERSION; provider.table == nullptr && version >= kOldestAbiVersion;
       --version)
    provider.table = entry(version);
  if (provider.table == nullptr)
    refuse("refuses a host of ABI version " + std::to_string(QCTS_ABI_VERSION) +
           ", and every older one down to " + std::to_string(kOldestAbiVersion));
  return provider;
}

}  // namespace qcts
