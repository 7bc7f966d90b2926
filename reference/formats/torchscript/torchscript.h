// SPDX-License-Identifier: BSD-3-Clause
// TorchScript archives (torch 1.4 to 2.13; torch/csrc/jit/serialization/export_module.cpp and import.cpp): a
// zip like torch.save's with a program's sources beside the tensors. Read, never executed, never written.
//   data.pkl, data/N            the module: an object graph of the program's own classes, and its storages
//   constants.pkl, constants/N  a tuple of the tensors that the code calls CONSTANTS.c0, CONSTANTS.c1, ...
//   code/__torch__/... .py      sources, deflated; beside each a .debug_pkl
//   version or .data/version    the operator set that the code was written for
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/formats/io/mapped_file.h"
#include "reference/formats/pickle/pickle.h"
#include "reference/formats/torch/zip.h"

namespace qcts {

// The newest operator set of torch 2.13 (caffe2/serialize/versions.h, kMaxSupportedFileFormatVersion).
inline constexpr uint64_t kNewestOperatorSet = 10;

struct ScriptField {
  std::string name, type;  // "weight", "Tensor"
};

// The head of a class in the archive's code: what the object graph is checked against.
struct ScriptClass {
  std::string name;  // "__torch__.torch.nn.modules.linear.Linear"
  std::string base;  // "Module", "NamedTuple", "Enum", "Interface"; empty for a plain class
  std::vector<std::string> parameters, buffers, methods;
  std::vector<ScriptField> fields;  // in slot order; of an Enum none
  // Final values, and the members of an Enum: as the code spells them, with their types (empty in an Enum).
  struct Constant {
    std::string name, type, value;
  };
  std::vector<Constant> constants;
  bool has_method(std::string_view method) const;
};
using ScriptClasses = std::map<std::string, ScriptClass, std::less<>>;

struct ScriptRecord {
  std::string name;           // "code/__torch__/model.py"
  uint64_t bytes = 0;         // inflated
  uint64_t stored_bytes = 0;  // in the file
};

struct TorchScript {
  std::shared_ptr<const MappedFile> file;
  std::string prefix;
  uint64_t version = 0;               // operator set
  std::string version_record;         // "version", or ".data/version" since 6
  std::vector<ScriptRecord> records;  // all of them, in file order
  ScriptClasses classes;
  // A pickle with the storages that it names, as tensor_of() takes them. `program`: the module. `constants`:
  // the tuple; keys of its storages begin with "constants/".
  TorchZip program, constants;
  ReadBudget budget;  // after reading it; those of the two are not used
};

// Throws Refused. Classes are allowed that the code defines, custom classes of torch itself, and
// options.allow.
TorchScript read_torchscript(std::shared_ptr<const MappedFile> file, const TorchZipOptions& options = {});

// The class of an object (`__torch__` instance, enum member); null for anything else, custom classes among
// it.
const ScriptClass* script_class_of(const ScriptClasses& classes, const pickle::Ref& node);
// A C++ class that torch registered, as "__torch__.torch.classes.quantized.LinearPackedParamsBase".
bool is_custom_class(std::string_view name);
// "__torch__.model.Net" for the class of an object, whatever it is; empty for no object.
std::string script_class_name(const pickle::Ref& node);

// What restore_type_tag, build_intlist, ... wrap; the node itself otherwise.
const pickle::Ref& untagged(const pickle::Ref& node);
// A call that rebuilds a tensor.
bool is_script_tensor(const pickle::Ref& node);

}  // namespace qcts
