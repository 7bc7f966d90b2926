// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "reference/formats/io/byte_io.h"

namespace qcts {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  size_t at;
  std::string_view what;
};
constexpr std::string_view kUnpack = ": unpack it and pass what was inside";
constexpr std::array<Signature, 36> kSignatures = {{
    {"version https://git-lfs.github.com/spec/"sv, 0,
     "a git-lfs pointer, not the file itself: fetch the file with git lfs pull"},
    {"tjgg"sv, 0, "a GGML file from before GGUF, which qcts cannot read: convert it with llama.cpp"},
    {"lmgg"sv, 0, "a GGML file from before GGUF, which qcts cannot read: convert it with llama.cpp"},
    {"\x1f\x8b"sv, 0, "a gzip file: unpack it first"},
    {"BZh"sv, 0, "a bzip2 file: unpack it first"},
    {"\xfd"
     "7zXZ\0"sv,
     0, "an xz file: unpack it first"},
    {"\x28\xb5\x2f\xfd"sv, 0, "a zstd file: unpack it first"},
    {"\x04\x22\x4d\x18"sv, 0, "an lz4 file: unpack it first"},
    {"7z\xbc\xaf\x27\x1c"sv, 0, "a 7z archive: unpack it and pass what was inside"},
    {"Rar!\x1a\x07"sv, 0, "a rar archive: unpack it and pass what was inside"},
    {"ustar"sv, 257, "a tar archive: unpack it and pass what was inside"},
    {"\x93NUMPY"sv, 0, "a NumPy array, which qcts cannot read: save it with safetensors.numpy"},
    {"\x89HDF\r\n\x1a\n"sv, 0, "an HDF5 file (Keras, h5py), which qcts cannot read"},
    {"TFL3"sv, 4, "a TensorFlow Lite model, which qcts cannot read"},
    {"ORTM"sv, 4, "an ONNX Runtime model, which qcts cannot read"},
    {"ET12"sv, 4,
     "an ExecuTorch program (.pte), which qcts cannot read: pass the checkpoint that it was made from"},
    {"PTMF"sv, 4, "a mobile TorchScript program (flatbuffer), which qcts cannot read"},
    {"ftrt"sv, 0, "a TensorRT engine, which qcts cannot read: pass the checkpoint that it was made from"},
    {"PAR1"sv, 0, "a Parquet file, which is not a checkpoint"},
    {"ARROW1"sv, 0, "an Arrow file, which is not a checkpoint"},
    {"SQLite format 3"sv, 0, "an SQLite database, which is not a checkpoint"},
    {"\xef\xbe\xad\xde"sv, 64,
     "the weights of a Core ML model, which qcts cannot read: pass the checkpoint that it was made from"},
    {"\0\5\x16\7"sv, 0,
     "an AppleDouble file, which macOS leaves next to the real file: pass that one, without \"._\""},
    {"PK\5\6"sv, 0, "an empty zip archive"},
    {"PK\7\10"sv, 0, "one part of a multi-part zip archive: join the parts first"},
    {"Salted__"sv, 0, "a file encrypted by openssl: decrypt it first"},
    {"age-encryption.org/"sv, 0, "a file encrypted by age: decrypt it first"},
    {"HTTP/1."sv, 0, "a server's whole response, headers and all: save only the body"},
    {"GIF8"sv, 0, "a GIF image"},
    {"\xff\xd8\xff"sv, 0, "a JPEG image"},
    {"MZ\x90\0"sv, 0, "a Windows program or library"},
    {"\x4c\0\0\0\1\x14\2\0"sv, 0, "a Windows shortcut: pass the file that it points to"},
    {"Obj\1"sv, 0, "an Avro file, which is not a checkpoint"},
    {"%PDF"sv, 0, "a PDF document"},
    {"\x89PNG"sv, 0, "a PNG image"},
    {"\x7f"
     "ELF"sv,
     0, "an ELF program or library"},
}};

std::string_view text_of(std::span<const std::byte> bytes, size_t most) {
  return as_text(bytes.first(std::min(most, bytes.size())));
}

bool begins_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

std::string_view without_blanks(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? std::string_view() : text.substr(first);
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : byte == '\n' || byte == '\r' || byte == '\t';
  });
}

std::string quoted(std::string_view text) {
  const std::string_view line = text.substr(0, std::min<size_t>(text.find_first_of("\r\n"), 120));
  return "\"" + std::string(line) + (line.size() < text.size() ? "...\"" : "\"");
}

std::string json_kind(std::string_view text, std::string_view name) {
  const auto holds = [&](std::string_view key) {
    return text.find("\"" + std::string(key) + "\"") != text.npos;
  };
  if (name.ends_with(".index.json") || holds("weight_map"))
    return "a shard index: pass the directory that contains it and its shards";
  if (holds("model_type") || holds("architectures") || holds("quantization_config") || holds("peft_type") ||
      holds("_class_name"))
    return "a config.json: pass its directory, or the weights next to it";
  if (holds("data_offsets")) return "a safetensors header without the length in front of it";
  return "JSON, not a checkpoint: " + quoted(text);
}

// Pointers that version control leaves in place of a file.
std::string pointer_kind(std::string_view text) {
  if (text.starts_with("# xet version"))
    return "a Xet pointer, not the file itself: fetch the file with git xet, or hf download";
  if (text.starts_with("outs:") && text.find("md5:") != text.npos)
    return "a DVC pointer, not the file itself: fetch the file with dvc pull";
  if (text.find("/annex/objects/") != text.npos)
    return "a git-annex pointer, not the file itself: fetch the file with git annex get";
  return "";
}

std::string text_kind(std::string_view head, std::string_view name) {
  const std::string_view text = without_blanks(head);
  if (begins_with_word(text, "<!doctype html") || begins_with_word(text, "<html"))
    return "an HTML page, such as a server's error or login: download the file again";
  if (begins_with_word(text, "<?xml") && text.find("<net ") != text.npos)
    return "an OpenVINO model, which qcts cannot read: pass the checkpoint that it was made from";
  if (begins_with_word(text, "<?xml"))
    return "an XML document, such as the error of a storage server: download the file again";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return "UTF-16 text, which is what PowerShell's > turns a download into: fetch it with curl -o or "
           "Invoke-WebRequest "
           "-OutFile";
  if (text.starts_with("{\"") && text.find("\"data_offsets\"") != text.npos) return json_kind(text, name);
  if (text.starts_with("--") && text.find("Content-Disposition:") != text.npos)
    return "the body of an upload form, headers and all: save only the part";
  if (!is_printable(text) || text.empty()) return "";
  if (text.front() == '<' && text.find('>') != text.npos)
    return "an HTML page, such as a server's error or login: download the file again";
  if (const std::string pointer = pointer_kind(text); !pointer.empty()) return pointer;
  if (text.front() == '{' || text.front() == '[') return json_kind(text, name);
  if (text.find('/') != text.npos && text.size() < 300 && text.find_first_of(" \n") == text.npos)
    return "the path " + quoted(text) +
           ", which is what a symbolic link turns into where links are not preserved: pass that file instead";
  constexpr size_t kShortWord = 8;  // a pickle of a few opcodes looks like one
  return text.size() < kShortWord && text.find(' ') == text.npos ? ""
                                                                 : "text, not a checkpoint: " + quoted(text);
}

// ModelProto: ir_version (field 1, a small number), then producer_name (field 2) or another field by length.
bool looks_like_onnx(std::string_view head, std::string_view name) {
  if (head.size() < 4 || head[0] != 0x08 || static_cast<unsigned char>(head[1]) > 20) return false;
  return name.ends_with(".onnx") || (head[2] == 0x12 && head.find("onnx"sv) != head.npos) ||
         (head[2] == 0x12 && head.find("pytorch"sv) != head.npos);
}

// Names of the records by their local headers, compressed or not.
struct ZipNames {
  std::vector<std::string> names;
  bool compressed = false;
};
ZipNames zip_names(std::span<const std::byte> bytes) {
  constexpr size_t kMax = 256, kHeader = 30;
  ZipNames found;
  // From the end records' side a damaged archive cannot be walked: its headers are looked for in its head.
  const std::string_view text = text_of(bytes, 1u << 20);
  for (size_t at = 0; found.names.size() < kMax; at += 4) {
    at = text.find("PK\3\4"sv, at);
    if (at == text.npos || at + kHeader > text.size()) return found;
    const size_t length = load_le<uint16_t>(bytes, at + 26);
    if (length == 0 || at + kHeader + length > text.size()) continue;
    found.compressed |= load_le<uint16_t>(bytes, at + 8) != 0;
    found.names.emplace_back(text.substr(at + kHeader, length));
  }
  return found;
}

}  // namespace

std::string foreign_file(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.empty()) return "an empty file";
  std::string_view head = text_of(bytes, 4096);
  for (const Signature& signature : kSignatures)
    if (head.size() > signature.at && head.substr(signature.at).starts_with(signature.bytes))
      return std::string(signature.what);
  if (head.find("com.github.apple.coremltools"sv) != head.npos || name.ends_with(".mlmodel"))
    return "a Core ML model, which qcts cannot read: pass the checkpoint that it was made from";
  if (looks_like_onnx(head, name))
    return "an ONNX model, which qcts cannot read: pass the checkpoint that it was made from";
  constexpr size_t kManyZeros = 512;
  if (head.size() >= kManyZeros && head.find_first_not_of('\0') == head.npos)
    return "all zeros at the start, as an unfinished download or copy leaves it: fetch it again";
  if (as_text(bytes).ends_with("\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv))
    return "the index of a TensorFlow checkpoint, which qcts cannot read";
  if (head.starts_with("(dp") || head.starts_with("(lp") || head.starts_with("ccopy_reg\n"))
    return "a protocol 0 pickle, which torch.save does not write: load it and save it with torch.save";
  if (name.ends_with(".msgpack")) return "a Flax msgpack file, which qcts cannot read";
  if (without_blanks(head).empty()) {  // a page may begin with many empty lines
    const std::string_view rest = without_blanks(text_of(bytes, 1u << 20));
    head = rest.substr(0, 4096);
  }
  return text_kind(head, name);
}

std::string instead_of_json(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text = without_blanks(text_of(bytes, 4096));
  if (text.starts_with('{') || text.starts_with('[')) return "";
  const std::string kind = foreign_file(bytes, name);
  return kind.empty() ? "" : ", but " + kind;
}

std::string foreign_zip(std::span<const std::byte> bytes) {
  const ZipNames zip = zip_names(bytes);
  const auto any = [&](std::string_view ending) {
    const auto found =
        std::ranges::find_if(zip.names, [&](const std::string& name) { return name.ends_with(ending); });
    return found == zip.names.end() ? std::string() : *found;
  };
  if (!any("archive_format").empty() || !any("models/model.json").empty())
    return "a torch.export program, which qcts cannot read: save its state_dict with torch.save";
  if (!any(".data/extern_modules").empty() || !any(".data/python_version").empty())
    return "a torch.package archive, which qcts cannot read: save the state_dict with torch.save";
  if (!any(".npy").empty()) return "a NumPy archive (.npz), which qcts cannot read";
  if (!any(".weights.h5").empty()) return "a Keras model, which qcts cannot read";
  for (std::string_view ending : {".safetensors", ".pt", ".pth", ".bin", ".gguf"})
    if (const std::string inside = any(ending); !inside.empty())
      return "a zip archive that contains " + inside + std::string(kUnpack);
  if (!any("data.pkl").empty() && zip.compressed)
    return "a torch checkpoint whose archive was unpacked and re-zipped with compression: torch cannot read "
           "it either; zip it without compression (zip -0 -r) with one top-level folder, or save it again";
  if (any("data.pkl").empty() && !zip.names.empty())
    return "a zip archive of other files (" + zip.names.front() + ")" + std::string(kUnpack);
  return "";
}

}  // namespace qcts
