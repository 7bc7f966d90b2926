// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/check/check_program.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "reference/formats/io/sha256.h"
#include "suites/base/paths.h"
#include "suites/cases/case_key.h"
#include "suites/run/workers/provider_worker.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFile = "program.pt";
constexpr double kTimeoutS = 120;

// Makes a folder of fixtures out of the file, which is how a worker gets to know it.
void write_fixtures(const Checkpoint& checkpoint, const fs::path& folder) {
  const auto bytes = checkpoint.script->file->bytes();
  std::ofstream copy(folder / kFile, std::ios::binary);
  copy.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  Json golden = {{"id", "file"},
                 {"file", kFile},
                 {"sha256", sha256_hex(bytes)},
                 {"producer", "unknown"},
                 {"versions", Json::object()},
                 {"config", Json::object()},
                 {"generator", "qcts check"},
                 {"seed", 0},
                 {"cpu_capability", "default"},
                 {"threads", 1},
                 {"emulated", Json::array()},
                 {"flags", Json::array({"torchscript"})},
                 {"choices", Json::array()},
                 {"tensors", Json::array()}};
  for (const NamedTensor& tensor : checkpoint.tensors)
    golden["tensors"].push_back({{"name", tensor.name},
                                 {"scheme", nullptr},
                                 {"layout", ""},
                                 {"expected", Json::array()},
                                 {"emulated", Json::array()}});
  const Json manifest = {{"schema", 1},
                         {"notes", {{"torchscript", {{"description", "a program"}}}}},
                         {"goldens", Json::array({std::move(golden)})},
                         {"malformed", Json::array()}};
  std::ofstream text(folder / "manifest.json");
  text << manifest.dump(1, ' ', false, Json::error_handler_t::replace);
  if (!copy.flush() || !text.flush()) throw std::runtime_error(folder.string() + " cannot be written");
}

Task task_of(const Offer& offer) {
  Golden golden;
  golden.id = "file";
  Case c;
  c.question = FileQuestion{&golden};
  c.id = {Kind::round_trip, Op::file, "any", "file"};
  return {0, {c.id, full_id(c, offer), offer.variant}, case_key(c, offer.variant).dump(), kTimeoutS};
}

// nullopt: the plug-in does not load here, or has nothing to do with programs.
std::optional<Verdict> judge_with(const fs::path& plugin, const fs::path& fixtures,
                                  const JudgeSettings& settings) {
  std::optional<ProviderWorker> worker;
  try {
    worker.emplace(plugin.string(), settings, std::vector<fs::path>{fixtures});
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  const auto offer = std::ranges::find_if(worker->offers(), &Offer::runs_programs);
  if (offer == worker->offers().end()) return std::nullopt;
  Verdict verdict;
  worker->ask({task_of(*offer)}, [&](Verdict found) { verdict = std::move(found); });
  return verdict;
}

}  // namespace

std::optional<Verdict> judge_program_file(const Checkpoint& checkpoint, const JudgeSettings& settings) {
  const std::vector<fs::path> plugins = discovered_plugins();
  if (plugins.empty()) return std::nullopt;
  const ScratchFolder fixtures;
  write_fixtures(checkpoint, fixtures.path());
  for (const fs::path& plugin : plugins)
    if (std::optional<Verdict> verdict = judge_with(plugin, fixtures.path(), settings)) return verdict;
  return std::nullopt;
}

}  // namespace qcts::cli
