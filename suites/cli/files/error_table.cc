// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/error_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string sqnr_text(const ErrorSums& sums) {
  const std::optional<double> decibel = sums.sqnr_db();
  if (decibel) return std::isfinite(*decibel) ? fixed(*decibel, 2) : "-inf";
  return sums.elements == 0 ? "-" : "exact";
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string count_text(uint64_t count) { return with_commas(static_cast<double>(count)); }

// "3", or "3, 2 lost" where the original has weights that are not 0.
std::string zero_groups(const LayerError& layer) {
  if (layer.groups == 0) return "-";
  std::string text = count_text(layer.zero_groups);
  if (layer.lost_groups != 0) text += ", " + count_text(layer.lost_groups) + " lost";
  return text;
}

void print_input_scales(const std::vector<LayerError>& layers, Printout& out) {
  const auto scales = [](const LayerError& layer) { return layer.scales_input; };
  const auto count = static_cast<uint64_t>(std::ranges::count_if(layers, scales));
  if (count == 0) return;
  const std::string first = std::ranges::find_if(layers, scales)->name;
  out.text("the scale of x is part of the weight: " + first +
           (count > 1 ? " and " + count_text(count - 1) + " more" : ""));
}

Json sums_json(const ErrorSums& sums) {
  const std::optional<double> decibel = sums.sqnr_db();
  return {{"sqnr_db", decibel && std::isfinite(*decibel) ? Json(*decibel) : Json(nullptr)},
          {"max_error", sums.max_error},
          {"elements", sums.elements},
          {"non_finite", sums.non_finite}};
}

Json layer_json(const LayerError& layer) {
  Json json = {{"name", layer.name},
               {"scheme", layer.scheme.empty() ? Json(nullptr) : Json(layer.scheme)},
               {"shape", layer.shape}};
  json.update(sums_json(layer.sums));
  json["max_error_at"] = {layer.max_row, layer.max_column};
  json["scales_input"] = layer.scales_input;
  const auto counted = [](bool known, uint64_t count) { return known ? Json(count) : Json(nullptr); };
  json["codes"] = counted(layer.has_codes, layer.codes);
  json["saturated_codes"] = counted(layer.has_codes, layer.saturated);
  json["clipped_weights"] = counted(layer.has_codes, layer.clipped);
  json["groups"] = counted(layer.groups != 0, layer.groups);
  json["zero_groups"] = counted(layer.groups != 0, layer.zero_groups);
  json["lost_groups"] = counted(layer.groups != 0, layer.lost_groups);
  return json;
}

}  // namespace

Json error_json(const QuantizationErrors& errors) {
  const auto list = [](const std::vector<LayerError>& layers) {
    Json rows = Json::array();
    for (const LayerError& layer : layers) rows.push_back(layer_json(layer));
    return rows;
  };
  return {{"layers", list(errors.layers)},
          {"missing", errors.missing},
          {"not_compared", errors.not_compared},
          {"unquantized", {{"same", errors.same}, {"different", list(errors.unquantized)}}},
          {"complete", errors.is_complete()},
          {"all", sums_json(errors.all)}};
}

void print_errors(const QuantizationErrors& errors, Printout& out) {
  std::vector<TableRow> rows;
  for (const LayerError& layer : errors.layers)
    rows.push_back({layer.name, sqnr_text(layer.sums), short_number(layer.sums.max_error),
                    layer.has_codes ? count_text(layer.saturated) : "-",
                    layer.has_codes ? count_text(layer.clipped) : "-", zero_groups(layer)});
  if (rows.size() > 1)
    rows.push_back({errors.is_complete() ? "all layers" : "the layers above", sqnr_text(errors.all),
                    short_number(errors.all.max_error), "", "", ""});
  if (!rows.empty())
    out.table({{"layer"},
               {"SQNR dB", Align::right},
               {"max error", Align::right},
               {"saturated", Align::right},
               {"clipped", Align::right},
               {"zero groups", Align::right}},
              rows);
  if (errors.all.non_finite != 0)
    out.text(count_text(errors.all.non_finite) + " elements are NaN or infinite and are not counted");
  print_input_scales(errors.layers, out);
  for (const LayerError& layer : errors.unquantized)
    out.text("not quantized, but different from the original: " + layer.name + ": SQNR " +
             sqnr_text(layer.sums) + " dB, max error " + short_number(layer.sums.max_error));
  for (const std::string& name : errors.missing)
    out.text("missing: " + name + ": only the original has a tensor of this name");
  for (const std::string& why : errors.not_compared) out.text("not compared: " + why);
}

}  // namespace qcts::cli
