// torchao 0.13 to 0.18: Float8Tensor.
#include "reference/dialects/schema.h"
#include "reference/dialects/view.h"

namespace qcts {
namespace {

Recognized recognize(const NamedTensor& tensor) {
  if (tensor.type != "Float8Tensor") return {};
  const bool e4m3 = find_payload(tensor, "qdata")->dtype == DType::float8_e4m3fn;
  return e4m3 && is_null(tensor, "act_quant_kwargs") && one_scale_a_row(tensor)
             ? Recognized{"fp8_row", "plain"}
             : Recognized{};
}

}  // namespace

extern const View kView_float8 = {recognize};

}  // namespace qcts
