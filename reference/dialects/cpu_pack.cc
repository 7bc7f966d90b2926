// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/cpu_pack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr size_t kPacks = std::size(kCpuPacks);
constexpr int64_t kBlockRows = 64;    // of the longest pack: a weight's first blocks are contiguous in all
constexpr int64_t kMaxGroups = 4096;  // of one weight
constexpr int kLastCode = 15, kMiddleCode = 8;

// One group's codes under a pack, with the scale and zero of its place.
struct GroupView {
  bool both_ends = false;
  double distance = 0;  // from the mean code to the code of 0
};

template <class T>
using Pairs = std::array<std::array<T, kPacks>, kPacks>;

// A weight's first rows under every pack.
struct Views {
  int64_t groups = 0, symmetric = 0;
  std::array<std::vector<GroupView>, kPacks> packs;
  std::array<std::vector<std::byte>, kPacks> codes;
  std::array<std::vector<uint64_t>, kPacks>
      columns;  // for each group along k a hash of its rows in any order
};

struct Counts {
  int64_t groups = 0, symmetric = 0;
  std::array<int64_t, kPacks> both_ends{};
  Pairs<int64_t> by_ends{}, by_middle{};  // [a][b]: groups that favour a over b
  Pairs<bool> same{}, rows_only{};        // the codes are equal; equal but for the order of whole rows
};

// Cuts a weight to its first rows: whole blocks, which all packs store one after another.
SchemeTensor first_rows(const SchemeTensor& tensor) {
  const int64_t in_row = tensor.k / tensor.scheme->group();
  const int64_t blocks = std::max<int64_t>(1, kMaxGroups / in_row / kBlockRows);
  if (tensor.n <= blocks * kBlockRows) return tensor;
  SchemeTensor cut = tensor;
  cut.n = blocks * kBlockRows;
  cut.planes.clear();
  for (const PlaneSpec& spec :
       cut.scheme->plane_specs({cut.dtype, cut.n, cut.k}, *cut.scheme->find_layout(kCpuPacks[0]))) {
    const Plane& whole = plane(tensor.planes, spec.name);
    Plane part = {spec.name, spec.dtype, spec.shape, {}};
    if (spec.name == "qdata") {
      part.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(spec.bytes()));
    } else {  // scale_and_zero [groups, n, 2]
      const size_t row = spec.bytes() / static_cast<size_t>(spec.shape[0]),
                   step = whole.bytes.size() / static_cast<size_t>(spec.shape[0]);
      for (size_t g = 0; g < static_cast<size_t>(spec.shape[0]); ++g)
        part.bytes.insert(part.bytes.end(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(g * step),
                          whole.bytes.begin() + static_cast<std::ptrdiff_t>(g * step + row));
    }
    cut.planes.push_back(std::move(part));
  }
  return cut;
}

GroupView view_of(std::span<const int> codes, double scale, double zero) {
  const auto [low, high] = std::ranges::minmax(codes);
  double sum = 0;
  for (const int code : codes) sum += code;
  const double code_of_zero = kMiddleCode - zero / scale;
  return {low == 0 && high == kLastCode, std::fabs(sum / static_cast<double>(codes.size()) - code_of_zero)};
}

uint64_t hash_of(std::span<const int> codes) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const int code : codes) hash = (hash ^ static_cast<uint64_t>(code)) * 0x100000001b3;
  return hash;
}

Views views_of(const SchemeTensor& whole) {
  const SchemeTensor tensor = first_rows(whole);
  const Scheme& scheme = *tensor.scheme;
  const WeightShape shape = {tensor.dtype, tensor.n, tensor.k};
  const int64_t group = scheme.group(), in_row = tensor.k / group;
  Views views;
  std::vector<int> codes(static_cast<size_t>(tensor.k));
  for (size_t p = 0; p < kPacks; ++p) {
    const Planes plain = scheme.unpack(tensor.planes, shape, *scheme.find_layout(kCpuPacks[p]));
    const std::vector<double> pairs = load_doubles(tensor.dtype, plane(plain, "scale_and_zero").bytes);
    views.codes[p] = plane(plain, "qdata").bytes;
    views.columns[p].resize(static_cast<size_t>(in_row));
    for (int64_t n = 0; n < tensor.n; ++n) {
      scheme.row_codes(plain, shape, n, codes);
      for (int64_t g = 0; g < in_row; ++g) {
        const size_t at = static_cast<size_t>((g * tensor.n + n) * 2);
        const std::span<const int> part(codes.data() + g * group, static_cast<size_t>(group));
        views.packs[p].push_back(view_of(part, pairs[at], pairs[at + 1]));
        views.columns[p][static_cast<size_t>(g)] += hash_of(part);
        if (p == 0) views.symmetric += pairs[at + 1] == 0;
      }
    }
  }
  views.groups = tensor.n * in_row;
  return views;
}

Counts counts_of(const Views& views) {
  Counts counts;
  counts.groups = views.groups;
  counts.symmetric = views.symmetric;
  for (size_t a = 0; a < kPacks; ++a)
    for (size_t b = 0; b < kPacks; ++b) {
      counts.same[a][b] = views.codes[a] == views.codes[b];
      counts.rows_only[a][b] = views.columns[a] == views.columns[b];
    }
  for (size_t a = 0; a < kPacks; ++a)
    for (size_t i = 0; i < views.packs[a].size(); ++i) {
      const GroupView& view = views.packs[a][i];
      counts.both_ends[a] += view.both_ends;
      for (size_t b = 0; b < kPacks; ++b) {
        const GroupView& other = views.packs[b][i];
        counts.by_ends[a][b] += view.both_ends && !other.both_ends;
        counts.by_middle[a][b] += view.distance < other.distance;
      }
    }
  return counts;
}

void add(Counts& sum, const Counts& more) {
  const bool first = sum.groups == 0;
  sum.groups += more.groups;
  sum.symmetric += more.symmetric;
  for (size_t a = 0; a < kPacks; ++a) {
    sum.both_ends[a] += more.both_ends[a];
    for (size_t b = 0; b < kPacks; ++b) {
      sum.by_ends[a][b] += more.by_ends[a][b];
      sum.by_middle[a][b] += more.by_middle[a][b];
      sum.same[a][b] = (first || sum.same[a][b]) && more.same[a][b];
      sum.rows_only[a][b] = (first || sum.rows_only[a][b]) && more.rows_only[a][b];
    }
  }
}

// Returns the chance of a's win over b.
double chance_against(const Counts& counts, size_t a, size_t b) {
  if (counts.same[a][b]) return 0;
  if (!counts.rows_only[a][b]) return sign_test(counts.by_ends[a][b], counts.by_ends[b][a]);
  return sign_test(counts.by_middle[a][b], counts.by_middle[b][a]);
}

struct Decision {
  unsigned packs = 0;  // bit p: kCpuPacks[p] is right; several if their codes are equal
  double chance = 1;
};

Decision decide(const Counts& counts) {
  Decision decision;
  const bool all_same = counts.same[0][1] && counts.same[0][2];
  if (all_same) return {(1u << kPacks) - 1, 0};
  if (counts.symmetric * 2 > counts.groups) return decision;
  for (size_t a = 0; a < kPacks; ++a) {
    if (static_cast<double>(counts.both_ends[a]) < kMinShare * static_cast<double>(counts.groups)) continue;
    double chance = 0;
    for (size_t b = 0; b < kPacks; ++b)
      if (b != a) chance = std::max(chance, chance_against(counts, a, b));
    if (chance >= kMaxChance) continue;
    decision.packs |= 1u << a;
    decision.chance = chance;
  }
  return decision;
}

std::string share_text(int64_t part, int64_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

std::string why_undecided(const Counts& counts) {
  if (counts.symmetric * 2 > counts.groups)
    return "its zeros are 0: symmetric codes reach one end of a group";
  const int64_t most = *std::ranges::max_element(counts.both_ends);
  if (static_cast<double>(most) < kMinShare * static_cast<double>(counts.groups))
    return "no CPU layout makes nearly all groups reach both code 0 and code 15 (" +
           share_text(most, counts.groups) + " at best)";
  return "its " + std::to_string(counts.groups) + " groups could look like this by chance";
}

}  // namespace

double sign_test(int64_t wins, int64_t losses) {
  const double n = static_cast<double>(wins + losses);
  if (wins <= losses) return 1;
  double p = 0;
  for (int64_t i = losses; i >= 0; --i) {
    const double k = static_cast<double>(i);
    const double term =
        std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
    p += term;
    if (term < p * 1e-17) break;
  }
  return std::min(1.0, p);
}

CpuPack find_cpu_pack(const Checkpoint& checkpoint) {
  CpuPack found;
  Counts sum;
  unsigned allowed = (1u << kPacks) - 1;  // by every weight that decides by itself
  std::string first_to_decide;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (tensor.scheme.empty() || tensor.layout) continue;
    const std::optional<SchemeTensor> packed = scheme_tensor(tensor, kCpuPacks[0]);
    if (!packed) continue;
    if (found.tensor.empty()) found.tensor = tensor.name;
    const Counts counts = counts_of(views_of(*packed));
    add(sum, counts);
    ++found.tensors;
    const unsigned alone = decide(counts).packs;
    if (alone == 0) continue;
    if ((alone & allowed) == 0 && found.why_not.empty())
      found.why_not = first_to_decide + " and " + tensor.name + " contradict each other";
    if ((alone & allowed) != allowed && first_to_decide.empty()) first_to_decide = tensor.name;
    allowed &= alone;
  }
  if (found.tensor.empty()) return found;
  found.groups = sum.groups;
  for (size_t p = 0; p < kPacks; ++p) found.evidence.push_back({kCpuPacks[p], sum.both_ends[p]});
  const Decision decision = decide(sum);
  found.chance = decision.chance;
  if (!found.why_not.empty()) return found;
  if (decision.packs == 0)
    found.why_not = why_undecided(sum);
  else
    found.decided = kCpuPacks[static_cast<size_t>(std::countr_zero(decision.packs))];
  return found;
}

}  // namespace qcts
