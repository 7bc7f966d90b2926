// SPDX-License-Identifier: BSD-3-Clause
#include "suites/identify/option_shares.h"

#include <algorithm>

#include "reference/formats/io/sha256.h"
#include "suites/judge/first_answer.h"

namespace qcts {
namespace {

constexpr const char *kCodes = "codes", *kScales = "scales";

// Calls count(are_equal) for each element of two planes with the same spec, for each half of a byte if
// it holds two codes.
template <typename Count>
void for_each_element(const Plane& want, const Plane& got, bool has_halves, const Count& count) {
  const size_t step = std::max<size_t>(1, dtype_bits(want.dtype) / 8);
  for (size_t at = 0; at + step <= want.bytes.size(); at += step) {
    if (has_halves) {
      const std::byte differ = want.bytes[at] ^ got.bytes[at];
      count((differ & std::byte{0x0F}) == std::byte{0});
      count((differ & std::byte{0xF0}) == std::byte{0});
      continue;
    }
    const auto element = [&](const Plane& plane) {
      return Plane{"", plane.dtype, {1}, {plane.bytes.begin() + at, plane.bytes.begin() + at + step}};
    };
    count(std::equal(want.bytes.begin() + at, want.bytes.begin() + at + step, got.bytes.begin() + at) ||
          !first_difference(element(want), element(got)));
  }
}

// Packed codes have other names in each layout.
bool is_codes_plane(const Plane& plane) {
  return plane.name.find("scale") == std::string::npos && plane.name.find("zero") == std::string::npos;
}

bool has_halves(const Plane& plane, int64_t elements) {
  return is_codes_plane(plane) && plane.bytes.size() * 2 == static_cast<size_t>(elements);
}

std::string hash_of(const KernelAnswer& answer) {
  std::string all = sha256_hex(answer.y);
  for (const Plane& plane : answer.planes) all += sha256_hex(plane.bytes);
  return all;
}

}  // namespace

OptionShare share_of(const IdentifyOption& option, const KernelInput& input, const LinearStages& stages,
                     const KernelAnswer& got) {
  OptionShare share;
  share.name = option.name;
  share.choice = option.choice;
  share.inputs = 1;
  if (input.op == Op::linear) {
    const std::vector<bool> wrong = wrong_elements(option.bounds(input, stages), input.y_dtype, got.y);
    share.codes = wrong.size();
    share.equal = static_cast<uint64_t>(std::ranges::count(wrong, false));
    return share;
  }
  const KernelAnswer want = option.play(input);
  const auto count = [](uint64_t& all, uint64_t& equal) {
    return [&](bool is_equal) {
      ++all;
      equal += is_equal;
    };
  };
  if (input.has_y()) {
    const auto values = [&](const std::vector<std::byte>& y) {
      return Plane{"y", input.y_type(), {static_cast<int64_t>(y.size() / dtype_bytes(input.y_type()))}, y};
    };
    if (want.y.size() != got.y.size()) throw std::logic_error("answers of different sizes");
    for_each_element(values(want.y), values(got.y), false, count(share.codes, share.equal));
  }
  const int64_t elements = input.x_rows() * input.weight.k;
  for (size_t i = 0; i < want.planes.size(); ++i) {
    const Plane &plane = want.planes[i], &other = got.planes.at(i);
    if (plane.bytes.size() != other.bytes.size()) throw std::logic_error("answers of different sizes");
    if (is_codes_plane(plane))
      for_each_element(plane, other, has_halves(plane, elements), count(share.codes, share.equal));
    else
      for_each_element(plane, other, false, count(share.scales, share.equal_scales));
  }
  return share;
}

Verdict ask_for_shares(const Replay& replay, const Implementation& kernel, const JudgeContext& context) {
  Verdict verdict;
  verdict.case_id = replay.case_id;
  verdict.provider = kernel.provider;
  verdict.variant = kernel.kernel->variant;
  KernelRun run(*kernel.kernel, replay.input, {context.threads, 0, 0});
  if (is_declined(run.supports(), verdict)) return verdict;
  const KernelAnswer got = run.run(Poison::nan);
  const LinearStages stages = declared_stages(*kernel.kernel, replay.input.x_dtype);
  for (const IdentifyOption& option : identify_options(replay.input)) {
    OptionShare share;
    try {
      share = share_of(option, replay.input, stages, got);
    } catch (const std::exception&) {  // the option cannot take this input
      continue;
    }
    verdict.measures.push_back({option.name, kCodes, static_cast<double>(share.equal), {}, {}, share.codes});
    verdict.measures.push_back(
        {option.name, kScales, static_cast<double>(share.equal_scales), {}, {}, share.scales});
  }
  verdict.status = Status::pass;
  return verdict;
}

void Identification::add(const KernelInput& input, const Verdict& verdict) {
  ++asked_;
  if (verdict.status != Status::pass) {
    const bool declined = verdict.status == Status::not_supported;
    faults_ += !declined;
    std::string& why = declined ? declined_ : fault_;
    if (why.empty()) why = std::string(status_name(verdict.status)) + ": " + verdict.reason;
    return;
  }
  ++answered_;
  for (const IdentifyOption& option : identify_options(input)) {
    auto found = std::ranges::find(options_, option.name, &OptionShare::name);
    if (found == options_.end()) {
      options_.push_back({});
      found = options_.end() - 1;
      found->name = option.name;
      found->choice = option.choice;
    }
    bool was_played = false;
    for (const Measure& measure : verdict.measures) {
      if (measure.name != option.name) continue;
      const bool codes = measure.unit == kCodes;
      (codes ? found->codes : found->scales) += measure.samples.value_or(0);
      (codes ? found->equal : found->equal_scales) += static_cast<uint64_t>(measure.value);
      was_played = true;
    }
    if (!was_played) continue;
    ++found->inputs;
    answers_[option.name] += hash_of(option.play(input));
  }
}

bool Identification::fits(const OptionShare& option) const {
  return option.inputs == answered_ && answered_ > 0 && option.equal == option.codes &&
         option.equal_scales == option.scales;
}

std::vector<const OptionShare*> Identification::fitting() const {
  std::vector<const OptionShare*> found;
  for (const OptionShare& option : options_)
    if (fits(option)) found.push_back(&option);
  return found;
}

const OptionShare& Identification::nearest() const {
  const auto closeness = [](const OptionShare& option) {
    return std::tuple(option.equal, option.equal_scales);
  };
  return *std::ranges::max_element(options_, {}, closeness);
}

std::vector<std::vector<std::string>> Identification::not_told_apart() const {
  std::map<std::string, std::vector<std::string>> by_answers;
  for (const OptionShare& option : options_)
    if (option.inputs == answered_ && answered_ > 0)
      by_answers[answers_.at(option.name)].push_back(option.name);
  std::vector<std::vector<std::string>> sets;
  for (auto& [hashes, names] : by_answers)
    if (names.size() > 1) sets.push_back(std::move(names));
  return sets;
}

}  // namespace qcts
