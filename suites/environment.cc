#include "suites/environment.h"

#include <ctime>

#include <sys/utsname.h>

#include "kernels/abi/qcts_kernel.h"
#include "kernels/machine.h"
#include "reference/schemes/scheme.h"

namespace qcts {

using Json = nlohmann::ordered_json;

std::string suite_version() { return QCTS_VERSION; }

Json environment_json() {
  const Machine& here = machine();
  utsname os{};
  ::uname(&os);
#ifdef NDEBUG
  const bool assertions = false;
#else
  const bool assertions = true;
#endif
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return {{"cpu_model", here.cpu_model},
          {"features", here.features},
          {"logical_cpus", here.logical_cpus},
          {"l2_bytes", here.l2_bytes},
          {"l3_bytes", here.l3_bytes},
          {"os", std::string(os.sysname) + " " + os.release + " " + os.machine},
          {"compiler", compiler},
          {"build", assertions ? "with assertions" : "release"},
          {"abi_version", QCTS_ABI_VERSION}};
}

Json schemes_json() {
  Json all = Json::array();
  for (const Scheme* scheme : schemes()) {
    Json layouts = Json::array();
    for (const LayoutInfo& layout : scheme->layouts())
      layouts.push_back({{"name", layout.name}, {"source", layout.source}, {"confirmed", layout.confirmed}});
    Json activations = Json::array();
    for (const ActivationInfo& policy : scheme->activations())
      activations.push_back({{"name", policy.name}, {"source", policy.source}});
    all.push_back({{"name", scheme->name()},
                   {"family", scheme->family()},
                   {"summary", scheme->summary()},
                   {"source", scheme->source()},
                   {"group", scheme->group()},
                   {"meaning", scheme->meaning()},
                   {"activations", activations},
                   {"layouts", layouts}});
  }
  return all;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace qcts
