// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/joins/words_by_column.h"

namespace qcts {

void set_groups(CodedWeight& weight, const Tensor& values, const Tensor& words, int64_t group_size) {
  ScaleMatrix& scales = weight.scales;
  scales.values = values;
  scales.transposed = true;
  scales.rows = weight.rows;
  scales.column_block = group_size < 0 ? weight.columns : group_size;
  if (scales.column_block < 1) leave_apart("config.json says group_size " + std::to_string(group_size));
  scales.columns = (weight.columns + scales.column_block - 1) / scales.column_block;
  if (values.shape != std::vector<int64_t>{scales.columns, weight.rows})
    contradict_layer("groups of " + std::to_string(scales.column_block) + " need " +
                     std::to_string(scales.columns) + " x " + std::to_string(weight.rows) + " scales");
  CodeMatrix zeros;
  zeros.words = words;
  zeros.bits = weight.codes.bits;
  zeros.packing = weight.codes.packing;
  zeros.lines = scales.columns;
  zeros.length = weight.rows;
  zeros.lines_are_rows = false;
  zeros.line_stride = zeros.line_words();
  if (words.shape != std::vector<int64_t>{zeros.lines, zeros.line_words()})
    contradict_layer("qzeros does not have the shape that " + std::to_string(weight.codes.bits) +
                     " bits need");
  weight.zeros = zeros;
}

std::string group_word(int64_t group_size) {
  return group_size < 0 ? "channel" : "g" + std::to_string(group_size);
}

}  // namespace qcts
