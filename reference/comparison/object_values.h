// SPDX-License-Identifier: BSD-3-Clause
// Lists everything that an object graph holds besides the elements, dtypes and shapes of its tensors. A
// file of named tensors cannot store these values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct ObjectValue {
  enum class Part : uint8_t {
    value,      // a number, a text, an object that --allow keeps, an empty container
    attribute,  // of a tensor or of a state dict: "_metadata"
    property    // a type, key, flag or identity: `field` names it
  };
  Part part = Part::value;
  std::string path;   // "optimizer.param_groups[0].lr"; empty: the root
  std::string field;  // empty for values and attributes
  std::string text;   // "3", "\"adam\"", "Linear(...)", "Parameter"
  std::string plain;  // for some properties: the text that a file of named tensors has there, "Tensor"
};

// Visits the values in file order. A shared container is listed once, and afterwards as the property
// "identity". Throws Refused (LimitExceeded) if the paths are far longer than those of any real file, because
// a long key is part of every path below it.
void for_each_object_value(const pickle::Ref& root, const std::function<void(const ObjectValue&)>& visit);

// Visits the values of all pickles of the checkpoint.
void for_each_object_value(const Checkpoint& checkpoint,
                           const std::function<void(const ObjectValue&)>& visit);

}  // namespace qcts
