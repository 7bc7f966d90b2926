#include "suites/latency/contender.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "kernels/machine/stream.h"
#include "kernels/machine/thread_pool.h"

namespace qcts {
namespace {

constexpr size_t kHugePageBytes = size_t{1} << 21;
constexpr size_t kProbeTrials = 5;  // of each way to read, before the fastest is kept

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

double us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double Contender::time_us(size_t first, size_t calls, bool rotate) {
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < calls; ++i) call(rotate ? (first + i) % copies() : first);
  return us_since(start) / static_cast<double>(calls);
}

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
      family_(input.scheme ? input.scheme->family() : kernel.scheme),
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
    if (!x_rotates()) base_.x = x_ = block(input.x);
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
  if (x_rotates()) weight_bytes_ += input.x.size();
  remote_ = RemoteProvider::kernel_of(kernel);
  add_planes(1);
}

uint64_t KernelContender::weight_bytes() const {
  return prepared_bytes_ == 0 ? weight_bytes_ : std::min(weight_bytes_, prepared_bytes_);
}

void KernelContender::add_planes(size_t copies) {
  uint64_t stride = 0;
  for (const Plane& plane : input_.planes) stride += round_up(plane.bytes.size(), 64);
  if (x_rotates()) stride += round_up(input_.x.size(), 64);
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
    if (x_rotates()) {
      std::memcpy(place, input_.x.data(), input_.x.size());
      problem.x = place;
      if (problems_.empty()) x_ = place;
    }
    problems_.push_back(problem);
  }
}

void KernelContender::make_ready(size_t copies) {
  if (remote_) {
    remote_copies_ = copies;
    return;
  }
  if (copies > problems_.size()) add_planes(copies - problems_.size());
  if (const uint64_t bytes = provider_workspace_bytes(kernel_, problems_.front());
      bytes != 0 && !workspace_) {
    workspace_ = blocks_.emplace_back(bytes).data();
    for (qcts_problem& problem : problems_) {
      problem.workspace = workspace_;
      problem.workspace_bytes = bytes;
    }
  }
  prepare_all();
}

uint64_t KernelContender::ask_prepared_bytes() {
  if (!remote_) prepared_bytes_ = provider_prepared_bytes(kernel_, problems_.front());
  return prepared_bytes_;
}

void KernelContender::prepare_one(const qcts_problem& problem, std::byte* place) {
  qcts_problem at_load = problem;
  at_load.x = at_load.bias = nullptr;
  at_load.y = nullptr;
  const auto start = std::chrono::steady_clock::now();
  if (provider_prepare(kernel_, at_load, place) != QCTS_OK)
    throw ProviderFault("prepare() failed on a problem that supports() takes");
  const double us = us_since(start);
  prepare_us_ = prepare_us_ == 0 ? us : std::min(prepare_us_, us);
}

// What two calls wrote alike holds no address of its own, so the other copies are copies: beside a cache of
// 300 MiB they are 70 of 4096 x 4096 int4, and to prepare each took longer than all that is timed.
void KernelContender::prepare_all() {
  if (ask_prepared_bytes() == 0) return;
  const uint64_t stride = round_up(prepared_bytes_, 64);
  std::byte* const first = prepared_ = blocks_.emplace_back(stride * problems_.size()).data();
  bool alike = false;
  for (size_t i = 0; i < problems_.size(); ++i) {
    std::byte* place = first + i * stride;
    if (alike)
      std::memcpy(place, first, prepared_bytes_);
    else
      prepare_one(problems_[i], place);
    if (i == 1) alike = std::memcmp(place, first, prepared_bytes_) == 0;
    problems_[i].prepared = place;
    problems_[i].prepared_bytes = prepared_bytes_;
  }
}

Support KernelContender::supports() const { return provider_supports(kernel_, problems_.front()); }

void KernelContender::call(size_t copy) {
  if (provider_run(kernel_, problems_[copy]) != QCTS_OK)
    throw ProviderFault("run() failed on a problem that supports() takes");
}

void KernelContender::stir_x() {
  if (op_ != "linear") return;
  const int64_t element = stirred_++ % base_.k, bytes = base_.ldx_bytes / base_.k;
  for (int64_t m = 0; m < base_.m; ++m)
    x_[m * base_.ldx_bytes + (element + 1) * bytes - 1] ^= std::byte{0x80};
}

void KernelContender::copy_x_to(std::vector<std::byte>& x) const {
  if (op_ == "linear") x.assign(x_, x_ + x.size());
}

double KernelContender::time_us(size_t first, size_t calls, bool rotate) {
  if (!remote_) {
    stir_x();
    return Contender::time_us(first, calls, rotate);
  }
  if (!remote_timing_) remote_->owner->begin_timing(*remote_, problems_.front(), remote_copies_);
  remote_timing_ = true;
  return remote_->owner->time_us(first, calls, rotate);
}

KernelAnswer KernelContender::answer() {
  if (remote_timing_) provider_measures_ = remote_->owner->end_timing();
  remote_timing_ = false;
  KernelAnswer answer;
  if (y_) answer.y.assign(y_, y_ + y_bytes_);
  for (size_t i = 0; i < out_specs_.size(); ++i) {
    const std::byte* data = static_cast<const std::byte*>(out_planes_[i].data);
    answer.planes.push_back(
        {out_specs_[i].name, out_specs_[i].dtype, out_specs_[i].shape, {data, data + out_specs_[i].bytes()}});
  }
  return answer;
}

void KernelContender::read_input_again() {
  if (x_) std::memcpy(x_, input_.x.data(), input_.x.size());
  for (size_t i = 0; i < input_.planes.size(); ++i)
    std::copy(input_.planes[i].bytes.begin(), input_.planes[i].bytes.end(),
              static_cast<std::byte*>(planes_[0][i].data));
  if (prepared_) prepare_one(problems_[0], prepared_);
  constexpr int kSpoiled = 0xFF;
  if (y_) std::memset(y_, kSpoiled, y_bytes_);
  for (size_t i = 0; i < out_specs_.size(); ++i)
    std::memset(out_planes_[i].data, kSpoiled, out_specs_[i].bytes());
}

StreamProbe::StreamProbe(uint64_t read_bytes, uint64_t write_bytes, size_t copies, uint32_t threads)
    : read_lines_(round_up(read_bytes, kLineBytes) / kLineBytes),
      copies_(copies),
      threads_(threads),
      read_(read_lines_ * kLineBytes * copies),
      write_(write_bytes),
      loop_(&stream_loops().front()) {
  const StreamLoop* fastest = loop_;
  double least_us = 0;
  for (const StreamLoop& loop : stream_loops()) {
    loop_ = &loop;
    std::vector<double> us;
    for (size_t i = 0; i < kProbeTrials; ++i) us.push_back(time_us(i % copies_, 1, true));
    std::nth_element(us.begin(), us.begin() + kProbeTrials / 2, us.end());
    if (fastest != &loop && us[kProbeTrials / 2] >= least_us) continue;
    fastest = &loop, least_us = us[kProbeTrials / 2];
  }
  loop_ = fastest;
}

void StreamProbe::call(size_t copy) {
  const std::byte* from = read_.data() + copy * read_lines_ * kLineBytes;
  const size_t copied_lines = std::min(read_lines_, write_.size() / kLineBytes);
  copy_lines(from, copied_lines);
  read_rest(from + copied_lines * kLineBytes, read_lines_ - copied_lines);
  fill_rest(copied_lines * kLineBytes);
}

void StreamProbe::copy_lines(const std::byte* from, size_t lines) {
  const std::pair<const std::byte*, std::byte*> ends = {from, write_.data()};
  const auto copy = [](void* context, int64_t first, int64_t last) {
    const auto& [source, target] = *static_cast<const std::pair<const std::byte*, std::byte*>*>(context);
    std::memcpy(target + first * kLineBytes, source + first * kLineBytes, (last - first) * kLineBytes);
  };
  ThreadPool::shared().run(threads_, static_cast<int64_t>(lines), 64, copy,
                           const_cast<void*>(static_cast<const void*>(&ends)));
}

void StreamProbe::read_rest(const std::byte* from, size_t lines) {
  struct Share {
    const std::byte* lines;
    const StreamLoop& loop;
    std::atomic<uint64_t>& sum;
  } share{from, *loop_, sum_};
  const auto read = [](void* context, int64_t first, int64_t last) {
    const Share& all = *static_cast<const Share*>(context);
    all.sum.fetch_add(all.loop.read(all.lines + first * kLineBytes, static_cast<size_t>(last - first)),
                      std::memory_order_relaxed);
  };
  ThreadPool::shared().run(threads_, static_cast<int64_t>(lines), 64, read, &share);
}

void StreamProbe::fill_rest(size_t from) {
  const auto fill = [](void* context, int64_t first, int64_t last) {
    std::memset(static_cast<std::byte*>(context) + first, 1, static_cast<size_t>(last - first));
  };
  ThreadPool::shared().run(threads_, static_cast<int64_t>(write_.size() - from), 4096, fill,
                           write_.data() + from);
}

PeakProbe::PeakProbe(const PeakLoop& loop, uint64_t operations, uint32_t threads)
    : loop_(loop), threads_(threads), turns_(operations / (loop.operations * threads) + 1) {}

void PeakProbe::call(size_t) {
  const auto share = [](void* context, int64_t, int64_t) {
    const PeakProbe& probe = *static_cast<const PeakProbe*>(context);
    probe.loop_.run(probe.turns_);
  };
  ThreadPool::shared().run(threads_, threads_, 1, share, this);
}

size_t cold_copies(uint64_t bytes, uint64_t l3_bytes, uint64_t most_bytes) {
  const uint64_t wanted = 2 * (l3_bytes == 0 ? uint64_t{64} << 20 : l3_bytes);
  const uint64_t copies = round_up(wanted, std::max<uint64_t>(bytes, 1)) / std::max<uint64_t>(bytes, 1) + 1;
  const uint64_t most = std::max<uint64_t>(most_bytes / std::max<uint64_t>(bytes, 1), 1);
  const uint64_t count = std::clamp<uint64_t>(copies + 1, 1, std::min<uint64_t>(most, 4095));
  return static_cast<size_t>(count % 2 == 0 ? count - 1 : count);
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
