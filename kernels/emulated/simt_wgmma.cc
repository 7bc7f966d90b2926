// SPDX-License-Identifier: BSD-3-Clause
// wgmma (PTX ISA 8.7, section 9.7.15). Each warp of four multiplies 16 of the 64 rows of a by all columns of
// b. The operands are read, and the accumulators are written, when the warp waits for them (late) or at once
// (early). Until then the accumulators are NaN.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/emulated/simt.h"
#include "kernels/emulated/simt_checks.h"
#include "kernels/emulated/simt_sums.h"

namespace qcts::simt {
namespace {

constexpr uint32_t kWarpRows = 16, kStepBytes = 32, kMaxColumns = 256, kWarps = kMaxThreads / kLanes;
constexpr uint32_t kRowBytes = 128, kRowsOfUnit = 8;

// A signalling NaN, so that arithmetic on it shows.
constexpr uint32_t kUnderWay = 0xFFBFFFFF;

// A product of one warp. The sums of lane l are in rows l / 4 and l / 4 + 8, and in columns 2 * (l % 4) and
// the next one of each eight columns.
struct Product {
  WgmmaOperands operands;
  uint32_t words[kLanes][4];  // a, if it comes from registers
  uint32_t* d[kLanes];
  std::vector<uint32_t> sums;  // d before it became NaN, lane by lane; empty if an earlier product writes it
  uint32_t group;
  uint32_t warp_row;  // the warp's first row, of 64
};
struct Warp {
  std::vector<Product> products;  // unfinished products, oldest first
  uint32_t groups = 0;
  bool fenced = false;
};
Warp warps[kWarps];

Warp& own_warp() { return warps[place.thread / kLanes]; }

uint32_t element_bytes(Wgmma type) { return type == Wgmma::bf16 ? 2 : 1; }
uint32_t sums_of_lane(const WgmmaOperands& operands) { return operands.columns / 2; }

// Returns the offset of byte `byte` of row `row` of an operand. 8 rows of 128 bytes are stored one after
// another. Address bits 7 to 9 exchange the 16-byte units of a row (128-byte swizzle).
uint32_t offset_of(uint64_t descriptor, uint32_t row, uint32_t byte) {
  const auto start = static_cast<uint32_t>((descriptor & 0x3FFF) << 4);
  const auto stride = static_cast<uint32_t>((descriptor >> 32 & 0x3FFF) << 4);
  const uint32_t at = start + row / kRowsOfUnit * stride + row % kRowsOfUnit * kRowBytes + byte;
  return at ^ ((at >> 7 & 7) << 4);
}

// Copies one step of k, which is kStepBytes of a row, from shared memory.
void read_row(uint64_t descriptor, uint32_t row, uint8_t* out) {
  for (uint32_t byte = 0; byte < kStepBytes; byte += 16) {
    const uint8_t* from = shared_memory() + offset_of(descriptor, row, byte);
    check_range(Space::shared, from, 16, Use::read);
    std::memcpy(out + byte, from, 16);
  }
}

void read_a(const Product& product, uint8_t (*rows)[kStepBytes]) {
  for (uint32_t row = 0; row < kWarpRows; ++row) {
    if (product.operands.a_words == nullptr) {
      read_row(product.operands.a, product.warp_row + row, rows[row]);
      continue;
    }
    // As in mma.sync, a row consists of words 0 and 2 of lanes 4 * row to 4 * row + 3. Words 1 and 3 are
    // eight rows below.
    for (uint32_t i = 0; i < 8; ++i)
      std::memcpy(rows[row] + 4 * i, &product.words[row % 8 * 4 + i % 4][i / 4 * 2 + row / 8], 4);
  }
}

// `size` is the number of bytes of an element. The bytes of e4m3 are looked up in a table, because decoding
// would take longer than multiplying.
void decode_row(const FactorType& type, const uint8_t* bytes, uint32_t size, Factor* out) {
  static const std::array<Factor, 256> of_byte = [] {
    std::array<Factor, 256> table;
    for (uint32_t byte = 0; byte < table.size(); ++byte) table[byte] = kE4m3.decode(byte);
    return table;
  }();
  for (uint32_t k = 0; k < kStepBytes / size; ++k) {
    if (size == 1) {
      out[k] = of_byte[bytes[k]];
      continue;
    }
    uint16_t bits;
    std::memcpy(&bits, bytes + k * size, size);
    out[k] = type.decode(bits);
  }
}

// A row of a or a column of b. If one side is zero and the other is finite, all products are zeros. The
// product with the largest exponent then stands for all, because only it decides where the sum so far is
// cut. Tiles are often larger than the matrices of tests, so this saves most of the time.
struct Line {
  bool is_zero = true, is_finite = true;
  uint32_t largest = 0;  // index of the factor with the largest exponent
};
static_assert(kHopperSums16.terms == 16 && kHopperWideSums8.terms == 32, "a step of k is added at once");
Line line_of(const Factor* factors, uint32_t count) {
  Line line;
  for (uint32_t k = 0; k < count; ++k) {
    line.is_zero = line.is_zero && factors[k].significand == 0;
    line.is_finite = line.is_finite && std::isfinite(factors[k].value);
    if (factors[k].exponent > factors[line.largest].exponent) line.largest = k;
  }
  return line;
}

// Adds the products to `sum`. Takes and returns the bits of the sum.
uint32_t multiplied_s8(const uint8_t* a, const uint8_t* b, uint32_t sum) {
  for (uint32_t k = 0; k < kStepBytes; ++k)
    sum += static_cast<uint32_t>(static_cast<int8_t>(a[k]) * static_cast<int8_t>(b[k]));
  return sum;
}

void compute(const Product& product) {
  const WgmmaOperands& operands = product.operands;
  const uint32_t size = element_bytes(operands.type);
  uint8_t a_bytes[kWarpRows][kStepBytes], b_bytes[kMaxColumns][kStepBytes];
  read_a(product, a_bytes);
  for (uint32_t column = 0; column < operands.columns; ++column)
    read_row(operands.b, column, b_bytes[column]);
  const bool is_float = operands.type != Wgmma::s8;
  const FactorType& type = operands.type == Wgmma::bf16 ? kBf16 : kE4m3;
  const SumModel& model = operands.type == Wgmma::bf16 ? kHopperSums16 : kHopperWideSums8;
  const uint32_t length = kStepBytes / size;
  static Factor a[kWarpRows][kStepBytes], b[kMaxColumns][kStepBytes];
  static Line rows[kWarpRows], columns[kMaxColumns];
  if (is_float) {
    for (uint32_t row = 0; row < kWarpRows; ++row) {
      decode_row(type, a_bytes[row], size, a[row]);
      rows[row] = line_of(a[row], length);
    }
    for (uint32_t column = 0; column < operands.columns; ++column) {
      decode_row(type, b_bytes[column], size, b[column]);
      columns[column] = line_of(b[column], length);
    }
  }
  const auto dot = [&](uint32_t row, uint32_t column, float sum) {
    const Line &of_a = rows[row], &of_b = columns[column];
    uint32_t first = 0, count = length;
    if ((of_a.is_zero && of_b.is_finite) || (of_b.is_zero && of_a.is_finite)) {
      if (sum == 0) return 0.0f;
      first = of_a.is_zero ? of_b.largest : of_a.largest;
      count = 1;
    }
    return fused_dot(model, type, a[row] + first, b[column] + first, static_cast<int>(count), sum);
  };
  const uint32_t count = sums_of_lane(operands);
  for (uint32_t lane = 0; lane < kLanes && !product.sums.empty() && !settings().schedule.early; ++lane)
    if (std::count(product.d[lane], product.d[lane] + count, kUnderWay) != count)
      fault("lane %u of its warp touched the accumulators of a wgmma under way", lane);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      uint32_t& d = product.d[lane][i];
      const uint32_t before = product.sums.empty() ? d : product.sums[lane * count + i];
      if (is_float)
        d = __builtin_bit_cast(uint32_t, dot(row, column, __builtin_bit_cast(float, before)));
      else
        d = multiplied_s8(a_bytes[row], b_bytes[column], before);
    }
}

// Checks the ordinary stores to the operands at once, no matter when the operands are read.
void check_operands(const Product& product) {
  const auto check = [](uint64_t descriptor, uint32_t row) {
    for (uint32_t byte = 0; byte < kStepBytes; byte += 16) {
      const uint8_t* from = shared_memory() + offset_of(descriptor, row, byte);
      check_range(Space::shared, from, 16, Use::read);
      check_fenced(from, 16, "wgmma reads");
      note_access(Space::shared, from, 16, Use::read, Kind::asynchronous, nullptr);
    }
  };
  for (uint32_t row = 0; row < kWarpRows && product.operands.a_words == nullptr; ++row)
    check(product.operands.a, product.warp_row + row);
  for (uint32_t column = 0; column < product.operands.columns; ++column) check(product.operands.b, column);
}

// The arguments of one lane's call. The last lane of a warp to call gets the arguments of all lanes.
struct Call {
  WgmmaOperands operands;
  uint32_t* d;
};

void issue(void* const* calls) {
  Warp& warp = own_warp();
  if (!warp.fenced) fault("calls wgmma without a wgmma_fence() since it last waited");
  const auto call_of = [calls](uint32_t lane) -> const Call& {
    return *static_cast<const Call*>(calls[lane]);
  };
  for (uint32_t lane = 1; lane < kLanes; ++lane)
    if (call_of(lane).operands.a != call_of(0).operands.a ||
        call_of(lane).operands.b != call_of(0).operands.b)
      fault("calls wgmma with other descriptors in lane %u than in lane 0", lane);
  Product product = {call_of(0).operands, {}, {}, {}, warp.groups, place.thread / kLanes % 4 * kWarpRows};
  bool chained = false;
  for (const Product& earlier : warp.products) chained = chained || earlier.d[0] == call_of(0).d;
  const uint32_t count = sums_of_lane(product.operands);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const Call& call = call_of(lane);
    product.d[lane] = call.d;
    if (call.operands.a_words != nullptr) std::memcpy(product.words[lane], call.operands.a_words, 16);
    if (!chained) product.sums.insert(product.sums.end(), call.d, call.d + count);
  }
  Product& issued = warp.products.emplace_back(std::move(product));
  check_operands(issued);
  if (settings().schedule.early) {
    compute(issued);
    issued.operands.columns = 0;  // nothing is left to do
  } else {
    for (uint32_t lane = 0; lane < kLanes; ++lane) std::fill_n(issued.d[lane], count, kUnderWay);
  }
}

void commit(void* const*) { ++own_warp().groups; }
void fence(void* const*) { own_warp().fenced = true; }

void wait(void* const* calls) {
  Warp& warp = own_warp();
  const uint32_t unfinished = *static_cast<const uint32_t*>(calls[0]);
  const uint32_t finished = warp.groups > unfinished ? warp.groups - unfinished : 0;
  auto product = warp.products.begin();
  for (; product != warp.products.end() && product->group < finished; ++product)
    if (product->operands.columns > 0) compute(*product);
  warp.products.erase(warp.products.begin(), product);
  warp.fenced = false;
}

}  // namespace

uint64_t matrix_descriptor(const void* shared) {
  const auto offset = static_cast<uint64_t>(static_cast<const uint8_t*>(shared) - shared_memory());
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62, kStrideOf8Rows = (kRowsOfUnit * kRowBytes) >> 4;
  return kSwizzle128 | kStrideOf8Rows << 32 | uint64_t{1} << 16 | (offset >> 4 & 0x3FFF);
}

void begin_wgmma() {
  for (uint32_t warp = 0; warp < (place.threads + kLanes - 1) / kLanes; ++warp) {
    warps[warp].products.clear();
    warps[warp].groups = 0;
    warps[warp].fenced = false;
  }
}

void end_wgmma_of_thread() {
  if (!own_warp().products.empty())
    fault("returns while %zu wgmma of its warp are under way", own_warp().products.size());
}

void wgmma_fence() { all_lanes("wgmma_fence()", 0, nullptr, fence); }
void wgmma_commit() { all_lanes("wgmma_commit()", 0, nullptr, commit); }
void wgmma_wait(uint32_t unfinished) { all_lanes("wgmma_wait()", unfinished, &unfinished, wait); }

void wgmma(void* d, const WgmmaOperands& operands) {
  if (settings().architecture != Architecture::hopper)
    fault("calls wgmma, which only compute capability 9.0 has");
  Call call = {operands, static_cast<uint32_t*>(d)};
  all_lanes("wgmma", static_cast<uint32_t>(operands.type) << 16 | operands.columns, &call, issue);
}

}  // namespace qcts::simt
