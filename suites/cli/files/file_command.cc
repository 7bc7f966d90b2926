// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/file_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <new>

#include "reference/dialects/cpu_pack.h"
#include "reference/formats/pickle/globals.h"
#include "reference/formats/torch/object.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/json_document.h"
#include "suites/base/printable.h"
#include "suites/base/terminal.h"
#include "suites/cli/command_line.h"
#include "suites/cli/files/notes.h"

namespace qcts::cli {
namespace {

// Suggests the options that would read the file: globals on torch's blocklist have none.
std::string how_to_allow(const Refusal& refusal) {
  std::string options;
  for (const std::string& name : refusal.allow) {
    const bool plain = name.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == name.npos;
    options += (options.empty() ? "--allow " : " --allow ") + (plain ? name : "'" + name + "'");
  }
  if (!options.empty())
    return " (" + options + (refusal.allow.size() > 1 ? " keeps them, never run)" : " keeps it, never run)");
  constexpr std::string_view kDevice = "is on an unknown device ";
  const size_t at = refusal.detail.find(kDevice);
  if (at == std::string::npos) return "";
  const std::string tag = refusal.detail.substr(at + kDevice.size());
  if (tag.empty() || tag.find_first_of(" '\"=\n") != std::string::npos) return "";
  return " (--allow-location " + tag + " keeps it, --map-location " + tag +
         "=cpu reads it as if it were on the CPU)";
}

std::string refusal_text(const Refusal& refusal) { return "refused: " + describe(refusal); }

std::pair<std::string, std::string> parts_of_map(const std::string& map) {
  const size_t equals = map.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == map.size())
    throw CLI::ValidationError("--map-location " + map + ": FROM=TO, as in cuda:1=cpu");
  return {map.substr(0, equals), map.substr(equals + 1)};
}

// Drops the action from "PATH: ACTION: REASON" if the path does not exist.
std::string without_action(const std::string& text) {
  const size_t reason = text.rfind(": ");
  const size_t action = reason == std::string::npos ? reason : text.rfind(": ", reason - 1);
  return action == std::string::npos ? text : text.substr(0, action) + text.substr(reason);
}

// For a path that does not exist: what it looks like, and how to get the file.
std::string hint_of_missing(const std::string& text) {
  const std::string path = text.substr(0, text.rfind(": "));
  const auto slashes = std::ranges::count(path, '/');
  if (path.starts_with("file://")) return " (give the path without file://)";
  if (path.find("://") != std::string::npos) return " (qcts cannot read an address: download the file first)";
  if (path.starts_with("~")) return " (the shell replaces ~ only where it is not quoted)";
  if (path.find_first_of("*?") != std::string::npos) return " (no file matches)";
  if (slashes == 1 && path.find_first_of(" \\:") == std::string::npos && path.front() != '/' &&
      path.front() != '.' && path.back() != '/' && !std::filesystem::exists(path.substr(0, path.find('/'))))
    return " (a repository of the hub? hf download " + path + " --local-dir FOLDER fetches it)";
  return "";
}

RunError error_of(const IoError& error) {
  const bool no_such_path = error.error_number() == ENOENT || error.error_number() == ENOTDIR;
  if (std::string_view(error.what()).starts_with("-: "))
    return UsageError("-: qcts cannot read standard input: save it to a file and pass that");
  if (!no_such_path) return RunError(Outcome::infrastructure, error.what());
  const std::string text = without_action(error.what());
  return UsageError(text + hint_of_missing(text));
}

}  // namespace

std::string unknown_dialect(const std::string& name) {
  std::vector<std::string> names;
  for (std::string_view known : dialect_names()) names.emplace_back(known);
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return "";
  return "no dialect '" + name + "'" + did_you_mean(name, names);
}

void add_file_options(CLI::App& command, FileOptions& options, const std::string& dialect) {
  command.add_flag("--json", options.json, "print JSON");
  std::string dialects;
  for (std::string_view name : dialect_names())
    dialects += (dialects.empty() ? "" : ", ") + std::string(name);
  command.add_option(dialect, options.open.dialect, "read as this dialect: " + dialects);
  command.add_option(
      "--config", options.open.config,
      "the config.json that says how the weights of a file are quantized; default: the one next to the file");
  command.add_flag("--lenient", options.open.lenient, "accept what the formats' own libraries tolerate");
  command.add_flag("--no-crc", options.no_crc, "do not verify the checksums of a torch zip's records");
  command
      .add_option("--allow", options.open.allow,
                  "a pickle global, module.name, to accept and keep unresolved")
      ->allow_extra_args(false);
  command
      .add_option("--allow-location", options.open.allow_locations,
                  "a storage's device tag to accept in addition to torch's own")
      ->allow_extra_args(false);
  command
      .add_option_function<std::vector<std::string>>(
          "--map-location",
          [&options](const std::vector<std::string>& maps) {
            for (const std::string& map : maps) options.open.map_locations.push_back(parts_of_map(map));
          },
          "FROM=TO: read storages tagged with device FROM as if tagged TO, as torch.load(map_location) does; "
          "if several match, the longest FROM wins")
      ->allow_extra_args(false);
  command.parse_complete_callback([&options] {
    for (const auto& [from, to] : options.open.map_locations)
      if (!device_of_location(to, options.open.allow_locations))
        throw CLI::ValidationError("--map-location " + from + "=" + to + ": torch knows no device " + to +
                                   " (--allow-location " + to + ")");
    options.open.crc = options.no_crc ? CrcPolicy::skip : CrcPolicy::verify;
    const std::string unknown = unknown_dialect(options.open.dialect);
    if (!unknown.empty()) throw CLI::ValidationError(unknown);
  });
}

nlohmann::ordered_json refusal_json(const Refusal& refusal) {
  nlohmann::ordered_json body;
  body["class"] = refusal_class_name(refusal.cls);
  body["detail"] = refusal.detail;
  body["offset"] = refusal.offset ? nlohmann::ordered_json(*refusal.offset) : nlohmann::ordered_json(nullptr);
  body["security"] = refusal.security;
  if (!refusal.allow.empty()) body["allow"] = refusal.allow;
  return {{"refusal", body}};
}

std::string refusal_line(const Refusal& refusal) { return "qcts: " + refusal_text(refusal); }

void save_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  save_file(path, [&](ByteSink& sink) { sink.write(bytes); });
}

void save_file(const std::filesystem::path& path, const std::function<void(ByteSink&)>& fill) {
  try {
    write_file_atomically(path, fill);
  } catch (const IoError& error) {
    throw WriteFailure(error.what());
  }
}

std::string archive_prefix(const std::string& out) {
  const std::string stem = std::filesystem::path(out).stem().string();
  const bool ascii = std::all_of(stem.begin(), stem.end(), [](unsigned char c) { return c < 128; });
  return stem.empty() || !ascii ? "archive" : stem;
}

int guarded(bool json, const std::function<int()>& body, const std::filesystem::path& file) {
  return exit_code_of([&] {
    try {
      return static_cast<Outcome>(body());
    } catch (const RunError&) {
      throw;
    } catch (const Refused& error) {
      nlohmann::ordered_json refusal = refusal_json(error.refusal());
      if (!file.empty()) refusal["file"] = file.string();
      if (json) print_json("refusal", refusal);
      throw Failure(refusal_text(error.refusal()) + how_to_allow(error.refusal()));
    } catch (const IoError& error) {
      throw error_of(error);
    } catch (const std::filesystem::filesystem_error& error) {
      throw error_of(IoError(error.path1().string(), "use", error.code().value()));
    } catch (const std::bad_alloc&) {
      throw RunError(Outcome::infrastructure, "out of memory");
    } catch (const std::invalid_argument& error) {
      throw Failure(error.what());
    } catch (const std::exception& error) {
      throw RunError(Outcome::infrastructure, std::string("internal error: ") + error.what());
    }
  });
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : condensed(notes)) std::cerr << "qcts: note: " << printable(note) << "\n";
}

std::string finding_text(const CheckpointFinding& finding) {
  const bool named = finding.tensor.empty() || finding.text.find(finding.tensor) != std::string::npos;
  return named ? finding.text : finding.tensor + ": " + finding.text;
}

void print_findings(const Checkpoint& checkpoint) {
  print_notes(checkpoint.warnings);
  constexpr size_t kMaxShown = 20;
  size_t shown = 0;
  for (const CheckpointFinding& finding : checkpoint.findings) {
    if (++shown > kMaxShown) continue;
    std::cerr << "qcts: finding: " << printable(finding_text(finding)) << "\n";
  }
  if (shown > kMaxShown) std::cerr << "qcts: finding: and " << shown - kMaxShown << " more\n";
}

nlohmann::ordered_json findings_json(const Checkpoint& checkpoint) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CheckpointFinding& finding : checkpoint.findings)
    list.push_back({{"kind", finding.kind == CheckpointFinding::Kind::foreign ? "foreign" : "contradiction"},
                    {"tensor", finding.tensor},
                    {"text", finding.text}});
  return list;
}

void print_written(const std::filesystem::path& path, bool json) {
  if (json) return;
  uint64_t bytes = 0;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) bytes += entry.file_size();
  } else {
    bytes = std::filesystem::file_size(path);
  }
  std::cout << "wrote " << printable(path.string()) << ", " << grouped(bytes) << " bytes\n";
}

void require_no_gguf(const Checkpoint& checkpoint, const std::string& command) {
  if (checkpoint.ggufs.empty()) return;
  throw Failure(checkpoint.path.string() + ": a GGUF file, which " + command +
                " does not accept: qcts dequantize converts it to a safetensors file of floats");
}

std::string grouped(uint64_t number) { return with_commas(static_cast<double>(number)); }

std::string cpu_layout(const std::string& word) {
  const std::vector<std::string> known = {"avx512", "avx2", "default"};
  for (const std::string& candidate : known)
    if (word == candidate || word == "cpu_" + candidate) return "cpu_" + candidate;
  throw UsageError("no CPU pack '" + word + "'" + did_you_mean(word, known));
}

bool undeclared_pack(const Checkpoint& checkpoint) {
  return std::ranges::any_of(
      checkpoint.tensors, [](const NamedTensor& tensor) { return !tensor.scheme.empty() && !tensor.layout; });
}

std::string pack_text(const CpuPack& pack) {
  std::string text;
  for (const PackEvidence& evidence : pack.evidence)
    text +=
        (text.empty() ? "" : ", ") + std::string(evidence.pack.substr(4)) + " " + grouped(evidence.both_ends);
  return "of " + grouped(pack.groups) + " groups reach both ends: " + text;
}

std::string layout_if_shown(const Checkpoint& checkpoint, const std::string& asked, std::string& why_not) {
  if (!asked.empty()) return undeclared_pack(checkpoint) ? cpu_layout(asked) : "";
  const CpuPack pack = find_cpu_pack(checkpoint);
  if (pack.tensor.empty()) return "";
  const std::string where = checkpoint.path.string() + ": " + pack.tensor + ": ";
  if (pack.decided.empty()) {
    why_not = where + "the file does not say which CPU packed it, and neither do its codes: " + pack.why_not +
              " (" + pack_text(pack) + "); give the layout with --cpu-pack avx512|avx2|default";
    return "";
  }
  print_notes({where + "the file does not say which CPU packed it; its codes show " + pack.decided + " (" +
               pack_text(pack) + "); --cpu-pack overrides it"});
  return pack.decided;
}

std::string assumed_layout(const Checkpoint& checkpoint, const std::string& asked) {
  std::string why_not;
  std::string layout = layout_if_shown(checkpoint, asked, why_not);
  if (!why_not.empty()) throw UsageError(why_not);
  return layout;
}

}  // namespace qcts::cli
