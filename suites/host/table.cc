// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/table.h"

#include <cstddef>

#include "kernels/abi/known_part.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Json text_json(const char* text) { return text == nullptr ? Json() : Json(text); }

template <class T>
Json words_json(const T& value) {
  Json words = Json::array();
  static_assert(sizeof value % sizeof(uint32_t) == 0);
  for (size_t i = 0; i < sizeof value / sizeof(uint32_t); ++i) {
    uint32_t word;
    std::memcpy(&word, reinterpret_cast<const char*>(&value) + i * sizeof word, sizeof word);
    words.push_back(word);
  }
  return words;
}

// A kernel that is too short to be one is described only by its size, which refuses it.
Json kernel_json(const qcts_kernel* given) {
  if (given == nullptr) return nullptr;
  Json json = {{"struct_size", given->struct_size}};
  constexpr size_t kMinBytes = offsetof(qcts_kernel, run) + sizeof qcts_kernel::run;
  if (given->struct_size < kMinBytes) return json;
  const auto kernel = known_part<qcts_kernel>(given, kMinBytes, "kernel");
  json["op"] = kernel.op;
  json["scheme"] = text_json(kernel.scheme);
  json["variant"] = text_json(kernel.variant);
  json["description"] = text_json(kernel.description);
  json["claims"] = kernel.claims;
  json["numerics"] = words_json(kernel.numerics);
  json["fused_sums"] = words_json(kernel.fused_sums);
  json["reads_layouts"] = text_json(kernel.reads_layouts);
  json["align_bytes"] = kernel.align_bytes;
  json["row_align_bytes"] = kernel.row_align_bytes;
  json["has"] = {{"supports", kernel.supports != nullptr},
                 {"workspace_bytes", kernel.workspace_bytes != nullptr},
                 {"prepared_bytes", kernel.prepared_bytes != nullptr},
                 {"prepare", kernel.prepare != nullptr},
                 {"run", kernel.run != nullptr},
                 {"failure", kernel.failure != nullptr}};
  return json;
}

}  // namespace

Json table_json(const qcts_provider& given) {
  const auto table = known_part<qcts_provider>(&given, offsetof(qcts_provider, load_save), "provider");
  Json json = {{"struct_size", given.struct_size},
               {"abi_version", table.abi_version},
               {"name", text_json(table.name)},
               {"version", text_json(table.version)},
               {"url", text_json(table.url)},
               {"choices", text_json(table.choices)},
               {"profile", text_json(table.profile)},
               {"n_kernels", table.n_kernels},
               {"claims", table.claims},
               {"load_save", table.load_save != nullptr},
               {"run_program", table.run_program != nullptr}};
  if (table.kernels == nullptr) return json;
  Json kernels = Json::array();
  for (uint32_t i = 0; i < table.n_kernels; ++i) kernels.push_back(kernel_json(table.kernels[i]));
  json["kernels"] = std::move(kernels);
  return json;
}

}  // namespace qcts
