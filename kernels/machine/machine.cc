// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/machine/machine.h"

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace qcts {
namespace {

// Bits of CPUID leaves 1 and 7 (Intel SDM volume 2A, table 3-8), and the saved state that each feature needs
// from the operating system.
enum class Register : uint8_t { leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax };
enum State : uint8_t { kNone, kYmm, kZmm, kTile };
struct FeatureBit {
  const char* name;
  Register where;
  uint8_t bit;
  State state;
};
constexpr FeatureBit kBits[] = {
    {"sse4_2", Register::leaf1_ecx, 20, kNone},     {"fma", Register::leaf1_ecx, 12, kYmm},
    {"f16c", Register::leaf1_ecx, 29, kYmm},        {"avx2", Register::leaf7_ebx, 5, kYmm},
    {"avxvnni", Register::leaf7_1_eax, 4, kYmm},    {"avx512f", Register::leaf7_ebx, 16, kZmm},
    {"avx512bw", Register::leaf7_ebx, 30, kZmm},    {"avx512dq", Register::leaf7_ebx, 17, kZmm},
    {"avx512vl", Register::leaf7_ebx, 31, kZmm},    {"avx512vnni", Register::leaf7_ecx, 11, kZmm},
    {"avx512bf16", Register::leaf7_1_eax, 5, kZmm}, {"avx512fp16", Register::leaf7_edx, 23, kZmm},
    {"avx512vbmi", Register::leaf7_ecx, 1, kZmm},   {"amx_tile", Register::leaf7_edx, 24, kTile},
    {"amx_int8", Register::leaf7_edx, 25, kTile},   {"amx_bf16", Register::leaf7_edx, 22, kTile},
};

// Features that QCTS_CPU_MASK keeps when it names another one.
constexpr std::pair<const char*, const char*> kImplies[] = {
    {"avx2", "sse4_2"},         {"fma", "avx2"},
    {"f16c", "avx2"},           {"avxvnni", "avx2"},
    {"avx512f", "fma"},         {"avx512f", "f16c"},
    {"avx512bw", "avx512f"},    {"avx512dq", "avx512f"},
    {"avx512vl", "avx512f"},    {"avx512vnni", "avx512vl"},
    {"avx512bf16", "avx512bw"}, {"avx512fp16", "avx512bw"},
    {"avx512vbmi", "avx512bw"}, {"amx_tile", "avx512bw"},
    {"amx_int8", "amx_tile"},   {"amx_bf16", "amx_tile"},
};

struct VariantNeeds {
  const char* variant;
  std::vector<const char*> features;
};
const std::vector<VariantNeeds>& variant_needs() {
  static const std::vector<VariantNeeds> needs = {
      {"scalar", {}},
      {"avx2", {"avx2", "fma", "f16c"}},
      {"avxvnni", {"avx2", "fma", "f16c", "avxvnni"}},
      {"avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c"}},
      {"avx512vnni", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "avx512vnni"}},
      {"avx512bf16", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "avx512bf16"}},
      {"avx512vbmi",
       {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "avx512bf16", "avx512vbmi"}},
      {"avx512fp16", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "avx512fp16"}},
      {"amx",
       {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "avx512vnni", "amx_tile", "amx_int8",
        "amx_bf16"}},
  };
  return needs;
}

// In the order of the enumeration.
constexpr const char* kWeightReadings[] = {"prefetched", "followed", "side_by_side"};

uint64_t read_xcr0() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Bits of XCR0: SSE and AVX state are 1 and 2, opmask and ZMM 5 to 7, tiles 17 and 18 (SDM volume 1, section
// 13.3).
bool state_enabled(State state, uint64_t xcr0) {
  const uint64_t needed[] = {0, 0x6, 0xE6, 0x60006};
  return (xcr0 & needed[state]) == needed[state];
}

// Linux grants a process the tile registers on request (arch_prctl ARCH_REQ_XCOMP_PERM, state 18), for all
// its threads; asking again costs nothing. It refuses if the stack of a signal handler is too small for them,
// so a program that installs one must call machine() first.
bool tiles_are_lent() {
#if defined(__linux__)
  return ::syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}

std::vector<std::string> detect_features() {
  uint32_t leaf1[4] = {}, leaf7[4] = {}, leaf7_1[4] = {};
  __get_cpuid(1, &leaf1[0], &leaf1[1], &leaf1[2], &leaf1[3]);
  if (__get_cpuid_count(7, 0, &leaf7[0], &leaf7[1], &leaf7[2], &leaf7[3]) != 0 && leaf7[0] >= 1)
    __get_cpuid_count(7, 1, &leaf7_1[0], &leaf7_1[1], &leaf7_1[2], &leaf7_1[3]);
  const bool has_xgetbv = (leaf1[2] >> 27 & 1) != 0;
  const uint64_t xcr0 = has_xgetbv ? read_xcr0() : 0;
  std::vector<std::string> features;
  for (const FeatureBit& feature : kBits) {
    uint32_t word = 0;
    switch (feature.where) {
      case Register::leaf1_ecx:
        word = leaf1[2];
        break;
      case Register::leaf7_ebx:
        word = leaf7[1];
        break;
      case Register::leaf7_ecx:
        word = leaf7[2];
        break;
      case Register::leaf7_edx:
        word = leaf7[3];
        break;
      case Register::leaf7_1_eax:
        word = leaf7_1[0];
        break;
    }
    if ((word >> feature.bit & 1) != 0 && state_enabled(feature.state, xcr0) &&
        (feature.state != kTile || tiles_are_lent()))
      features.emplace_back(feature.name);
  }
  return features;
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Base plus extended family; the extended one counts only if the base is 15 (AMD 24594, CPUID
// Fn0000_0001_EAX).
uint32_t cpu_family() {
  uint32_t leaf1[4] = {};
  __get_cpuid(1, &leaf1[0], &leaf1[1], &leaf1[2], &leaf1[3]);
  const uint32_t base = leaf1[0] >> 8 & 0xF;
  return base == 15 ? base + (leaf1[0] >> 20 & 0xFF) : base;
}

std::string cpu_model() {
  uint32_t words[12] = {};
  uint32_t highest = __get_cpuid_max(0x80000000, nullptr);
  if (highest < 0x80000004) return "unknown";
  for (uint32_t i = 0; i < 3; ++i)
    __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string model(text);
  const size_t first = model.find_first_not_of(' '), last = model.find_last_not_of(' ');
  return first == std::string::npos ? "unknown" : model.substr(first, last - first + 1);
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Sizes are "512K" or "32M" in sysfs.
uint64_t parse_size(const std::string& text) {
  char* end = nullptr;
  uint64_t size = std::strtoull(text.c_str(), &end, 10);
  if (*end == 'K') size <<= 10;
  if (*end == 'M') size <<= 20;
  return size;
}

uint64_t cache_bytes(const char* level) {
  for (int index = 0; index < 8; ++index) {
    const std::filesystem::path cache = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    if (first_line(cache / "level") == level && first_line(cache / "type") != "Instruction")
      return parse_size(first_line(cache / "size"));
  }
  return 0;
}

// Ignores the mask: it does not change a processor's prefetchers.
WeightReading detect_weight_reading() {
  const char* given = std::getenv("QCTS_WEIGHT_READING");
  if (given != nullptr && *given != '\0') return weight_reading_named(given);
  uint32_t highest = 0, vendor[3] = {}, leaf7[4] = {};
  __get_cpuid(0, &highest, &vendor[0], &vendor[2], &vendor[1]);
  __get_cpuid_count(7, 0, &leaf7[0], &leaf7[1], &leaf7[2], &leaf7[3]);
  const bool has_avx512f = (leaf7[1] >> 16 & 1) != 0;
  return weight_reading_of({reinterpret_cast<const char*>(vendor), sizeof vendor}, cpu_family(), has_avx512f);
}

Machine detect() {
  Machine found;
  found.cpu_model = cpu_model();
  found.cpu_family = cpu_family();
  found.features = detect_features();
  if (const char* mask = std::getenv("QCTS_CPU_MASK")) found.features = masked_features(found.features, mask);
  found.logical_cpus = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  found.l2_bytes = cache_bytes("2");
  found.l3_bytes = cache_bytes("3");
  found.weight_reading = detect_weight_reading();
  return found;
}

struct Refusal {
  const char* variant;
  std::string text;  // empty if it can run
};
std::vector<Refusal> variant_refusals() {
  std::vector<Refusal> refusals;
  for (const VariantNeeds& needs : variant_needs()) {
    std::string text;
    for (const char* feature : needs.features)
      if (!machine().has(feature)) text += (text.empty() ? "needs " : ", ") + std::string(feature);
    refusals.push_back({needs.variant, text});
  }
  return refusals;
}

}  // namespace

std::vector<std::string> masked_features(const std::vector<std::string>& features, std::string_view mask) {
  std::vector<std::string> kept;
  while (!mask.empty()) {
    const size_t comma = std::min(mask.find(','), mask.size());
    if (comma > 0) kept.emplace_back(mask.substr(0, comma));
    mask.remove_prefix(std::min(comma + 1, mask.size()));
  }
  for (size_t i = 0; i < kept.size(); ++i)
    for (const auto& [name, implied] : kImplies)
      if (kept[i] == name && !contains(kept, implied)) kept.emplace_back(implied);
  std::vector<std::string> result;
  for (const std::string& feature : features)
    if (contains(kept, feature)) result.push_back(feature);
  return result;
}

bool Machine::has(const char* feature) const { return contains(features, feature); }

const Machine& machine() {
  static const Machine found = detect();
  return found;
}

const char* missing_feature(const char* variant) {
  if (std::strncmp(variant, "aten", 4) == 0) return nullptr;
  static const std::vector<Refusal> refusals = variant_refusals();
  for (const Refusal& refusal : refusals)
    if (std::strcmp(refusal.variant, variant) == 0)
      return refusal.text.empty() ? nullptr : refusal.text.c_str();
  return "no such variant";
}

const char* misplaced(const char*, const qcts_problem& problem) {
  return problem.device == 0 ? nullptr : "runs on the host only";
}

WeightReading weight_reading_of(std::string_view vendor, uint32_t cpu_family, bool has_avx512f) {
  constexpr uint32_t kZen5 = 26;
  if (vendor != "AuthenticAMD" || cpu_family >= kZen5) return WeightReading::prefetched;
  return has_avx512f ? WeightReading::followed : WeightReading::side_by_side;
}

const char* name_of(WeightReading reading) { return kWeightReadings[static_cast<size_t>(reading)]; }

WeightReading weight_reading_named(std::string_view name) {
  std::string known;
  for (size_t i = 0; i < std::size(kWeightReadings); ++i) {
    if (name == kWeightReadings[i]) return static_cast<WeightReading>(i);
    known += (known.empty() ? "" : ", ") + std::string(kWeightReadings[i]);
  }
  throw std::runtime_error("QCTS_WEIGHT_READING=" + std::string(name) + " is unknown; known are " + known);
}

WeightReading weight_reading() { return machine().weight_reading; }

std::string variant_refusal(const char* variant) {
  const char* missing = missing_feature(variant);
  return missing == nullptr ? "" : missing;
}

}  // namespace qcts
