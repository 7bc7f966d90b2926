// SPDX-License-Identifier: BSD-3-Clause
// The Python module qcts._native: checkpoints, their tensors and schemes, as the program reads them.
// Data reach Python as bytes with a dtype's name and a shape, because NumPy has no bfloat16 and no float8;
// suites/python/qcts turns them into arrays.
#include <cstring>
#include <map>
#include <memory>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "reference/dialects/checkpoint.h"
#include "reference/dialects/dense.h"
#include "reference/formats/refusal.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>, nb::c_contig>;
// Row-major elements, the dtype's name, and the shape.
using Elements = std::tuple<Bytes, std::string, std::vector<int64_t>>;

Bytes bytes_of_owner(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  auto* const kept = new std::shared_ptr<const void>(std::move(owner));
  const nb::capsule capsule(
      kept, [](void* held) noexcept { delete static_cast<std::shared_ptr<const void>*>(held); });
  return Bytes(bytes.data(), {bytes.size()}, capsule);
}

// A contiguous tensor is not copied: the array keeps the mapped file.
Elements elements_of(const qcts::Tensor& tensor) {
  const std::string dtype(qcts::dtype_name(tensor.dtype));
  auto scratch = std::make_shared<std::vector<std::byte>>();
  const std::span<const std::byte> bytes = qcts::row_major_view(tensor, *scratch);
  if (bytes.data() == scratch->data()) return {bytes_of_owner(bytes, scratch), dtype, tensor.shape};
  return {bytes_of_owner(bytes, tensor.storage), dtype, tensor.shape};
}

// A tensor of a checkpoint, which lives as long as one of its tensors does.
struct HeldTensor {
  std::shared_ptr<const qcts::Checkpoint> checkpoint;
  const qcts::NamedTensor* tensor;
};

Elements dequantize(const HeldTensor& held, const std::string& layout) {
  std::optional<qcts::Tensor> dense;
  {
    const nb::gil_scoped_release released;
    dense = qcts::dense_of(*held.tensor, layout);
  }
  if (!dense) throw nb::value_error((held.tensor->name + ": " + qcts::why_not_dense(*held.tensor)).c_str());
  return elements_of(*dense);
}

struct HeldCheckpoint {
  std::shared_ptr<const qcts::Checkpoint> checkpoint;
  std::map<std::string_view, const qcts::NamedTensor*> by_name;

  explicit HeldCheckpoint(std::shared_ptr<const qcts::Checkpoint> opened) : checkpoint(std::move(opened)) {
    for (const qcts::NamedTensor& tensor : checkpoint->tensors) by_name.emplace(tensor.name, &tensor);
  }
  HeldTensor at(const std::string& name) const {
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw nb::key_error(name.c_str());
    return {checkpoint, found->second};
  }
};

HeldCheckpoint open(const std::string& path, bool lenient, const std::string& dialect,
                    const std::vector<std::string>& allow) {
  qcts::OpenOptions options;
  options.lenient = lenient;
  options.dialect = dialect;
  options.allow = allow;
  const nb::gil_scoped_release released;
  return HeldCheckpoint(std::make_shared<const qcts::Checkpoint>(qcts::open_checkpoint(path, options)));
}

const qcts::Scheme& scheme_named(const std::string& name) {
  const qcts::Scheme* scheme = qcts::find_scheme(name);
  if (scheme == nullptr) throw nb::value_error(("no scheme '" + name + "'").c_str());
  return *scheme;
}

std::vector<std::pair<std::string, Elements>> quantize(Bytes elements, const std::string& dtype, int64_t n,
                                                       int64_t k, const std::string& scheme) {
  const std::optional<qcts::DType> type = qcts::dtype_from_name(dtype);
  if (!type || elements.size() != static_cast<size_t>(n) * static_cast<size_t>(k) * qcts::dtype_bytes(*type))
    throw nb::value_error("the elements do not fit the dtype and shape");
  qcts::Matrix weight{*type, n, k, {}};
  std::vector<std::byte> copy(elements.size());
  std::memcpy(copy.data(), elements.data(), elements.size());
  weight.bytes = copy;
  std::vector<std::pair<std::string, Elements>> planes;
  for (qcts::Plane& plane : scheme_named(scheme).quantize(weight)) {
    auto owner = std::make_shared<std::vector<std::byte>>(std::move(plane.bytes));
    planes.emplace_back(
        std::string(plane.name),
        Elements{bytes_of_owner(*owner, owner), std::string(qcts::dtype_name(plane.dtype)), plane.shape});
  }
  return planes;
}

// The classes of Python's errors, which the package defines.
nb::object error_class(const char* name) { return nb::module_::import_("qcts._errors").attr(name); }

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const qcts::Refused& refused) {
    const qcts::Refusal& why = refused.refusal();
    const nb::object raised =
        error_class("Refused")(std::string(qcts::refusal_class_name(why.cls)), why.detail,
                               why.offset ? nb::cast(*why.offset) : nb::none(), why.security, why.allow);
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
  } catch (const qcts::IoError& failed) {
    const nb::object raised = error_class("Unreadable")(failed.error_number(), std::string(failed.what()));
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
  }
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Checkpoints as qcts reads them. Use the package qcts.";
  nb::register_exception_translator(translate);

  nb::class_<HeldTensor>(m, "Tensor")
      .def_prop_ro("name", [](const HeldTensor& held) { return held.tensor->name; })
      .def_prop_ro("type", [](const HeldTensor& held) { return held.tensor->type; })
      .def_prop_ro("scheme", [](const HeldTensor& held) { return held.tensor->scheme; })
      .def_prop_ro("foreign", [](const HeldTensor& held) { return std::string(held.tensor->foreign); })
      .def_prop_ro("layout", [](const HeldTensor& held) { return qcts::layout_name(held.tensor->layout); })
      .def_prop_ro("shape", [](const HeldTensor& held) { return held.tensor->shape; })
      .def_prop_ro("dtype",
                   [](const HeldTensor& held) { return std::string(qcts::dtype_name(held.tensor->dtype)); })
      .def_prop_ro(
          "parts",
          [](const HeldTensor& held) {
            std::vector<std::pair<std::string, Elements>> parts;
            for (const qcts::InnerTensor& inner : held.tensor->payload)
              parts.emplace_back(inner.name, elements_of(inner.tensor));
            return parts;
          },
          nb::rv_policy::move)  // each array keeps its own memory
      .def("dequantize", dequantize, "layout"_a = "");

  nb::class_<HeldCheckpoint>(m, "Checkpoint")
      .def_prop_ro(
          "format",
          [](const HeldCheckpoint& held) { return std::string(qcts::format_name(held.checkpoint->format)); })
      .def_prop_ro("dialect", [](const HeldCheckpoint& held) { return held.checkpoint->dialect; })
      .def_prop_ro("file_bytes", [](const HeldCheckpoint& held) { return held.checkpoint->file_bytes; })
      .def_prop_ro("payload_bytes",
                   [](const HeldCheckpoint& held) { return qcts::payload_bytes(*held.checkpoint); })
      .def_prop_ro("dense_bytes",
                   [](const HeldCheckpoint& held) { return qcts::dense_bytes(*held.checkpoint); })
      .def_prop_ro("warnings", [](const HeldCheckpoint& held) { return held.checkpoint->warnings; })
      .def_prop_ro("findings",
                   [](const HeldCheckpoint& held) {
                     std::vector<std::pair<std::string, std::string>> findings;
                     for (const qcts::CheckpointFinding& finding : held.checkpoint->findings)
                       findings.emplace_back(finding.tensor, finding.text);
                     return findings;
                   })
      .def_prop_ro("names",
                   [](const HeldCheckpoint& held) {
                     std::vector<std::string> names;
                     for (const qcts::NamedTensor& tensor : held.checkpoint->tensors)
                       names.push_back(tensor.name);
                     return names;
                   })
      .def("tensor", &HeldCheckpoint::at, "name"_a);

  m.def("open", open, "path"_a, "lenient"_a = false, "dialect"_a = "",
        "allow"_a = std::vector<std::string>());
  m.def("quantize", quantize, "elements"_a, "dtype"_a, "n"_a, "k"_a, "scheme"_a);
  m.def("schemes", [] {
    std::vector<std::string> names;
    for (const qcts::Scheme* scheme : qcts::schemes()) names.emplace_back(scheme->name());
    return names;
  });
}
