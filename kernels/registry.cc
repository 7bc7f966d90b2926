// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/registry.h"

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>

#include "kernels/abi/known_part.h"
#include "kernels/abi/problem.h"
#include "kernels/families/entry.h"
#include "kernels/machine/machine.h"

namespace qcts {
namespace {

struct OpName {
  uint32_t op;
  std::string_view name;
};
constexpr OpName kOps[] = {
    {QCTS_OP_QUANTIZE, "quantize"},     {QCTS_OP_QUANTIZE_ACTIVATION, "quantize_activation"},
    {QCTS_OP_DEQUANTIZE, "dequantize"}, {QCTS_OP_PACK, "pack"},
    {QCTS_OP_UNPACK, "unpack"},         {QCTS_OP_LINEAR, "linear"},
};

// Names of providers and variants become parts of case ids.
bool is_word(const char* text) {
  if (text == nullptr || *text == '\0') return false;
  for (; *text != '\0'; ++text)
    if (!(*text >= 'a' && *text <= 'z') && !(*text >= '0' && *text <= '9')) return false;
  return true;
}

// This program has special rules for judging these; a library with such a name would be mistaken for them.
bool is_reserved(std::string_view name) { return name == "qcts" || name == "builtin" || name == "reference"; }

std::string kernel_name(const qcts_provider& provider, const qcts_kernel& kernel) {
  return std::string(provider.name) + ": " + std::string(op_name(kernel.op)) + "/" + kernel.scheme + "/" +
         kernel.variant;
}

// Minimum struct sizes: a kernel's as in 0.9, a provider's as before load_save.
constexpr size_t kMinKernelBytes = offsetof(qcts_kernel, run) + sizeof qcts_kernel::run;
constexpr size_t kMinProviderBytes = offsetof(qcts_provider, load_save);

// Returns the provider's own entry, or a copy in `copies` if the entry is smaller than this program's
// qcts_kernel.
const qcts_kernel* known_kernel(const qcts_provider& provider, uint32_t index,
                                std::deque<qcts_kernel>& copies) {
  const qcts_kernel* given = provider.kernels[index];
  const std::string where = std::string(provider.name) + ": kernel " + std::to_string(index);
  if (given == nullptr) throw std::runtime_error(where + " is NULL");
  if (given->struct_size >= sizeof(qcts_kernel)) return given;
  return &copies.emplace_back(known_part<qcts_kernel>(given, kMinKernelBytes, where));
}

void check_kernel(const qcts_provider& provider, uint32_t index) {
  const qcts_kernel* kernel = provider.kernels[index];
  const std::string where = std::string(provider.name) + ": kernel " + std::to_string(index);
  if (op_name(kernel->op).empty())
    throw std::runtime_error(where + ": unknown op " + std::to_string(kernel->op));
  if (kernel->scheme == nullptr || *kernel->scheme == '\0') throw std::runtime_error(where + ": no scheme");
  if (!is_word(kernel->variant)) throw std::runtime_error(where + ": variant must be a word of a-z and 0-9");
  if (kernel->supports == nullptr)
    throw std::runtime_error(kernel_name(provider, *kernel) + ": no supports()");
  if (kernel->run == nullptr) throw std::runtime_error(kernel_name(provider, *kernel) + ": no run()");
  if ((kernel->prepare == nullptr) != (kernel->prepared_bytes == nullptr))
    throw std::runtime_error(kernel_name(provider, *kernel) +
                             ": needs both prepare() and prepared_bytes(), or neither");
  if (kernel->op == QCTS_OP_LINEAR && kernel->numerics.struct_size < sizeof(qcts_numerics))
    throw std::runtime_error(kernel_name(provider, *kernel) + ": numerics.struct_size " +
                             std::to_string(kernel->numerics.struct_size));
  const qcts_fused_sums& fused = kernel->fused_sums;
  if (fused.terms != 0 && fused.struct_size < sizeof fused)
    throw std::runtime_error(kernel_name(provider, *kernel) + ": fused_sums.struct_size " +
                             std::to_string(fused.struct_size));
}

bool same(const qcts_kernel& a, const qcts_kernel& b) {
  return a.op == b.op && std::string_view(a.scheme) == b.scheme && std::string_view(a.variant) == b.variant;
}

// Stands for a provider's load_save in ids: it is judged like a kernel.
const qcts_kernel& load_save_kernel() {
  static const qcts_kernel kernel = [] {
    qcts_kernel entry = {};
    entry.struct_size = sizeof entry;
    entry.scheme = "";
    entry.variant = "loadsave";
    return entry;
  }();
  return kernel;
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

#define QCTS_KERNEL(op, scheme, variant) &qcts_kernel_##op##_##scheme##_##variant,
const qcts_kernel* const kBuiltin[] = {
#include "kernels/kernels.inc"
};

}  // namespace

std::string_view op_name(uint32_t op) {
  for (const OpName& entry : kOps)
    if (entry.op == op) return entry.name;
  return {};
}

uint32_t op_from_name(std::string_view name) {
  for (const OpName& entry : kOps)
    if (entry.name == name) return entry.op;
  return 0;
}

bool takes_abi_version(uint32_t version) {
  constexpr uint32_t kVersionsOfMajor = 100;
  return version >= kOldestAbiVersion && version / kVersionsOfMajor == QCTS_ABI_VERSION / kVersionsOfMajor;
}

std::string Implementation::machine_refusal() const {
  return builtin ? variant_refusal(kernel->variant) : "";
}

Registry::Registry() = default;

Registry::~Registry() {
  for (void* handle : handles_) dlclose(handle);
}

void Registry::add(const qcts_provider& given, std::string library, FileCalls files) {
  auto table = known_part<qcts_provider>(&given, kMinProviderBytes, "provider");
  if (!is_word(table.name)) throw std::runtime_error("provider: name must be a word of a-z and 0-9");
  if (!library.empty() && is_reserved(table.name))
    throw std::runtime_error(library + ": calls itself '" + table.name + "', which is reserved");
  if (!takes_abi_version(table.abi_version))
    throw std::runtime_error(std::string(table.name) + ": ABI version " + std::to_string(table.abi_version) +
                             ", but this program has version " + std::to_string(QCTS_ABI_VERSION) +
                             " and accepts " + std::to_string(kOldestAbiVersion) +
                             " and newer within the same major version");
  if (provider(table.name) != nullptr)
    throw std::runtime_error(std::string(table.name) + ": a provider with this name is already loaded");
  if (table.n_kernels > 0 && table.kernels == nullptr)
    throw std::runtime_error(std::string(table.name) + ": n_kernels is not 0, but kernels is NULL");
  std::vector<const qcts_kernel*> kernels;
  for (uint32_t i = 0; i < table.n_kernels; ++i) kernels.push_back(known_kernel(table, i, kernels_));
  table.kernels = kernels.data();
  for (uint32_t i = 0; i < table.n_kernels; ++i) {
    check_kernel(table, i);
    for (uint32_t j = 0; j < i; ++j)
      if (same(*table.kernels[i], *table.kernels[j]))
        throw std::runtime_error(kernel_name(table, *table.kernels[i]) + ": listed twice");
  }
  const bool is_builtin = library.empty() && std::string_view(table.name) == builtin_provider().name;
  kernel_lists_.push_back(std::move(kernels));  // its data stays where it is
  tables_.push_back(table);
  for (uint32_t i = 0; i < table.n_kernels; ++i)
    implementations_.push_back({table.name, table.kernels[i], is_builtin});
  if (table.load_save != nullptr) files.load_save = table.load_save;
  if (table.run_program != nullptr) files.run_program = table.run_program;
  if (files.load_save)
    file_implementations_.push_back({table.name, &load_save_kernel(), false, std::move(files), table.claims});
  providers_.push_back({table.name, text_or_empty(table.version), text_or_empty(table.url),
                        text_or_empty(table.choices), std::move(library)});
}

void Registry::load(const std::filesystem::path& library) {
  const OpenProvider opened = open_provider(library);
  try {
    add(*opened.table, library.string());
  } catch (...) {
    dlclose(opened.handle);
    throw;
  }
  handles_.push_back(opened.handle);
}

std::string_view Implementation::family() const {
  const std::string_view scheme = kernel->scheme;
  return scheme.substr(0, scheme.find(':'));
}

bool Implementation::takes(std::string_view activation) const {
  if (kernel->op != QCTS_OP_LINEAR && kernel->op != QCTS_OP_QUANTIZE_ACTIVATION) return true;
  return lists_policy(kernel->scheme, std::string(activation).c_str());
}

bool Implementation::reads(std::string_view layout) const {
  return kernel->op != QCTS_OP_LINEAR || reads_layout(kernel->reads_layouts, std::string(layout).c_str());
}

std::vector<const Implementation*> Registry::find(uint32_t op, std::string_view family,
                                                  std::string_view activation) const {
  std::vector<const Implementation*> found;
  for (const Implementation& implementation : implementations_)
    if (implementation.kernel->op == op && family == implementation.family() &&
        implementation.takes(activation))
      found.push_back(&implementation);
  return found;
}

const qcts_provider* Registry::provider(std::string_view name) const {
  for (size_t i = 0; i < providers_.size(); ++i)
    if (providers_[i].name == name) return &tables_[i];
  return nullptr;
}

const qcts_provider& builtin_provider() {
  static const qcts_provider table = [] {
    qcts_provider provider = {};
    provider.struct_size = sizeof provider;
    provider.abi_version = QCTS_ABI_VERSION;
    provider.name = "builtin";
    provider.version = QCTS_VERSION;
    provider.choices = QCTS_CHOICE_HOSTILE_INPUTS;
    provider.n_kernels = static_cast<uint32_t>(std::size(kBuiltin));
    provider.kernels = kBuiltin;
    return provider;
  }();
  return table;
}

}  // namespace qcts
