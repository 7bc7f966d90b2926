// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/device_choice.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "kernels/fakecuda/fake_driver.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/paths.h"
#include "suites/cases/named.h"
#include "suites/host/device/device.h"
#include "suites/record/run_record.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCuda = "cuda";
constexpr Kind kKinds[] = {Kind::numerics, Kind::determinism, Kind::latency};

// A copy of the fake driver has its own function under any name.
bool is_fake(const CudaDriver& driver) {
  void* const library = ::dlopen(driver.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const bool has_own = ::dlsym(library, kFakeEnqueue) != nullptr;
  ::dlclose(library);
  return has_own;
}

bool is_driver_named() {
  const char* named = std::getenv("QCTS_CUDA_DRIVER");
  return named != nullptr && named[0] != '\0';
}

}  // namespace

std::optional<int> device_from_word(const std::string& word) {
  if (word == "cpu") return std::nullopt;
  if (word == kCuda) return 0;
  const std::string prefix = std::string(kCuda) + ":";
  int device = 0;
  const char* const end = word.data() + word.size();
  if (word.starts_with(prefix))
    if (const auto read = std::from_chars(word.data() + prefix.size(), end, device);
        read.ec == std::errc() && read.ptr == end && device >= 0)
      return device;
  throw UsageError("no device '" + word + "'" + did_you_mean(word, {"cpu", "cuda", "cuda:0"}));
}

std::string device_word(std::optional<int> device) {
  return device ? std::string(kCuda) + ":" + std::to_string(*device) : "cpu";
}

nlohmann::ordered_json device_json(int device) {
  try {
    const std::shared_ptr<const CudaDriver> driver = open_cuda_driver();
    const DeviceProperties is = device_properties(*driver, device);
    return {{"ordinal", device},
            {"name", is.name},
            {"uuid", is.uuid},
            {"capability", is.capability},
            {"multiprocessors", is.multiprocessors},
            {"l2_bytes", is.l2_bytes},
            {"memory_bytes", is.memory_bytes},
            {"ecc", is.has_ecc},
            {"mig", is.is_mig},
            {"driver_version", is.driver_version},
            {"driver", driver->path.string()},
            {"driver_sha256", file_sha256(driver->path)},
            {"driver_named", is_driver_named()},
            {"fake", is_fake(*driver)}};
  } catch (const CudaError& error) {
    throw RunError(Outcome::nothing_proved, "no device " + device_word(device) + ": " + error.what());
  }
}

Selection selection_for_device(Selection selection, const std::string& plan) {
  for (const std::string& kind : selection.kinds)
    if (std::ranges::none_of(kKinds, [&](Kind each) { return kind_name(each) == kind; }))
      throw UsageError("--kind " + kind +
                       " cannot be judged on a device: only numerics, determinism and latency can");
  if (!selection.kinds.empty()) return selection;
  const bool times_alone = named_plan(plan).kinds == std::vector<Kind>{Kind::latency};
  for (const Kind kind : kKinds)
    if ((kind == Kind::latency) == times_alone) selection.kinds.emplace_back(kind_name(kind));
  return selection;
}

std::vector<fs::path> plugins_for_device() {
  const bool fake = is_fake(*open_cuda_driver());
  std::vector<fs::path> plugins = discovered_plugins();
  std::erase_if(plugins, [](const fs::path& plugin) { return plugin.filename() != "libqcts_cudaemu.so"; });
  if (!fake) {
    plugins.clear();
    if (const std::optional<fs::path> plugin = cuda_plugin()) plugins.push_back(*plugin);
  }
  if (plugins.empty())
    throw RunError(
        Outcome::nothing_proved,
        "no provider for a device: this build has none (QCTS_CUDA=ON needs nvcc); give one with --provider");
  return plugins;
}

}  // namespace qcts
