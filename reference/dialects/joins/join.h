// SPDX-License-Identifier: BSD-3-Clause
// Joins the plain tensors of a weight that another library quantized into one tensor.
// The configuration of the checkpoint names the library; each has a file here and a line in joins.inc.
// A weight that a join does not understand stays apart and is named (../foreign/foreign.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/classes/named_tensor.h"
#include "reference/dialects/dialects.h"
#include "reference/dialects/joins/named_modules.h"

namespace qcts {

// Thrown by a join for a weight that it leaves apart.
class NotJoined : public std::runtime_error {
 public:
  enum class Cause : uint8_t {
    not_read,       // a variant of the format that qcts cannot read
    contradiction,  // the parts contradict each other or the configuration
  };
  NotJoined(Cause cause, const std::string& why) : std::runtime_error(why), cause_(cause) {}
  Cause cause() const { return cause_; }

 private:
  Cause cause_;
};
[[noreturn]] void leave_apart(const std::string& why);       // not_read
[[noreturn]] void contradict_layer(const std::string& why);  // contradiction

// The parts of one weight, whose names begin with the same stem: "model.fc" for "model.fc.weight_packed".
class LayerParts {
 public:
  LayerParts(std::string stem, std::string_view codes, const PlainPlaces& places,
             const std::vector<NamedTensor>& tensors, const NamedModules& named, bool is_whole)
      : stem_(std::move(stem)),
        codes_(codes),
        places_(places),
        tensors_(tensors),
        named_(named),
        is_whole_(is_whole) {}

  const std::string& stem() const { return stem_; }
  // The ending of Join::codes that led to this weight.
  std::string_view codes() const { return codes_; }
  // The module's name in a configuration, and the words there that are about it (NamedModules::words_of).
  std::string module() const { return unwrapped_name(stem_); }
  const std::vector<std::string>& words() const { return named_.words_of(module()); }
  // Returns the part with this ending, which then belongs to the weight. Returns nullptr if there is none.
  const Tensor* find(std::string_view ending);
  // Throws NotJoined if the part is missing, or if it has another dtype than these.
  const Tensor& need(std::string_view ending, std::initializer_list<DType> dtypes);
  // Throws NotJoined for a part that the configuration requires: a contradiction, unless another shard may
  // hold the part.
  [[noreturn]] void lack(const std::string& why) const;
  // Throws NotJoined if the module, or what is named `below` it, holds tensors that are neither parts of the
  // weight nor these.
  void require_no_others(std::initializer_list<std::string_view> words, std::string_view below = "") const;
  // The places of the parts, in file order, with their endings.
  const std::map<size_t, std::string>& used() const { return used_; }

 private:
  std::string stem_;
  std::string_view codes_;
  const PlainPlaces& places_;
  const std::vector<NamedTensor>& tensors_;
  const NamedModules& named_;
  const bool is_whole_;
  std::map<size_t, std::string> used_;
};

struct Join {
  std::string_view format;                  // ForeignFormat::name, which becomes the dialect
  std::span<const std::string_view> codes;  // endings of the tensors that hold codes
  std::string_view weight;                  // ending of the joined weight's name, unless keeps_name
  // Returns why no weight of such a configuration is read, or an empty string.
  std::string (*refuse)(const nlohmann::ordered_json& config);
  // Describes the weight. Returns nullopt if the tensor with the codes is not a quantized weight.
  // Throws NotJoined.
  std::optional<CodedWeight> (*read)(LayerParts& parts, const QuantConfig& config);
  // The words of the configuration that are about single modules; nullptr if the format has none.
  std::vector<ModuleWord> (*module_words)(const nlohmann::ordered_json& config) = nullptr;
  bool keeps_name = false;     // the joined weight has the name of its codes
  std::string_view sign = {};  // a name with this text belongs to the format, whatever config.json says
};

// Helpers for read(): values of a JSON object, which may lack the key or hold something else there.
// Integers beyond 2^31 count as absent.
std::string json_text(const nlohmann::ordered_json& object, std::string_view key);
std::optional<int64_t> json_integer(const nlohmann::ordered_json& object, std::string_view key);
// Returns "config.json has no bits", or that the value is not an integer.
std::string lacks_integer(const nlohmann::ordered_json& object, std::string_view key);
std::optional<bool> json_flag(const nlohmann::ordered_json& object, std::string_view key);
// Returns two positive integers, such as a block; nullopt for anything else.
std::optional<std::pair<int64_t, int64_t>> json_pair(const nlohmann::ordered_json& object,
                                                     std::string_view key);
// Returns true if the value is absent, null or an empty object or list.
bool json_lacks(const nlohmann::ordered_json& object, std::string_view key);

// Returns the matrix of a row-major tensor of words [lines, words] whose lines are rows of the weight.
CodeMatrix rows_of_codes(const Tensor& words, int bits, CodeKind kind, int64_t rows, int64_t columns);
// Sets the dense size of the parts and adds the bytes of `others`, which hold no codes or scales.
// Throws NotJoined if the parts contradict the weight's sizes.
void finish_coded(CodedWeight& weight, std::initializer_list<const Tensor*> others);

}  // namespace qcts
