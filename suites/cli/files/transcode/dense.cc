// SPDX-License-Identifier: BSD-3-Clause
// qcts convert --to dense: every weight as `dequantize` gives it, in the producer's own output dtype.
#include <algorithm>
#include <map>

#include "reference/dialects/dense.h"
#include "reference/dialects/encoders/convert.h"
#include "reference/dialects/own_metadata.h"
#include "suites/cli/files/dense_tensors.h"
#include "suites/cli/files/transcode/model_folder.h"
#include "suites/cli/files/transcode/output.h"

namespace qcts::cli {
namespace {

namespace fs = std::filesystem;

Tensor dense_or_fail(const DenseTensors& dense, const NamedTensor& tensor) {
  DenseTensors::Read read = dense.read(tensor);
  if (!read.tensor) throw Failure(read.why_not);
  return std::move(*read.tensor);
}

// A plain tensor stays as it is, with all that it holds.
NamedTensor dense_tensor(const DenseTensors& dense, const NamedTensor& tensor) {
  Tensor elements = dense_or_fail(dense, tensor);
  return is_plain(tensor) ? tensor : plain_tensor(tensor.name, elements);
}

std::vector<std::pair<std::string, std::string>> metadata_for(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> metadata = own_metadata(checkpoint);
  metadata.try_emplace("format", "pt");
  return {metadata.begin(), metadata.end()};
}

EncodedSafetensors encode_dense(const Checkpoint& checkpoint, const DenseTensors& dense,
                                const std::vector<size_t>& indices) {
  std::vector<NamedTensor> tensors;
  for (const size_t i : indices) tensors.push_back(dense_tensor(dense, checkpoint.tensors[i]));
  EncodedSafetensors encoded = encode_safetensors(tensors, "plain", false);
  encoded.metadata = metadata_for(checkpoint);
  return encoded;
}

// Compares OUT with what IN dequantizes to, byte for byte.
ComparedWeights compare_dense(const Checkpoint& checkpoint, const DenseTensors& dense,
                              const fs::path& written, const ConvertArguments& words) {
  const Checkpoint out = read_back(written, words);
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : out.tensors) by_name.emplace(tensor.name, &tensor);
  ComparedWeights compared;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const auto found = by_name.find(tensor.name);
    const Tensor want = dense_or_fail(dense, tensor);
    const bool same = found != by_name.end() && is_plain(*found->second) &&
                      found->second->payload[0].tensor.dtype == want.dtype &&
                      found->second->payload[0].tensor.shape == want.shape &&
                      row_major_bytes(found->second->payload[0].tensor) == row_major_bytes(want);
    if (!same || by_name.size() != checkpoint.tensors.size())
      throw Failure(tensor.name + ": other elements in the file that would become " + words.out +
                    ", so OUT is not written");
    if (is_plain(tensor)) continue;
    ++compared.weights;
    compared.elements += static_cast<uint64_t>(want.numel());
  }
  return compared;
}

void note_what_is_lost(const Checkpoint& checkpoint, const std::string& said) {
  std::vector<std::string> notes;
  size_t pairs = 0, policies = 0;
  for (const auto& file : checkpoint.ggufs) pairs += file->metadata.size();
  if (pairs > 0)
    notes.push_back("the metadata of the GGUF file, " + grouped(pairs) + " values, is not in OUT");
  for (const NamedTensor& tensor : checkpoint.tensors)
    policies += !tensor.scheme.empty() && tensor.activation != kWeightOnly;
  if (policies > 0 || !said.empty())
    notes.push_back("IN asks for quantized x (" +
                    (said.empty() ? grouped(policies) + " weights" : said + " of its configuration") +
                    "), but a model that loads OUT uses x as it is");
  print_notes(notes);
}

void write_file(const Checkpoint& checkpoint, const DenseTensors& dense, const std::string& out,
                const fs::path& path) {
  std::vector<size_t> all(checkpoint.tensors.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (ends_as_safetensors(out)) {
    const EncodedSafetensors encoded = encode_dense(checkpoint, dense, all);
    save_file(path, [&](ByteSink& sink) { write_safetensors(encoded.entries, encoded.metadata, sink); });
    return;
  }
  std::vector<NamedTensor> tensors;
  for (const size_t i : all) tensors.push_back(dense_tensor(dense, checkpoint.tensors[i]));
  const EditedZip made = encode_state_dict(tensors, false);
  save_file(path,
            [&](ByteSink& sink) { write_torch_zip(archive_prefix(out), made.root, made.storages, sink); });
}

}  // namespace

int convert_to_dense(const Checkpoint& checkpoint, const ConvertArguments& words) {
  const bool folder = checkpoint.format == Format::directory;
  if (folder)
    require_new_folder(words.out);
  else
    require_ending(words.out);
  if (std::ranges::all_of(checkpoint.tensors, is_plain))
    throw Failure(words.in + ": no tensor in it is quantized: " +
                  (checkpoint.ggufs.empty() ? "qcts convert --to plain, or qcts resave"
                                            : "qcts dequantize makes a safetensors file of it"));
  require_names_and_tensors(checkpoint);
  require_no_input_parts(checkpoint, "floats");
  const DenseTensors dense(checkpoint, assumed_layout(checkpoint, words.pack));
  for (const std::string& why : dense.obstacles()) throw Failure(why);
  const auto write = [&](const fs::path& path) {
    if (!folder) return write_file(checkpoint, dense, words.out, path);
    write_model_folder(
        checkpoint, without_quantization(checkpoint.config),
        [&](const std::vector<size_t>& indices) { return encode_dense(checkpoint, dense, indices); }, path);
  };
  const ComparedWeights compared = write_compared(words, folder, write, [&](const fs::path& path) {
    return compare_dense(checkpoint, dense, path, words);
  });
  note_what_is_lost(checkpoint, said_about_input(checkpoint, words.options.open));
  note_further_attributes(checkpoint);
  note_two_roundings(checkpoint);
  const bool safetensors = folder || ends_as_safetensors(words.out);
  report_conversion(words, checkpoint, safetensors ? "safetensors" : "torch_zip", "plain", compared,
                    "as floats, read back and equal to what dequantize gives");
  return 0;
}

}  // namespace qcts::cli
