// SPDX-License-Identifier: BSD-3-Clause
// qcts inspect FILE: shows a checkpoint's contents as a table or as JSON.
#include <algorithm>
#include <iostream>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include <unistd.h>

#include "reference/comparison/words.h"
#include "reference/dialects/blocks/blocks.h"
#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/classes/qtensor.h"
#include "reference/dialects/config.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/own_metadata.h"
#include "reference/formats/io/sha256.h"
#include "suites/base/json_document.h"
#include "suites/base/printable.h"
#include "suites/base/terminal.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/file_command.h"
#include "suites/cli/files/inspect_script.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

// Names of storages. In a directory several pickles use the same keys, so the shard's name is the prefix.
class StorageNames {
 public:
  explicit StorageNames(const Checkpoint& checkpoint) {
    if (checkpoint.zips.size() + checkpoint.legacies.size() < 2) return;
    for (const auto& zip : checkpoint.zips) add(*zip, *zip->file);
    for (const auto& legacy : checkpoint.legacies) add(*legacy, *legacy->file);
  }
  std::string operator()(const Storage& storage) const {
    const auto prefix = prefixes_.find(&storage);
    return prefix == prefixes_.end() ? std::string(storage.key) : prefix->second + std::string(storage.key);
  }

 private:
  void add(const TorchObject& object, const MappedFile& file) {
    for (const auto& storage : object.storages)
      prefixes_[storage.get()] = std::filesystem::path(file.path()).filename().string() + ":";
  }
  std::unordered_map<const Storage*, std::string> prefixes_;
};

// Counts each storage only for its first tensor, so that the bytes add up to payload_bytes.
uint64_t own_bytes(const NamedTensor& tensor, std::unordered_set<const Storage*>& counted) {
  uint64_t bytes = 0;
  for (const InnerTensor& inner : tensor.payload)
    if (counted.insert(inner.tensor.storage.get()).second) bytes += inner.tensor.storage->bytes.size();
  return bytes;
}

Json inner_json(const InnerTensor& inner, const StorageNames& names) {
  std::vector<std::byte> scratch;
  Json json;
  json["name"] = inner.name;
  json["dtype"] = dtype_name(inner.tensor.dtype);
  json["shape"] = inner.tensor.shape;
  json["sha256"] = sha256_hex(row_major_view(inner.tensor, scratch));
  json["storage"] = names(*inner.tensor.storage);
  json["storage_bytes"] = inner.tensor.storage->bytes.size();
  json["offset"] = inner.tensor.offset_elems;
  json["stride"] = inner.tensor.stride;
  if (!inner.tensor.storage->location.empty()) json["location"] = inner.tensor.storage->location;
  return json;
}

// Is any weight of the dialect left apart?
bool is_foreign_dialect(const Checkpoint& checkpoint) {
  const auto is_foreign = [](const CheckpointFinding& finding) {
    return finding.kind == CheckpointFinding::Kind::foreign;
  };
  return std::ranges::find(dialect_names(), checkpoint.dialect) == dialect_names().end() &&
         std::ranges::any_of(checkpoint.findings, is_foreign);
}

bool holds_foreign(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors, [](const NamedTensor& t) { return !t.foreign.empty(); });
}

double reduction(const Checkpoint& checkpoint) {
  const uint64_t payload = payload_bytes(checkpoint);
  return payload ? static_cast<double>(dense_bytes(checkpoint)) / static_cast<double>(payload) : 1.0;
}

// The dtype and torchao's quantization in config.json.
Json config_json(const Json& config) {
  Json json;
  const std::optional<DType> dtype = config_dtype(config);
  json["dtype"] = dtype ? Json(dtype_name(*dtype)) : Json(nullptr);
  json["quantization"] = nullptr;
  try {
    if (const std::optional<TorchAoQuantization> said = torchao_quantization(config))
      json["quantization"] = {
          {"name", said->name}, {"arguments", said->arguments}, {"not_converted", said->not_converted}};
  } catch (const Refused&) {  // a finding reports it
  }
  return json;
}

// null when every weight's layout is known.
Json pack_json(const CpuPack& pack) {
  if (pack.tensor.empty()) return nullptr;
  const bool decided = !pack.decided.empty();
  Json json = {{"tensors", pack.tensors}, {"groups", pack.groups}};
  for (const PackEvidence& evidence : pack.evidence)
    json["both_ends"][std::string(evidence.pack)] = evidence.both_ends;
  json["decided"] = decided ? Json(pack.decided) : Json(nullptr);
  json["chance"] = decided ? Json(pack.chance) : Json(nullptr);
  json["why_not"] = decided ? Json(nullptr) : Json(pack.why_not);
  return json;
}

void print_pack(const CpuPack& pack) {
  if (pack.tensor.empty()) return;
  char chance[32];
  std::snprintf(chance, sizeof chance, "%.0e", std::max(pack.chance, 1e-300));
  Printout out(screen_of(STDOUT_FILENO));
  out.text("CPU layout, which the file does not record: " + pack_text(pack) + "; " +
           (pack.decided.empty() ? "undecided: " + pack.why_not : pack.decided + " (p < " + chance + ")"));
  std::cout << out.str();
}

std::string scheme_name(const NamedTensor& tensor) {
  if (tensor.coded) return tensor.coded->scheme;
  if (is_qtensor(tensor)) return qtensor_scheme(tensor);
  return tensor.blocks && tensor.foreign.empty() ? gguf_scheme_name(*tensor.blocks) : tensor.scheme;
}

Json checkpoint_json(const Checkpoint& checkpoint) {
  const StorageNames names(checkpoint);
  std::unordered_set<const Storage*> counted;
  Json json;
  json["format"] = format_name(checkpoint.format);
  json["dialect"] = checkpoint.dialect;
  json["file_bytes"] = checkpoint.file_bytes;
  json["payload_bytes"] = payload_bytes(checkpoint);
  const bool foreign = holds_foreign(checkpoint);
  json["dense_bytes"] = foreign ? Json(nullptr) : Json(dense_bytes(checkpoint));
  json["reduction"] = foreign ? Json(nullptr) : Json(reduction(checkpoint));
  json["findings"] = findings_json(checkpoint);
  if (checkpoint.config.is_object()) json["config"] = config_json(checkpoint.config);
  if (const Json pack = pack_json(find_cpu_pack(checkpoint)); !pack.is_null()) json["cpu_pack"] = pack;
  if (!checkpoint.safetensors.empty()) {
    json["metadata"] = Json::object();
    for (const auto& [key, value] : own_metadata(checkpoint)) json["metadata"][key] = value;
  }
  if (!checkpoint.ggufs.empty()) {
    json["metadata"] = Json::object();
    for (const GgufPair& pair : checkpoint.ggufs[0]->metadata)
      json["metadata"][pair.key] = gguf_value_text(pair.value);
  }
  json["tensors"] = Json::array();
  PageRelease pages(checkpoint);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    Json entry;
    entry["name"] = tensor.name;
    const std::string scheme = scheme_name(tensor);
    entry["scheme"] = scheme.empty() ? Json(nullptr) : Json(scheme);
    if (!tensor.foreign.empty()) entry["foreign"] = tensor.foreign;
    entry["type"] = tensor.type;
    entry["shape"] = tensor.shape;
    entry["dtype"] = dtype_name(tensor.dtype);
    entry["bytes"] = own_bytes(tensor, counted);
    entry["payload"] = Json::array();
    for (const InnerTensor& inner : tensor.payload) entry["payload"].push_back(inner_json(inner, names));
    entry["attributes"] = tensor.attributes;
    pages.was_read(tensor);
    json["tensors"].push_back(std::move(entry));
  }
  return json;
}

std::string shape_word(const std::vector<int64_t>& shape) {
  std::string word;
  for (int64_t size : shape) word += (word.empty() ? "" : "x") + std::to_string(size);
  return word.empty() ? "scalar" : word;
}

std::string scheme_text(const NamedTensor& tensor) {
  if (!tensor.foreign.empty()) return "(" + std::string(tensor.foreign) + ")";
  const std::string name = scheme_name(tensor);
  if (name.empty()) return "-";
  return !tensor.layout ? name : name + "/" + std::string(layout_name(tensor.layout));
}

std::string payload_text(const NamedTensor& tensor) {
  std::string payload;
  for (const InnerTensor& inner : tensor.payload)
    payload += (payload.empty() ? "" : ", ") + inner.name + " " +
               std::string(dtype_name(inner.tensor.dtype)) + "[" + shape_word(inner.tensor.shape) + "]";
  return payload;
}

// Is a table with these columns within the screen, its first column with every name?
bool fits(const std::vector<Column>& columns, const std::vector<TableRow>& rows, const Screen& screen) {
  size_t all = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t width = columns_of(columns[i].title);
    for (const TableRow& row : rows) width = std::max(width, columns_of(printable(row[i])));
    all += width + (i > 0 ? 2 : 0);
  }
  return all <= screen.columns;
}

// A row a tensor if the screen is wide enough, otherwise a paragraph.
void print_tensors(const Checkpoint& checkpoint, Printout& out) {
  const std::vector<Column> columns = {
      {"NAME"}, {"SCHEME"}, {"TYPE"}, {"SHAPE"}, {"DTYPE"}, {"BYTES", Align::right}, {"PAYLOAD"}};
  std::unordered_set<const Storage*> counted;
  std::vector<TableRow> rows;
  for (const NamedTensor& tensor : checkpoint.tensors)
    rows.push_back({tensor.name, scheme_text(tensor), tensor.type, shape_word(tensor.shape),
                    std::string(dtype_name(tensor.dtype)), grouped(own_bytes(tensor, counted)),
                    payload_text(tensor)});
  if (fits(columns, rows, out.screen()) && out.table(columns, rows)) return;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TableRow& row = rows[i];
    out.text(row[0]);
    const bool plain = is_plain(checkpoint.tensors[i]) && checkpoint.tensors[i].payload.size() == 1;
    out.text((row[1] == "-" ? "" : row[1] + ", ") + row[3] + " " + row[4] + ", " + row[5] + " bytes, " +
                 row[2] + (plain ? "" : ": " + row[6]),
             2);
  }
}

std::string metadata_words(const GgufValue& value) {
  const std::string text = gguf_value_text(value);
  return value.type == GgufValueType::string ? in_quotes(text) : printable(text);
}

void print_table(const Checkpoint& checkpoint) {
  Printout out(screen_of(STDOUT_FILENO));
  print_tensors(checkpoint, out);
  out.blank();
  std::string sum = std::string(format_name(checkpoint.format)) + ", dialect " + checkpoint.dialect +
                    (is_foreign_dialect(checkpoint) ? " (qcts cannot read it)" : "") + ", " +
                    std::to_string(checkpoint.tensors.size()) + " tensors; file " +
                    grouped(checkpoint.file_bytes) + " bytes, payload " + grouped(payload_bytes(checkpoint));
  if (!holds_foreign(checkpoint))
    sum += ", dense " + grouped(dense_bytes(checkpoint)) + ", reduction " + fixed(reduction(checkpoint), 2) +
           "x";
  out.text(sum);
  for (const auto& [key, value] : own_metadata(checkpoint))
    out.text("metadata " + key + " = " + in_quotes(value));
  for (const auto& file : checkpoint.ggufs)
    for (const GgufPair& pair : file->metadata)
      out.text("metadata " + pair.key + " = " + metadata_words(pair.value));
  std::cout << out.str();
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  struct Arguments {
    FileOptions options;
    std::string file;
  };
  auto words = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("inspect", "show a checkpoint's tensors, schemes, payload hashes and sizes");
  command->add_option("FILE", words->file, "a file, or a directory with config.json and shards")->required();
  add_file_options(*command, words->options);
  command->callback([words, &exit_code] {
    exit_code = guarded(words->options.json, [&] {
      const Checkpoint checkpoint = open_checkpoint(words->file, words->options.open);
      const Limits& limits = words->options.open.limits;
      if (words->options.json) {
        Json json = checkpoint_json(checkpoint);
        if (checkpoint.script) json["program"] = program_json(*checkpoint.script, limits);
        print_json("inspect", json);
      } else {
        print_table(checkpoint);
        print_pack(find_cpu_pack(checkpoint));
        if (checkpoint.script) print_program(*checkpoint.script, limits);
      }
      print_findings(checkpoint);
      return 0;
    });
  });
}

}  // namespace qcts::cli
