// Implementations by (op, scheme), in list order: best first. Filled once in main(), then read-only.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

struct Implementation {
  std::string provider;  // "builtin", "aten"
  const qcts_kernel* kernel = nullptr;
  bool builtin = false;  // of this program, whose variants name processor features
  std::string name() const { return provider + "_" + kernel->variant; }
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

  // Throws std::runtime_error for a bad struct_size, a duplicate, a missing function, an unknown op.
  void add(const qcts_provider& provider, std::string library = "");
  // dlopen, version handshake, add(). Throws std::runtime_error with the loader's reason.
  void load(const std::filesystem::path& library);

  std::span<const Implementation> implementations() const { return implementations_; }
  std::vector<const Implementation*> find(std::string_view op, std::string_view family) const;  // best first
  std::span<const ProviderInfo> providers() const { return providers_; }
  const qcts_provider* provider(std::string_view name) const;

 private:
  std::vector<Implementation> implementations_;
  std::vector<ProviderInfo> providers_;
  std::vector<const qcts_provider*> tables_;
  std::vector<void*> handles_;
};

// Does it load, save and run saved programs? Looks at the fields alone that its struct reaches.
bool runs_programs(const qcts_provider& provider);

// The kernels of kernels.inc.
const qcts_provider& builtin_provider();

}  // namespace qcts
