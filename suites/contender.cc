#include "suites/contender.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace qcts {
namespace {

constexpr size_t kHugePageBytes = size_t{1} << 21;

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

BigBuffer::BigBuffer(size_t bytes) : bytes_(bytes) {
  const size_t rounded = round_up(std::max<size_t>(bytes, 1), kHugePageBytes);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kHugePageBytes, rounded));
  if (!data_) throw std::bad_alloc();
  ::madvise(data_, rounded, MADV_HUGEPAGE);
  std::memset(data_, 0, rounded);
}

BigBuffer::~BigBuffer() { std::free(data_); }

KernelContender::KernelContender(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads)
    : kernel_(kernel),
      input_(input),
      op_(input.op),
      family_(kernel.scheme),
      layout_(input.layout),
      activation_(input.activation) {
  base_.struct_size = sizeof base_;
  base_.op = op_from_name(op_);
  base_.threads = threads;
  base_.scheme = family_.c_str();
  scheme_name_ = input.scheme ? input.scheme->name() : std::string_view(family_);
  base_.scheme_name = scheme_name_.c_str();
  base_.layout = layout_.c_str();
  base_.activation = activation_.c_str();
  base_.m = input.m;
  base_.n = input.weight.n;
  base_.k = input.weight.k;
  base_.group = input.scheme ? input.scheme->group() : 0;
  base_.w_dtype = abi_dtype(input.weight.dtype);
  const auto block = [this](const std::vector<std::byte>& bytes) {
    blocks_.emplace_back(bytes.size());
    if (!bytes.empty()) std::memcpy(blocks_.back().data(), bytes.data(), bytes.size());
    io_bytes_ += bytes.size();
    return blocks_.back().data();
  };
  if (!input.x.empty()) {
    base_.x = block(input.x);
    base_.x_dtype = abi_dtype(input.x_dtype);
    base_.ldx_bytes = input.weight.k * dtype_bytes(input.x_dtype);
  }
  if (!input.bias.empty()) {
    base_.bias = block(input.bias);
    base_.bias_dtype = abi_dtype(input.bias_dtype);
  }
  if (op_ == "linear" || op_ == "dequantize") {
    const DType dtype = op_ == "linear" ? input.y_dtype : input.weight.dtype;
    const int64_t rows = op_ == "linear" ? input.m : input.weight.n,
                  cols = op_ == "linear" ? input.weight.n : input.weight.k;
    y_bytes_ = static_cast<size_t>(rows * cols) * dtype_bytes(dtype);
    y_ = block(std::vector<std::byte>(y_bytes_));
    base_.y = y_;
    base_.y_dtype = abi_dtype(dtype);
    base_.ldy_bytes = cols * dtype_bytes(dtype);
    written_bytes_ = y_bytes_;
  } else {
    out_specs_ = output_specs(input);
    for (const PlaneSpec& spec : out_specs_) {
      out_planes_.push_back(abi_plane(spec, block(std::vector<std::byte>(spec.bytes()))));
      written_bytes_ += spec.bytes();
    }
    base_.out_planes = out_planes_.data();
    base_.n_out_planes = static_cast<uint32_t>(out_planes_.size());
  }
  for (const Plane& plane : input.planes) {
    specs_.push_back({plane.name, plane.dtype, plane.shape});
    weight_bytes_ += plane.bytes.size();
  }
  add_planes(1);
}

void KernelContender::add_planes(size_t copies) {
  uint64_t stride = 0;
  for (const Plane& plane : input_.planes) stride += round_up(plane.bytes.size(), 64);
  blocks_.emplace_back(stride * copies);
  for (size_t c = 0; c < copies; ++c) {
    std::byte* place = blocks_.back().data() + c * stride;
    std::vector<qcts_plane>& planes = planes_.emplace_back();
    for (size_t i = 0; i < input_.planes.size(); ++i) {
      const Plane& plane = input_.planes[i];
      if (!plane.bytes.empty()) std::memcpy(place, plane.bytes.data(), plane.bytes.size());
      planes.push_back(abi_plane(specs_[i], place));
      place += round_up(plane.bytes.size(), 64);
    }
    qcts_problem problem = base_;
    problem.planes = planes.data();
    problem.n_planes = static_cast<uint32_t>(planes.size());
    problems_.push_back(problem);
  }
}

void KernelContender::make_ready(size_t copies) {
  if (copies > problems_.size()) add_planes(copies - problems_.size());
  if (const uint64_t bytes = provider_workspace_bytes(kernel_, problems_.front());
      bytes != 0 && !workspace_) {
    workspace_ = blocks_.emplace_back(bytes).data();
    for (qcts_problem& problem : problems_) {
      problem.workspace = workspace_;
      problem.workspace_bytes = bytes;
    }
  }
  prepared_bytes_ = provider_prepared_bytes(kernel_, problems_.front());
  if (prepared_bytes_ == 0) return;
  const uint64_t stride = round_up(prepared_bytes_, 64);
  std::byte* place = blocks_.emplace_back(stride * problems_.size()).data();
  for (qcts_problem& problem : problems_) {
    if (provider_prepare(kernel_, problem, place) != QCTS_OK)
      throw ProviderFault("prepare() failed on a problem that supports() takes");
    problem.prepared = place;
    problem.prepared_bytes = prepared_bytes_;
    place += stride;
  }
}

Support KernelContender::supports() const { return provider_supports(kernel_, problems_.front()); }

void KernelContender::call(size_t copy) {
  if (provider_run(kernel_, problems_[copy]) != QCTS_OK)
    throw ProviderFault("run() failed on a problem that supports() takes");
}

KernelAnswer KernelContender::answer() const {
  KernelAnswer answer;
  if (y_) answer.y.assign(y_, y_ + y_bytes_);
  for (size_t i = 0; i < out_specs_.size(); ++i) {
    const std::byte* data = static_cast<const std::byte*>(out_planes_[i].data);
    answer.planes.push_back(
        {out_specs_[i].name, out_specs_[i].dtype, out_specs_[i].shape, {data, data + out_specs_[i].bytes()}});
  }
  return answer;
}

StreamProbe::StreamProbe(uint64_t read_bytes, uint64_t write_bytes, size_t copies)
    : read_words_(round_up(read_bytes, 64) / 8),
      copies_(copies),
      read_(read_words_ * 8 * copies),
      write_(write_bytes) {}

void StreamProbe::call(size_t copy) {
  constexpr size_t kLineWords = 8, kAheadWords = 64 * kLineWords;
  const uint64_t* words = reinterpret_cast<const uint64_t*>(read_.data()) + copy * read_words_;
  uint64_t sums[kLineWords] = {};
  for (size_t i = 0; i < read_words_; i += kLineWords) {
    __builtin_prefetch(words + i + kAheadWords, 0, 0);
    for (size_t j = 0; j < kLineWords; ++j) sums[j] += words[i + j];
  }
  for (const uint64_t sum : sums) sum_ += sum;
  if (write_.size() != 0) std::memset(write_.data(), static_cast<int>(sum_ & 0x7f) + 1, write_.size());
}

size_t cold_copies(uint64_t bytes, uint64_t l3_bytes, uint64_t most_bytes) {
  const uint64_t wanted = 2 * (l3_bytes == 0 ? uint64_t{64} << 20 : l3_bytes);
  const uint64_t copies = round_up(wanted, std::max<uint64_t>(bytes, 1)) / std::max<uint64_t>(bytes, 1);
  const uint64_t most = std::max<uint64_t>(most_bytes / std::max<uint64_t>(bytes, 1), 1);
  return static_cast<size_t>(std::clamp<uint64_t>(copies + 1, 1, std::min<uint64_t>(most, 4096)));
}

uint64_t copy_budget_bytes() {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  std::ifstream in("/proc/meminfo");
  std::string word;
  while (in >> word) {
    uint64_t kib = 0;
    if (word == "MemAvailable:" && in >> kib) return std::min(kMost, kib * 1024 / 4);
  }
  return kMost / 4;
}

}  // namespace qcts
