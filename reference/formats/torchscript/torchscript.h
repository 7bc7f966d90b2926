// SPDX-License-Identifier: BSD-3-Clause
// Reads TorchScript archives (torch 1.4 to 2.13), and never writes one.
// Such an archive is a zip like torch.save's. It also holds a program's sources, which are never executed.
// torch/csrc/jit/serialization/export_module.cpp and import.cpp define the format:
//    data.pkl, data/N            the module: an object graph of the program's own classes, and its storages
//    constants.pkl, constants/N  a tuple of the tensors that the code calls CONSTANTS.c0, CONSTANTS.c1, ...
//    code/__torch__/... .py      the sources, deflated, each with a .debug_pkl
//    version or .data/version    the operator set that the code was written for
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

// The head of a class in the archive's code. The object graph is checked against it.
struct ScriptClass {
  std::string name;  // "__torch__.torch.nn.modules.linear.Linear"
  std::string base;  // "Module", "NamedTuple", "Enum", "Interface"; empty for a plain class
  std::vector<std::string> parameters, buffers, methods;
  std::vector<ScriptField> fields;  // in slot order; empty for an Enum
  // A final value or an Enum member: its name, its type (empty in an Enum) and the text of its value.
  struct Constant {
    std::string name, type, value;
  };
  std::vector<Constant> constants;
  bool has_method(std::string_view method) const;
};
using ScriptClasses = std::map<std::string, ScriptClass, std::less<>>;

struct ScriptRecord {
  std::string name;           // "code/__torch__/model.py"
  uint64_t bytes = 0;         // inflated size
  uint64_t stored_bytes = 0;  // size in the file
};

struct TorchScript {
  std::shared_ptr<const MappedFile> file;
  std::string prefix;
  uint64_t version = 0;               // operator set
  std::string version_record;         // "version", or ".data/version" since operator set 6
  std::vector<ScriptRecord> records;  // all records, in file order
  ScriptClasses classes;
  // The two pickles with their storages, ready for tensor_of(). `program` is the module.
  // `constants` is the tuple, whose storage keys begin with "constants/".
  TorchZip program, constants;
  ReadBudget budget;  // the budget that remains after reading; those in `program` and `constants` are unused
};

// Reads an archive. Throws Refused.
// Allows the classes that the archive's code defines, torch's custom classes, and options.allow.
TorchScript read_torchscript(std::shared_ptr<const MappedFile> file, const TorchZipOptions& options = {});

// Returns the class of an object (a `__torch__` instance or enum member).
// Returns null for anything else, custom classes included.
const ScriptClass* script_class_of(const ScriptClasses& classes, const pickle::Ref& node);
// Returns true for the name of a C++ class that torch registered.
// An example is "__torch__.torch.classes.quantized.LinearPackedParamsBase".
bool is_custom_class(std::string_view name);
// Returns the class name of any object, as "__torch__.model.Net", or an empty string for other nodes.
std::string script_class_name(const pickle::Ref& node);

// Returns the value inside restore_type_tag, build_intlist and the like, or any other node unchanged.
const pickle::Ref& untagged(const pickle::Ref& node);
// Returns true for a call that rebuilds a tensor.
bool is_script_tensor(const pickle::Ref& node);

}  // namespace qcts
