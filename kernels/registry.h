// SPDX-License-Identifier: BSD-3-Clause
// The registry of implementations by (op, scheme), in the order of the list: best first.
// main() fills it once; after that it is read-only.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/abi/open_provider.h"
#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// Says whether a table of this version is accepted, from kOldestAbiVersion on.
bool takes_abi_version(uint32_t version);

// The functions of qcts_provider for files, or function objects that have their own state.
struct FileCalls {
  std::function<qcts_status(const char* input_path, const char* output_path, char* why, size_t why_size)>
      load_save = {};
  std::function<qcts_status(const qcts_program_call* call, char* why, size_t why_size)> run_program = {};
};

struct Implementation {
  std::string provider;  // "builtin", "aten"
  const qcts_kernel* kernel = nullptr;
  bool builtin = false;      // one of kernels.inc, so that variants name processor features
  FileCalls files{};         // only in file_implementations(), as is file_claims
  uint32_t file_claims = 0;  // QCTS_CLAIM_KEEPS_BYTES or 0
  // True if the provider can load, save and run saved programs.
  bool runs_programs() const { return files.load_save && files.run_program; }
  std::string name() const { return provider + "_" + kernel->variant; }
  std::string_view family() const;  // kernel->scheme without its activation policies
  // True if the kernel serves the policy; always true for operations without x.
  bool takes(std::string_view activation) const;
  // True if a linear takes planes in this layout; always true for other operations.
  bool reads(std::string_view layout) const;
  // Returns the reason why this machine cannot run the kernel, or an empty string if it can.
  // Variants of a plug-in do not name processor features, so its supports() decides.
  std::string machine_refusal() const;
};

struct ProviderInfo {
  std::string name, version, url, choices;
  std::string library;  // path of the shared library; empty for builtin
};

// Convert between "linear" and QCTS_OP_LINEAR.
// An unknown op gives an empty name, and an unknown name gives 0.
std::string_view op_name(uint32_t op);
uint32_t op_from_name(std::string_view name);

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Adds the kernels of a provider.
  // Throws std::runtime_error for a bad struct_size, a duplicate, a missing function or an unknown op,
  // and for a `library` that calls itself qcts, builtin or reference. Without a library, the name "builtin"
  // means the kernels of kernels.inc, in this process or in a host. The table must outlive the registry.
  // Tables and kernels of an older ABI are smaller; they are extended with zeros.
  // `files` are used if the table has no such functions.
  void add(const qcts_provider& given, std::string library = "", FileCalls files = {});
  // Loads a shared library into this process (open_provider) and calls add().
  void load(const std::filesystem::path& library);

  std::span<const Implementation> implementations() const { return implementations_; }
  // Returns the matching kernels, best first. `op` is a qcts_op, for example QCTS_OP_LINEAR.
  // `activation` matters only for linear and quantize_activation.
  std::vector<const Implementation*> find(uint32_t op, std::string_view family,
                                          std::string_view activation = "weight_only") const;
  std::span<const ProviderInfo> providers() const { return providers_; }
  const qcts_provider* provider(std::string_view name) const;
  // Holds one entry for each provider that saves and loads files itself.
  // The entry's kernel has op 0 and no functions.
  std::span<const Implementation> file_implementations() const { return file_implementations_; }

 private:
  std::vector<Implementation> implementations_, file_implementations_;
  std::vector<ProviderInfo> providers_;
  // Tables and kernels that were smaller than the structs of this program and have been extended.
  std::deque<qcts_provider> tables_;
  std::deque<qcts_kernel> kernels_;
  std::deque<std::vector<const qcts_kernel*>> kernel_lists_;  // kernel lists of those tables
  std::vector<void*> handles_;
};

// Returns the provider of the kernels in kernels.inc.
const qcts_provider& builtin_provider();

}  // namespace qcts
