// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/weight_files.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

struct NaturalWord {
  bool text = false;
  std::string letters;
  int64_t number = -1;
  auto operator<=>(const NaturalWord&) const = default;
};
std::vector<NaturalWord> natural_key(const std::string& name) {
  std::vector<NaturalWord> words;
  for (size_t first = 0; first <= name.size();) {
    const size_t end = std::min(name.find('.', first), name.size());
    const std::string word = name.substr(first, end - first);
    const size_t digits = word.find_last_not_of("0123456789") + 1;
    NaturalWord& added = words.emplace_back();
    added.text = digits > 0 || word.empty();
    added.letters = word.substr(0, digits);
    std::from_chars(word.data() + digits, word.data() + word.size(), added.number);
    first = end + 1;
  }
  return words;
}

}  // namespace

Shards cut_by_size(const std::vector<WeightItem>& items, uint64_t max_bytes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < items.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return natural_key(items[i].key); });
  Shards shards;
  std::vector<size_t> open;
  uint64_t bytes = 0;
  for (const size_t i : order) {
    if (items[i].bytes > max_bytes) {
      shards.push_back({i});
      continue;
    }
    if (bytes + items[i].bytes > max_bytes) {
      shards.push_back(std::move(open));
      open.clear();
      bytes = 0;
    }
    open.push_back(i);
    bytes += items[i].bytes;
  }
  if (!open.empty()) shards.push_back(std::move(open));
  return shards;
}

uint64_t size_of_words(const std::string& words) {
  uint64_t number = 0;
  const char* end = words.data() + words.size();
  const auto [rest, error] = std::from_chars(words.data(), end, number);
  std::string unit(rest, end);
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::toupper(c); });
  static const std::map<std::string, uint64_t> kUnits = {{"", 1},
                                                         {"B", 1},
                                                         {"KB", 1000},
                                                         {"MB", 1000000},
                                                         {"GB", 1000000000},
                                                         {"TB", 1000000000000},
                                                         {"KIB", 1 << 10},
                                                         {"MIB", 1 << 20},
                                                         {"GIB", 1ull << 30},
                                                         {"TIB", 1ull << 40}};
  const auto found = kUnits.find(unit);
  uint64_t bytes = 0;
  if (error != std::errc() || found == kUnits.end() || number == 0 ||
      __builtin_mul_overflow(number, found->second, &bytes))
    throw UsageError("--max-shard-size " + words + " is not a size such as 5GB, 500MB or 200KiB");
  return bytes;
}

std::string weight_file(size_t index, size_t count, bool safetensors) {
  const std::string stem = safetensors ? "model" : "pytorch_model",
                    ending = safetensors ? ".safetensors" : ".bin";
  if (count == 1) return stem + ending;
  const auto five = [](size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
  };
  return stem + "-" + five(index + 1) + "-of-" + five(count) + ending;
}

}  // namespace qcts::cli
