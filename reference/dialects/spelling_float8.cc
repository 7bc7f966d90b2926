// torchao 0.18.0 quantization/quantize_/workflows/float8/float8_tensor.py
#include "reference/dialects/spelling.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

bool makes(const Scheme& scheme, std::string_view layout, std::string_view activation) {
  return scheme.name() == "fp8_row" && layout == "plain" && activation == kWeightOnly;
}

Json state(const SchemeTensor& tensor) {
  Json dict = Json::object();
  dict["qdata"] = plane_here();
  dict["scale"] = plane_here();
  dict["block_size"] = group_block(tensor);
  dict["mm_config"] = nullptr;
  dict["act_quant_kwargs"] = nullptr;
  dict["kernel_preference"] = typed_json("KernelPreference", "AUTO");
  return dict;
}

}  // namespace

extern const Spelling kSpelling_float8 = {{"torchao.quantization", "Float8Tensor", true}, makes, state};

}  // namespace qcts
