// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/file_command.h"

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <new>

#include "reference/formats/pickle/globals.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/json_document.h"
#include "suites/base/printable.h"
#include "suites/base/terminal.h"

namespace qcts::cli {
namespace {

int say(const std::string& text, int exit_code) {
  std::cout.flush();
  std::cerr << "qcts: " << printable(text) << "\n";
  return exit_code;
}

// Suggests --allow for a refused global; globals on torch's blocklist cannot be allowed.
std::string how_to_allow(const Refusal& refusal) {
  constexpr std::string_view kWord = "global ";
  const size_t at = refusal.detail.find(kWord);
  if (refusal.cls != RefusalClass::PickleGlobal || at == std::string::npos) return "";
  const std::string name = refusal.detail.substr(at + kWord.size());
  const bool plain = name.find('.') != std::string::npos && name.find_first_of(" :?") == std::string::npos;
  if (!plain || pickle::is_blocked_module(name.substr(0, name.rfind('.')))) return "";
  return " (--allow " + name + " keeps it, never run)";
}

int refused(const Refusal& refusal, bool json) {
  if (json) print_json("refusal", refusal_json(refusal));
  std::cout.flush();
  std::cerr << printable(refusal_line(refusal) + how_to_allow(refusal)) << "\n";
  return 1;
}

// Drops the action from "PATH: ACTION: REASON" if the path does not exist.
std::string without_action(const std::string& text) {
  const size_t reason = text.rfind(": ");
  const size_t action = reason == std::string::npos ? reason : text.rfind(": ", reason - 1);
  return action == std::string::npos ? text : text.substr(0, action) + text.substr(reason);
}

int failed(const IoError& error) {
  const bool no_such_path = error.error_number() == ENOENT || error.error_number() == ENOTDIR;
  if (std::string_view(error.what()).starts_with("-: "))
    return say("-: standard input is not read: save it to a file and name that", 2);
  return no_such_path ? say(without_action(error.what()), 2) : say(error.what(), 5);
}

}  // namespace

void add_file_options(CLI::App& command, FileOptions& options) {
  command.add_flag("--json", options.json, "print JSON");
  std::string dialects;
  for (std::string_view name : dialect_names())
    dialects += (dialects.empty() ? "" : ", ") + std::string(name);
  command.add_option("--dialect", options.open.dialect, "read as this dialect: " + dialects);
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
  command.parse_complete_callback([&options] {
    options.open.crc = options.no_crc ? CrcPolicy::skip : CrcPolicy::verify;
    if (options.open.dialect.empty()) return;
    std::vector<std::string> names;
    for (std::string_view name : dialect_names()) names.emplace_back(name);
    for (const std::string& name : names)
      if (name == options.open.dialect) return;
    throw CLI::ValidationError("no dialect '" + options.open.dialect + "'" +
                               did_you_mean(options.open.dialect, names));
  });
}

nlohmann::ordered_json refusal_json(const Refusal& refusal) {
  nlohmann::ordered_json body;
  body["class"] = refusal_class_name(refusal.cls);
  body["detail"] = refusal.detail;
  body["offset"] = refusal.offset ? nlohmann::ordered_json(*refusal.offset) : nlohmann::ordered_json(nullptr);
  body["security"] = refusal.security;
  return {{"refusal", body}};
}

std::string refusal_line(const Refusal& refusal) { return "qcts: refused: " + describe(refusal); }

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

int guarded(bool json, const std::function<int()>& body) {
  try {
    const int exit_code = body();
    std::cout.flush();
    if (!std::cout) return say("standard output: write failed", 5);
    return exit_code;
  } catch (const Refused& error) {
    return refused(error.refusal(), json);
  } catch (const IoError& error) {
    return failed(error);
  } catch (const UsageError& error) {
    return say(error.what(), 2);
  } catch (const WriteFailure& error) {
    return say(error.what(), 5);
  } catch (const Failure& error) {
    return say(error.what(), 1);
  } catch (const std::filesystem::filesystem_error& error) {
    return failed(IoError(error.path1().string(), "use", error.code().value()));
  } catch (const std::bad_alloc&) {
    return say("out of memory", 5);
  } catch (const std::invalid_argument& error) {
    return say(error.what(), 1);
  } catch (const std::exception& error) {
    return say(std::string("internal error: ") + error.what(), 5);
  }
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "qcts: note: " << printable(note) << "\n";
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

std::string grouped(uint64_t number) { return with_commas(static_cast<double>(number)); }

std::string cpu_layout(const std::string& word) {
  const std::vector<std::string> known = {"avx512", "avx2", "default"};
  for (const std::string& candidate : known)
    if (word == candidate || word == "cpu_" + candidate) return "cpu_" + candidate;
  throw UsageError("no CPU pack '" + word + "'" + did_you_mean(word, known));
}

std::string native_cpu_layout() {
  const char* asked = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string capability = asked ? asked : "";
  if (capability == "avx512" || capability == "avx2" || capability == "default") return "cpu_" + capability;
  // The conditions of aten/src/ATen/native/DispatchStub.cpp: AVX-512 VL, BW, DQ and FMA; AVX2 and FMA.
  __builtin_cpu_init();
  const bool fma = __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return "cpu_avx512";
  return fma && __builtin_cpu_supports("avx2") ? "cpu_avx2" : "cpu_default";
}

std::string undeclared_pack(const Checkpoint& checkpoint) {
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (!tensor.scheme.empty() && !tensor.layout) return tensor.name;
  return "";
}

std::string assumed_layout(const Checkpoint& checkpoint, const std::string& asked) {
  const std::string tensor = undeclared_pack(checkpoint);
  if (tensor.empty()) return "";
  if (!asked.empty()) return cpu_layout(asked);
  const std::string layout = native_cpu_layout();
  print_notes({checkpoint.path.string() + ": the file does not say which CPU packed " + tensor +
               "; assuming this machine's layout, " + layout + " (--cpu-pack avx512|avx2|default)"});
  return layout;
}

}  // namespace qcts::cli
