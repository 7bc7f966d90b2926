// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/globals.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "reference/formats/compact.h"
#include "reference/formats/io/utf8.h"
#include "reference/formats/refusal.h"

namespace qcts::pickle {
namespace {

using Names = std::span<const std::string_view>;

// The names of torch/_weights_only_unpickler.py, 2.13: _get_allowed_globals() returns 145. Beside them: the
// classes that torch.nested, torch.sparse and torch.distributed.tensor (2.0 to 2.13) add on import, empty
// bytes, and the functions of torch's C++ pickler.
constexpr std::string_view kDtypes[] = {"float32",
                                        "float64",
                                        "float16",
                                        "bfloat16",
                                        "complex32",
                                        "complex64",
                                        "complex128",
                                        "bool",
                                        "uint8",
                                        "int8",
                                        "int16",
                                        "int32",
                                        "int64",
                                        "uint16",
                                        "uint32",
                                        "uint64",
                                        "float8_e4m3fn",
                                        "float8_e4m3fnuz",
                                        "float8_e5m2",
                                        "float8_e5m2fnuz",
                                        "float8_e8m0fnu",
                                        "float4_e2m1fn_x2",
                                        "qint8",
                                        "quint8",
                                        "qint32",
                                        "quint4x2",
                                        "quint2x4",
                                        "bits8",
                                        "bits16",
                                        "bits1x8",
                                        "bits2x4",
                                        "bits4x2",
                                        "uint1",
                                        "uint2",
                                        "uint3",
                                        "uint4",
                                        "uint5",
                                        "uint6",
                                        "uint7",
                                        "int1",
                                        "int2",
                                        "int3",
                                        "int4",
                                        "int5",
                                        "int6",
                                        "int7",
                                        "per_tensor_affine",
                                        "per_channel_affine",
                                        "per_tensor_symmetric",
                                        "per_channel_symmetric",
                                        "per_channel_affine_float_qparams"};
constexpr std::string_view kTensorTypes[] = {"BFloat16Tensor", "BoolTensor",  "ByteTensor", "CharTensor",
                                             "DoubleTensor",   "FloatTensor", "HalfTensor", "IntTensor",
                                             "LongTensor",     "ShortTensor"};
constexpr std::string_view kSparseTensorTypes[] = {"BFloat16Tensor", "ByteTensor",  "CharTensor",
                                                   "DoubleTensor",   "FloatTensor", "HalfTensor",
                                                   "IntTensor",      "LongTensor",  "ShortTensor"};
constexpr std::string_view kStorageTypes[] = {
    "BFloat16Storage",      "BoolStorage",         "ByteStorage",   "CharStorage",
    "ComplexDoubleStorage", "ComplexFloatStorage", "DoubleStorage", "FloatStorage",
    "HalfStorage",          "IntStorage",          "LongStorage",   "ShortStorage"};
constexpr std::string_view kQuantizedStorageTypes[] = {"QInt32Storage", "QInt8Storage", "QUInt2x4Storage",
                                                       "QUInt4x2Storage", "QUInt8Storage"};

struct NameGroup {
  std::string_view module;
  Names names;
  Role role;
};
constexpr NameGroup kTorchGroups[] = {
    {"torch", kDtypes, Role::constant},
    {"torch", kTensorTypes, Role::tensor_type},
    {"torch.cuda", kTensorTypes, Role::tensor_type},
    {"torch.sparse", kSparseTensorTypes, Role::tensor_type},
    {"torch.cuda.sparse", kSparseTensorTypes, Role::tensor_type},
    {"torch", kStorageTypes, Role::storage_type},
    {"torch.cuda", kStorageTypes, Role::storage_type},
    {"torch", kQuantizedStorageTypes, Role::storage_type},
};

struct Single {
  std::string_view module, name;
  GlobalInfo info;
};
// Argument counts: the signatures in torch/_utils.py and torch/_tensor.py, 2.13.
constexpr Single kTorchSingles[] = {
    {"collections", "OrderedDict", {Role::ordered_dict}},
    {"collections", "Counter", {Role::counter}},
    {"torch.nn.parameter", "Parameter", {Role::parameter}},
    {"torch.serialization", "_get_layout", {Role::layout}},
    {"torch", "Size", {Role::size}},
    {"torch", "Tensor", {Role::tensor_type}},
    {"torch", "device", {Role::device}},
    {"_codecs", "encode", {Role::encode}},
    {"builtins", "bytes", {Role::bytes}},
    {"builtins", "bytearray", {Role::bytearray}},
    {"builtins", "set", {Role::set}},
    {"builtins", "complex", {Role::complex}},
    {"torch.storage", "TypedStorage", {Role::storage_type}},
    {"torch.storage", "UntypedStorage", {Role::storage_type}},
    {"torch._utils", "_rebuild_tensor", {Role::rebuild, 4, 4}},
    {"torch._utils", "_rebuild_tensor_v2", {Role::rebuild, 6, 7}},
    {"torch._utils", "_rebuild_tensor_v3", {Role::rebuild, 7, 8}},
    {"torch._utils", "_rebuild_parameter", {Role::rebuild, 3, 3}},
    {"torch._utils", "_rebuild_parameter_with_state", {Role::rebuild, 4, 4}},
    {"torch._utils", "_rebuild_qtensor", {Role::rebuild, 7, 7}},
    {"torch._utils", "_rebuild_sparse_tensor", {Role::rebuild, 2, 2}},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", {Role::rebuild, 4, 4}},
    {"torch._utils", "_rebuild_nested_tensor", {Role::rebuild, 4, 4}},
    {"torch._utils", "_rebuild_wrapper_subclass", {Role::rebuild, 8, 8}},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", {Role::rebuild, 4, 4}},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", {Role::rebuild, 4, 4}},
    {"torch._utils", "_rebuild_xla_tensor", {Role::rebuild, 4, 4}},
    {"torch._tensor", "_rebuild_from_type_v2", {Role::rebuild, 4, 4}},
    {"torch.nested._internal.nested_tensor", "NestedTensor", {Role::library_type}},
    {"torch.nested._internal.nested_tensor", "_rebuild_njt", {Role::library_type}},
    {"torch._dynamo.decorators", "_DimRange", {Role::library_type}},
    {"torch.sparse.semi_structured", "SparseSemiStructuredTensorCUTLASS", {Role::library_type}},
    {"torch.sparse.semi_structured", "SparseSemiStructuredTensorCUSPARSELT", {Role::library_type}},
};

// Classes that a DTensor's state holds, by module (torch/distributed/tensor/__init__.py, 2.13, and the
// modules of 2.0 to 2.4).
constexpr ModuleNames kDistributed[] = {
    {"torch.distributed.tensor", "DTensor"},
    {"torch.distributed.tensor._dtensor_spec", "DTensorSpec ShardOrderEntry TensorMeta"},
    {"torch.distributed.tensor.placement_types", "Partial Replicate Shard _StridedShard"},
    {"torch.distributed.device_mesh", "DeviceMesh"},
    {"torch.distributed._mesh_layout", "_FlatLayout _MeshLayout"},
    {"torch.distributed._tensor", "DTensor"},
    {"torch.distributed._tensor.api", "DTensor"},
    {"torch.distributed._tensor.device_mesh", "DeviceMesh"},
    {"torch.distributed._tensor.placement_types",
     "DTensorSpec Partial Replicate Shard TensorMeta _Partial _StridedShard"},
};

// torch/csrc/jit/serialization/pickler.cpp
constexpr ModuleNames kTags[] = {
    {"torch.jit._pickle", "build_boollist build_doublelist build_intlist build_tensorlist restore_type_tag"},
};

constexpr ModuleNames kNumpyParts[] = {
    {"numpy", "dtype ndarray"},
    {"numpy._core.multiarray", "_reconstruct"},
    {"numpy.core.multiarray", "_reconstruct"},
};

using Table = std::unordered_map<std::string, GlobalInfo, TextHash, std::equal_to<>>;

std::string key_of(std::string_view module, std::string_view name) {
  std::string key(module);
  key += ' ';
  key += name;
  return key;
}

void add_names(Table& table, std::span<const ModuleNames> modules, Role role) {
  for (const ModuleNames& group : modules) {
    for (size_t first = 0; first < group.names.size();) {
      const size_t end = std::min(group.names.find(' ', first), group.names.size());
      table.emplace(key_of(group.module, group.names.substr(first, end - first)), GlobalInfo{role});
      first = end + 1;
    }
  }
}

Table make_table() {
  Table table;
  add_names(table, torchao_classes(), Role::library_type);
  add_names(table, torchao_functions(), Role::constant);
  add_names(table, kDistributed, Role::library_type);
  add_names(table, kTags, Role::tag);
  for (const NameGroup& group : kTorchGroups) {
    for (std::string_view name : group.names)
      table.emplace(key_of(group.module, name), GlobalInfo{group.role});
  }
  for (const Single& single : kTorchSingles) table.emplace(key_of(single.module, single.name), single.info);
  return table;
}

}  // namespace

std::optional<GlobalInfo> known_global(std::string_view module, std::string_view name) {
  return known_global(key_of(module, name));
}

std::optional<GlobalInfo> known_global(std::string_view text) {
  static const Table table = make_table();
  constexpr std::string_view kPython2 = "__builtin__ ";
  const auto found = text.starts_with(kPython2) ? table.find(key_of("builtins", text.substr(kPython2.size())))
                                                : table.find(text);
  if (found == table.end()) return std::nullopt;
  return found->second;
}

bool is_numpy_part(std::string_view module, std::string_view name) {
  static const Table table = [] {
    Table parts;
    add_names(parts, kNumpyParts, Role::library_type);
    return parts;
  }();
  return table.contains(key_of(module, name));
}

std::string_view global_note(std::string_view module, std::string_view name) {
  const bool builtin = module == "builtins" || module == "__builtin__";
  if (builtin && name == "getattr")
    return "getattr is how pickle names a method or a nested class, and torch.load(weights_only=True) "
           "refuses it too";
  if (module.starts_with("numpy"))
    return "a numpy value, which torch.load(weights_only=True) refuses too: save float(x) or "
           "torch.from_numpy(x)";
  if (module.starts_with("torch.nn.modules."))
    return "a whole module was saved; state_dict() is what needs no classes";
  return "";
}

void refuse_globals(const std::vector<std::string>& names, std::string_view note, uint64_t offset) {
  Refusal refusal{RefusalClass::PickleGlobal, names.size() > 1 ? "data.pkl: globals" : "data.pkl: global",
                  offset, true};
  for (const std::string& name : names) {
    refusal.detail += (&name == &names.front() ? " " : ", ") + name;
    const size_t dot = name.rfind('.');
    const bool allowable = dot != std::string::npos && name.find_first_of(" \n'") == std::string::npos &&
                           is_utf8(name) && !is_blocked_module(std::string_view(name).substr(0, dot));
    if (allowable) refusal.allow.push_back(name);
  }
  if (refusal.allow.size() < names.size()) refusal.allow.clear();  // no option helps
  if (!note.empty()) refusal.detail.append(": ").append(note);
  throw Refused(std::move(refusal));
}

bool is_blocked_module(std::string_view module) {
  return module == "sys" || module == "os" || module == "posix" || module == "nt";
}

}  // namespace qcts::pickle
