// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "reference/formats/torch/object.h"
#include "reference/formats/torch/storage.h"

namespace qcts {
namespace {

// Is `tag` the device's name, alone or with an index: "cuda", "cuda:1"?
bool names_device(std::string_view tag, std::string_view device) {
  if (!tag.starts_with(device)) return false;
  const std::string_view rest = tag.substr(device.size());
  return rest.empty() || (rest.front() == ':' && all_digits(rest.substr(1)));
}

struct Package {
  int priority;
  std::string_view device;
  bool indexed;  // also takes "device:3"
};
// From torch/serialization.py, 2.13. Priorities from 100 on: names of torch 1.8 to 2.0 (ipu, xla) and of
// renamed privateuse1 backends.
constexpr std::array<Package, 13> kPackages = {{
    {10, "cpu", false},
    {20, "cuda", true},
    {21, "mps", true},
    {22, "meta", false},
    {23, "privateuseone", true},
    {24, "hpu", true},
    {25, "xpu", true},
    {26, "mtia", true},
    {100, "xla", true},
    {101, "ipu", true},
    {102, "npu", true},
    {103, "maia", true},
    {104, "privateuse1", true},
}};

}  // namespace

std::optional<std::string> device_of_location(std::string_view tag, const std::vector<std::string>& allow) {
  static_assert(std::ranges::is_sorted(kPackages, {}, &Package::priority));
  for (const Package& package : kPackages) {
    if (package.indexed ? names_device(tag, package.device) : tag == package.device)
      return std::string(package.device);
  }
  for (const std::string& device : allow)
    if (names_device(tag, device)) return device;
  return std::nullopt;
}

}  // namespace qcts
