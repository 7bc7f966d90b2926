// Plain tensors, and the tensors of torch itself that are more than one strided view: quantized, sparse,
// nested, meta.
#include "reference/dialects/attributes.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

void collect_tensors(const TorchZip& zip, const pickle::Ref& node, const std::string& name,
                     NamedTensor& tensor) {
  if (const std::optional<Tensor> view = tensor_of(zip, node)) {
    tensor.payload.push_back({name, *view});
    return;
  }
  if (node->kind != pickle::Kind::tuple && node->kind != pickle::Kind::list) return;
  for (size_t i = 0; i < node->items.size(); ++i)
    collect_tensors(zip, node->items[i], name + "." + std::to_string(i), tensor);
}

std::vector<int64_t> integers_of(const pickle::Ref& node) {
  std::vector<int64_t> integers;
  for (const pickle::Ref& item : node->items)
    if (item->kind == pickle::Kind::integer) integers.push_back(item->integer);
  return integers;
}

// _rebuild_qtensor(storage, offset, size, stride, quantizer, requires_grad, hooks): its codes are a plain
// view.
void read_qtensor(const TorchZip& zip, const std::vector<pickle::Ref>& arguments, NamedTensor& tensor) {
  const pickle::Ref view = pickle::call(pickle::global("torch._utils", "_rebuild_tensor_v2"),
                                        {arguments.at(0), arguments.at(1), arguments.at(2), arguments.at(3),
                                         pickle::boolean(false), arguments.at(6)});
  if (const std::optional<Tensor> data = tensor_of(zip, view)) {
    tensor.payload.push_back({"data", *data});
    tensor.shape = data->shape;
    tensor.dtype = data->dtype;
  }
  collect_tensors(zip, arguments.at(4), "quantizer", tensor);
}

// _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)
void read_meta(const std::vector<pickle::Ref>& arguments, NamedTensor& tensor) {
  if (const std::optional<DType> dtype = dtype_of_json(attribute_json(arguments.at(0), tensor.name)))
    tensor.dtype = *dtype;
  tensor.shape = integers_of(arguments.at(1));
  tensor.attributes["device"] = "meta";
}

}  // namespace

NamedTensor read_plain(const TorchZip& zip, const TensorLeaf& leaf) {
  const TensorSpelling spelling = spelling_of(leaf.node);
  NamedTensor tensor;
  tensor.name = leaf.name;
  tensor.type = spelling.cls         ? std::string(split_global(spelling.cls).name)
                : spelling.parameter ? "Parameter"
                                     : "Tensor";
  if (const std::optional<Tensor> data = tensor_of(zip, spelling.plain)) {
    tensor.shape = data->shape;
    tensor.dtype = data->dtype;
    tensor.payload.push_back({"data", *data});
    return tensor;
  }
  const std::string rebuild(split_global(spelling.plain->items[0]).name);
  const std::vector<pickle::Ref>& arguments = spelling.plain->items[1]->items;
  tensor.attributes["rebuild"] = rebuild;
  if (rebuild == "_rebuild_qtensor" && arguments.size() == 7)
    read_qtensor(zip, arguments, tensor);
  else if (rebuild == "_rebuild_meta_tensor_no_storage" && arguments.size() == 4)
    read_meta(arguments, tensor);
  else
    for (size_t i = 0; i < arguments.size(); ++i)
      collect_tensors(zip, arguments[i], "data." + std::to_string(i), tensor);
  return tensor;
}

std::vector<NamedTensor> read_plain_safetensors(const SafetensorsView& view) {
  std::vector<NamedTensor> tensors;
  for (const SafetensorsEntry* entry : view.entries) {
    NamedTensor tensor;
    tensor.name = entry->name;
    tensor.type = "Tensor";
    tensor.shape = entry->tensor.shape;
    tensor.dtype = entry->tensor.dtype;
    tensor.payload.push_back({"data", entry->tensor});
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace qcts
