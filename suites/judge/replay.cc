// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/replay.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "suites/inputs/generate.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kReplaySchema = 1;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kShortestRun = 8;

// RFC 4648, without padding.
std::string base64(std::span<const std::byte> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < count ? std::to_integer<uint32_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j <= count; ++j) text += kDigits[bits >> (18 - 6 * j) & 63];
  }
  return text;
}

std::vector<std::byte> from_base64(std::string_view text) {
  std::vector<std::byte> bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) throw std::runtime_error("not base64: '" + std::string(1, c) + "'");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held >= 8) bytes.push_back(static_cast<std::byte>(bits >> (held -= 8) & 255));
  }
  return bytes;
}

// Base64 strings with [length, byte] between them for runs.
Json bytes_json(std::span<const std::byte> bytes) {
  Json pieces = Json::array();
  size_t begin = 0;
  const auto flush = [&](size_t end) {
    if (end > begin) pieces.push_back(base64(bytes.subspan(begin, end - begin)));
  };
  for (size_t i = 0; i < bytes.size();) {
    size_t end = i;
    while (end < bytes.size() && bytes[end] == bytes[i]) ++end;
    if (end - i >= kShortestRun) {
      flush(i);
      pieces.push_back({end - i, std::to_integer<int>(bytes[i])});
      begin = end;
    }
    i = end;
  }
  flush(bytes.size());
  return pieces;
}

constexpr uint64_t kMaxBytes = 1u << 28;

std::vector<std::byte> bytes_from(const Json& pieces) {
  std::vector<std::byte> bytes;
  for (const Json& piece : pieces) {
    if (piece.is_string()) {
      const std::vector<std::byte> part = from_base64(piece.get<std::string>());
      bytes.insert(bytes.end(), part.begin(), part.end());
      continue;
    }
    const auto count = piece.at(0).get<uint64_t>();
    if (count > kMaxBytes - bytes.size())
      throw std::runtime_error("a run of " + std::to_string(count) + " bytes");
    bytes.insert(bytes.end(), count, static_cast<std::byte>(piece.at(1).get<uint8_t>()));
  }
  return bytes;
}

DType dtype_at(const Json& json, const char* key) {
  const std::optional<DType> dtype = dtype_from_name(json.at(key).get<std::string>());
  if (!dtype)
    throw std::runtime_error(std::string(key) + ": unknown dtype '" + json.at(key).get<std::string>() + "'");
  return *dtype;
}

// Older files say only whether sums are exact; theirs need the bits of exact_sums().
int exact_bits_from(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? kExactSumsBits : 0;
  const int bits = json.get<int>();
  if (bits < 0 || bits > 23) throw std::runtime_error("exact_sums = " + std::to_string(bits));
  return bits;
}

}  // namespace

Replay replay_from_json(const Json& json) {
  if (json.at("qcts_replay") != kReplaySchema) throw std::runtime_error("unsupported version of the format");
  Replay replay;
  KernelInput& input = replay.input;
  const std::string case_id = json.at("case");
  const std::optional<CaseId> id = parse_case_id(case_id);
  if (!id) throw std::invalid_argument("'" + case_id + "' is not a case id");
  replay.case_id = *id;
  replay.provider = json.at("provider");
  replay.exact_bits = exact_bits_from(json.at("exact_sums"));
  const std::string op = json.at("op");
  const std::optional<Op> known = find_op(op);
  if (!known || *known == Op::file) throw std::invalid_argument("the reference has no op " + op);
  input.op = *known;
  input.scheme = find_scheme(json.at("scheme").get<std::string>());
  if (input.scheme == nullptr)
    throw std::runtime_error("unknown scheme '" + json.at("scheme").get<std::string>() + "'");
  input.layout = input.scheme->layout_named(json.at("layout").get<std::string>());
  input.activation = input.scheme->policy_named(json.at("activation").get<std::string>());
  input.weight = {dtype_at(json, "dtype"), json.at("n"), json.at("k")};
  input.m = json.at("m");
  if (input.m < 0 || input.m > (1 << 20)) throw std::runtime_error("m = " + std::to_string(input.m));
  if (const auto refusal = input.scheme->refusal(input.weight, input.layout))
    throw std::runtime_error(*refusal);
  input.x_dtype = dtype_at(json, "x_dtype");
  input.y_dtype = dtype_at(json, "y_dtype");
  input.bias_dtype = dtype_at(json, "bias_dtype");
  if (input.op != Op::quantize) {
    const Layout layout = input.op == Op::unpack ? input.layout : kPlain;
    std::vector<PlaneSpec> specs = input.scheme->plane_specs(input.weight, layout);
    for (PlaneSpec& spec : input.scheme->policy_specs(input.weight, input.activation)) specs.push_back(spec);
    for (const PlaneSpec& spec : specs) {
      input.planes.push_back(
          {spec.name, spec.dtype, spec.shape, bytes_from(json.at("planes").at(spec.name))});
      if (input.planes.back().bytes.size() != spec.bytes())
        throw std::runtime_error("planes." + spec.name + ": " +
                                 std::to_string(input.planes.back().bytes.size()) + " bytes instead of " +
                                 std::to_string(spec.bytes()));
    }
  }
  input.x = bytes_from(json.at("x"));
  input.bias = bytes_from(json.at("bias"));
  const auto k = static_cast<size_t>(input.weight.k), n = static_cast<size_t>(input.weight.n);
  const size_t rows = input.has_rows_of_x() ? static_cast<size_t>(input.m) : input.op == Op::quantize ? n : 0;
  if (input.x.size() != rows * k * dtype_bytes(input.x_dtype))
    throw std::runtime_error("x has the wrong size");
  if (!input.bias.empty() && input.bias.size() != n * dtype_bytes(input.bias_dtype))
    throw std::runtime_error("bias has the wrong size");
  return replay;
}

Json to_json(const Replay& replay) {
  const KernelInput& input = replay.input;
  Json planes = Json::object();
  for (const Plane& plane : input.planes) planes[plane.name] = bytes_json(plane.bytes);
  return {{"qcts_replay", kReplaySchema},
          {"case", replay.case_id.text()},
          {"provider", replay.provider},
          {"op", op_name(input.op)},
          {"scheme", input.scheme->name()},
          {"layout", input.layout.name()},
          {"activation", input.activation.name()},
          {"dtype", dtype_name(input.weight.dtype)},
          {"m", input.m},
          {"n", input.weight.n},
          {"k", input.weight.k},
          {"exact_sums", replay.exact_bits},
          {"x_dtype", dtype_name(input.x_dtype)},
          {"y_dtype", dtype_name(input.y_dtype)},
          {"bias_dtype", dtype_name(input.bias_dtype)},
          {"planes", std::move(planes)},
          {"x", bytes_json(input.x)},
          {"bias", bytes_json(input.bias)}};
}

std::string replay_text(const Replay& replay) {
  const Json json = to_json(replay);
  std::string text = "{";
  for (const auto& [key, value] : json.items())
    text += (text.size() > 1 ? ",\n " : "\n ") + Json(key).dump() + ": " + value.dump();
  return text + "\n}\n";
}

Replay read_replay(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  try {
    return replay_from_json(Json::parse(in));
  } catch (const std::exception& error) {
    throw std::runtime_error(path.string() + ": not a replay: " + error.what());
  }
}

TestVector test_vector_of(const Replay& replay) {
  TestVector test_vector = test_vector_for(replay.input);
  test_vector.exact_bits = replay.input.op == Op::linear ? replay.exact_bits : 0;
  return test_vector;
}

Verdict judge_replay(const Replay& replay, const Implementation& implementation,
                     const JudgeContext& context) {
  const auto began = std::chrono::steady_clock::now();
  Verdict verdict;
  verdict.case_id = replay.case_id;
  verdict.provider = implementation.provider;
  verdict.variant = implementation.kernel->variant;
  verdict.reason = implementation.machine_refusal();
  if (!verdict.reason.empty())
    verdict.status = Status::not_supported;
  else
    judge_guarded(verdict, [&] {
      try {
        Replay played = replay;
        if (context.played)
          played.input.recipe = context.played->recipe(replay.input.op, *replay.input.scheme);
        judge_test_vector(*implementation.kernel, test_vector_of(played), context, verdict);
      } catch (const Refused& refused) {  // the reference refused: that says nothing about the kernel
        throw std::runtime_error(std::string("refused: ") + refused.what());
      }
      conclude(verdict, context.purpose);
    });
  verdict.wall_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
  return verdict;
}

}  // namespace qcts
