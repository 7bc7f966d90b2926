// What the stopwatch times: a kernel on rotating copies of one weight, or a probe that only moves the same
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "suites/kernel_run.h"

namespace qcts {

// Memory at a 2 MiB boundary, huge pages asked for, every page touched.
class BigBuffer {
 public:
  explicit BigBuffer(size_t bytes);
  ~BigBuffer();
  BigBuffer(BigBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  BigBuffer& operator=(BigBuffer&&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual void call(size_t copy) = 0;  // copy < copies()
  virtual size_t copies() const = 0;
};

// A kernel on `copies` copies of its weight (planes, and what prepare() made of them), one x and one y.
class KernelContender final : public Contender {
 public:
  KernelContender(const qcts_kernel& kernel, const KernelInput& input, uint32_t threads);
  Support supports() const;
  // Once, before the first call and only when supports() says yes. Throws ProviderFault when prepare() fails,
  // std::bad_alloc.
  void make_ready(size_t copies);

  void call(size_t copy) override;  // throws ProviderFault unless QCTS_OK
  size_t copies() const override { return problems_.size(); }
  KernelAnswer answer() const;
  uint64_t weight_bytes() const { return weight_bytes_; }  // of one copy: what a call reads
  uint64_t moved_bytes() const { return weight_bytes_ + io_bytes_; }
  uint64_t written_bytes() const { return written_bytes_; }
  uint64_t prepared_bytes() const { return prepared_bytes_; }

 private:
  void add_planes(size_t copies);

  const qcts_kernel& kernel_;
  const KernelInput& input_;
  std::string op_, family_, scheme_name_, layout_, activation_;
  std::vector<PlaneSpec> specs_, out_specs_;
  std::vector<BigBuffer> blocks_;
  std::vector<std::vector<qcts_plane>> planes_;
  std::vector<qcts_plane> out_planes_;
  std::vector<qcts_problem> problems_;
  qcts_problem base_{};
  uint64_t weight_bytes_ = 0, io_bytes_ = 0, written_bytes_ = 0, prepared_bytes_ = 0;
  std::byte* y_ = nullptr;
  std::byte* workspace_ = nullptr;
  size_t y_bytes_ = 0;
};

// The machine's own pace: reads `read_bytes` with software prefetch and writes `write_bytes`, on rotating
// copies.
class StreamProbe final : public Contender {
 public:
  StreamProbe(uint64_t read_bytes, uint64_t write_bytes, size_t copies);
  void call(size_t copy) override;
  size_t copies() const override { return copies_; }
  uint64_t sum() const { return sum_; }

 private:
  size_t read_words_, copies_;
  BigBuffer read_, write_;
  uint64_t sum_ = 0;
};

// As many copies of `bytes` as it takes to leave the caches twice over, within `most_bytes`; at least 1.
// l3_bytes 0: 64 MiB assumed.
size_t cold_copies(uint64_t bytes, uint64_t l3_bytes, uint64_t most_bytes);
// A quarter of the memory that is available now, at most 1 GiB.
uint64_t copy_budget_bytes();

}  // namespace qcts
