// SPDX-License-Identifier: BSD-3-Clause
// The device of a run: the argument of --device, and the GPU that it names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "suites/run/run.h"

namespace qcts {

// Returns the GPU of "cuda" (the first) or "cuda:1", and none for "cpu". Throws UsageError.
std::optional<int> device_from_word(const std::string& word);
std::string device_word(std::optional<int> device);

// Describes the GPU and its driver for the record. Throws RunError(nothing_proved) with the reason if there
// is no driver or no such GPU.
nlohmann::ordered_json device_json(int device);

// Returns the selection for a run of a plan on a GPU: of the kinds that are judged there, numerics and
// determinism, or latency if the plan has no other kind. Throws UsageError if others are selected.
Selection selection_for_device(Selection selection, const std::string& plan);

// Returns the libraries that have kernels for the GPU when none is named: the plug-in cuda, or cudaemu if
// the driver is the fake one. Throws RunError(nothing_proved) if this build has none.
std::vector<std::filesystem::path> plugins_for_device();

}  // namespace qcts
