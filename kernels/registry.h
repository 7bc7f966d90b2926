// SPDX-License-Identifier: BSD-3-Clause
// Implementations by (op, scheme), in list order: best first. Filled once in main(), then read-only.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// The oldest version whose tables are taken, 0.9, and whether those of `version` are: of this major version,
// whatever its minor, since structs only grow at their ends.
inline constexpr uint32_t kOldestAbiVersion = 9;
bool takes_abi_version(uint32_t version);

// qcts_provider.load_save, or one that carries its state.
using LoadSave =
    std::function<qcts_status(const char* input_path, const char* output_path, char* why, size_t why_size)>;

struct Implementation {
  std::string provider;  // "builtin", "aten"
  const qcts_kernel* kernel = nullptr;
  bool builtin = false;      // of this program, whose variants name processor features
  LoadSave load_save{};      // of file_implementations() alone, like the next
  uint32_t file_claims = 0;  // QCTS_CLAIM_KEEPS_BYTES or 0
  std::string name() const { return provider + "_" + kernel->variant; }
  std::string_view family() const;  // kernel->scheme without its activation policies
  // Does the kernel serve the policy? Always, for operations that know no x.
  bool takes(std::string_view activation) const;
  // Why this machine cannot run it; empty when it can. A plug-in's variant is a name of its own, and its
  // supports() answers.
  std::string machine_refusal() const;
};

struct ProviderInfo {
  std::string name, version, url, choices;
  std::string library;  // path of the shared library; empty for builtin
};

// "linear" <-> QCTS_OP_LINEAR; empty / 0 when unknown.
std::string_view op_name(uint32_t op);
uint32_t op_from_name(std::string_view name);

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Throws std::runtime_error for a bad struct_size, a duplicate, a missing function, an unknown op, and
  // where a `library` is given for the names qcts, builtin and reference. The table outlives the registry; it
  // and its kernels are completed with zeros where an older ABI made them smaller. `load_save` takes the
  // place of the table's where that has none.
  void add(const qcts_provider& given, std::string library = "", LoadSave load_save = {});
  // dlopen, version handshake with this version and each older one that is taken, add(). Throws
  // std::runtime_error with the loader's reason.
  void load(const std::filesystem::path& library);

  std::span<const Implementation> implementations() const { return implementations_; }
  // Best first. `op`: QCTS_OP_LINEAR ...; `activation` counts for linear and quantize_activation.
  std::vector<const Implementation*> find(uint32_t op, std::string_view family,
                                          std::string_view activation = "weight_only") const;
  std::span<const ProviderInfo> providers() const { return providers_; }
  const qcts_provider* provider(std::string_view name) const;
  // One for each provider that saves and loads files itself; its kernel has op 0 and no functions.
  std::span<const Implementation> file_implementations() const { return file_implementations_; }

 private:
  std::vector<Implementation> implementations_, file_implementations_;
  std::vector<ProviderInfo> providers_;
  // As large as this program knows them; the kernels are those that came smaller.
  std::deque<qcts_provider> tables_;
  std::deque<qcts_kernel> kernels_;
  std::deque<std::vector<const qcts_kernel*>> kernel_lists_;  // of the tables
  std::vector<void*> handles_;
};

// Does it load, save and run saved programs? Looks at the fields alone that its struct reaches.
bool runs_programs(const qcts_provider& provider);

// The kernels of kernels.inc.
const qcts_provider& builtin_provider();

}  // namespace qcts
