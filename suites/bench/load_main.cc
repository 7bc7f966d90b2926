// SPDX-License-Identifier: BSD-3-Clause
// qcts_load: times loading and saving for suites/bench/load_bench.py. Each line of stdin is a request of
// tab-separated words; each line of stdout is the answer, one JSON object. Times are in microseconds of the
// steady clock.
// - make FILE BYTES TENSORS SEED: writes a checkpoint of random bfloat16, torch zip or safetensors by its
//   name.
// - open|touch|mapped_touch|load|check FILE: map as qcts does; map and touch each page; only the touching;
//   read into prefaulted memory; map and check every CRC.
// - plain_touch|plain_mapped_touch|plain_load|plain_check FILE: the same bytes without qcts: mmap, parallel
//   pread, one CRC over the mapping.
// - save OUT|plain_save OUT: saves what was loaded last, with our writer; the same with write, fsync, rename.
// - memcpy FILE: copies the loaded bytes in memory.
// - resident FILE|evict FILE|warm FILE: returns the share of its pages in the page cache (mincore), after
//   evicting or reading them.
// - ratio A,B,... C,D,...: median of the paired ratios A/C, B/D, ... with its 95 % interval.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "reference/formats/io/crc32.h"
#include "reference/formats/io/load.h"
#include "reference/formats/safetensors/safetensors.h"
#include "reference/formats/torch/zip.h"
#include "suites/base/memory.h"
#include "suites/timing/stats.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using Storages = std::vector<std::shared_ptr<const Storage>>;

constexpr size_t kPageBytes = 4096;
constexpr size_t kPieceBytes = 4u << 20;
const unsigned kThreads = std::max(1u, std::thread::hardware_concurrency());

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

// One parsed file of either format.
struct Opened {
  std::shared_ptr<const MappedFile> file;
  TorchZip zip;
  Safetensors safe;
  Storages storages;
};

Opened open_file(const std::string& path, bool checked) {
  Opened opened;
  opened.file = MappedFile::open(path);
  if (is_safetensors(path)) {
    opened.safe = read_safetensors(opened.file);
    for (const SafetensorsEntry& entry : opened.safe.entries) opened.storages.push_back(entry.tensor.storage);
  } else {
    TorchZipOptions options;
    options.crc = checked ? CrcPolicy::verify : CrcPolicy::skip;
    opened.zip = read_torch_zip(opened.file, options);
    opened.storages = opened.zip.storages;
  }
  return opened;
}

// Touching is the fastest way to map the pages: one fault maps sixteen, whereas MADV_POPULATE_READ and
// MAP_POPULATE go page by page and take three times as long (Linux 6.18).
uint64_t touch(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (size_t at = 0; at < bytes.size(); at += kPageBytes) sum += std::to_integer<uint64_t>(bytes[at]);
  return sum;
}

class Plain {
 public:
  explicit Plain(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
    size_ = static_cast<size_t>(::lseek(fd_, 0, SEEK_END));
  }
  ~Plain() {
    if (mapping_ != nullptr) ::munmap(mapping_, size_);
    ::close(fd_);
  }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  int fd() const { return fd_; }
  size_t size() const { return size_; }
  std::span<const std::byte> map() {
    mapping_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (mapping_ == MAP_FAILED) throw std::runtime_error("mmap");
    return {static_cast<const std::byte*>(mapping_), size_};
  }
  double resident_share() {
    const auto bytes = map();
    std::vector<unsigned char> pages((size_ + kPageBytes - 1) / kPageBytes);
    if (::mincore(mapping_, size_, pages.data()) != 0) throw std::runtime_error("mincore");
    size_t resident = 0;
    for (unsigned char page : pages) resident += page & 1;
    return bytes.empty() ? 1 : static_cast<double>(resident) / static_cast<double>(pages.size());
  }

 private:
  int fd_;
  size_t size_ = 0;
  void* mapping_ = nullptr;
};

// malloc returns memory 16 bytes past a page boundary, and Zen 3 copies from a page-aligned source to that
// offset at a third of its speed, which would slow down only the plain read.
class PageAligned {
 public:
  explicit PageAligned(size_t size)
      : size_((size + kPageBytes - 1) / kPageBytes * kPageBytes),
        data_(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, size_))) {
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_.get(), 0, size_);
  }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  size_t size_;
  std::unique_ptr<std::byte, Free> data_;
};

void parallel_read(const Plain& file, std::span<std::byte> into) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t at = kPieceBytes * next++; at < into.size(); at = kPieceBytes * next++) {
      auto piece = into.subspan(at, std::min(kPieceBytes, into.size() - at));
      while (!piece.empty()) {
        const ssize_t count =
            ::pread(file.fd(), piece.data(), piece.size(), static_cast<off_t>(piece.data() - into.data()));
        if (count <= 0) throw std::runtime_error("pread");
        piece = piece.subspan(static_cast<size_t>(count));
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < kThreads; ++i) helpers.emplace_back(work);
  work();
}

void plain_save(const std::string& path, std::span<const std::byte> bytes) {
  const std::string temporary = path + ".plain";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) throw std::runtime_error(temporary + ": " + std::strerror(errno));
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count <= 0) throw std::runtime_error("write");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  if (::fsync(fd) != 0 || ::close(fd) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
    throw std::runtime_error("save");
}

class Server {
 public:
  Json answer(const std::vector<std::string>& words) {
    const std::string& verb = words.at(0);
    if (verb == "make") return make(words);
    if (verb == "ratio") return ratio(words);
    if (verb == "evict") {  // mapped pages stay in the cache
      opened_ = {};
      loaded_.clear();
    }
    if (verb == "resident" || verb == "evict" || verb == "warm") return cache(verb, words.at(1));
    const auto memory_before = begin_memory();
    const auto start = Clock::now();
    const double us = run(verb, words.at(1), start);
    return {{"us", us}, {"peak_bytes", peak_resident_bytes().value_or(0)}, {"before_bytes", memory_before}};
  }

 private:
  static uint64_t begin_memory() {
    reset_peak_resident();
    return resident_bytes().value_or(0);
  }

  double run(const std::string& verb, const std::string& path, Clock::time_point start) {
    if (verb == "open" || verb == "touch" || verb == "mapped_touch" || verb == "check") {
      const Opened opened = open_file(path, verb == "check");
      const auto mapped = Clock::now();
      if (verb.ends_with("touch"))
        for (const auto& storage : opened.storages) sink_ = sink_ + touch(storage->bytes);
      return microseconds_since(verb == "mapped_touch" ? mapped : start);
    }
    if (verb == "plain_touch" || verb == "plain_mapped_touch" || verb == "plain_check") {
      Plain plain(path);
      const auto bytes = plain.map();
      const auto mapped = Clock::now();
      sink_ = sink_ + (verb == "plain_check" ? crc32_of(bytes) : touch(bytes));
      return microseconds_since(verb == "plain_mapped_touch" ? mapped : start);
    }
    if (verb == "load" || verb == "plain_load") return load(verb, path);
    if (verb == "save" || verb == "plain_save") return save(verb, path);
    if (verb == "memcpy") {
      if (loaded_size_ == 0) load("load", path);
      fault_in(copy_, loaded_size_);
      const auto begin = Clock::now();
      std::memcpy(copy_->bytes().data(), memory_->bytes().data(), loaded_size_);
      return microseconds_since(begin);
    }
    throw std::invalid_argument("unknown request " + verb);
  }

  // Prefaulted memory, so that reading is timed and not the kernel's clearing of pages.
  static void fault_in(std::shared_ptr<PageAligned>& memory, size_t size) {
    if (memory == nullptr || memory->size() < size) memory = std::make_shared<PageAligned>(size);
  }

  double load(const std::string& verb, const std::string& path) {
    Plain plain(path);
    fault_in(memory_, plain.size() + (1u << 20));
    const auto start = Clock::now();
    if (verb == "plain_load") {
      parallel_read(plain, memory_->bytes().first(plain.size()));
      return microseconds_since(start);
    }
    opened_ = open_file(path, false);
    loaded_ = load_storages(*opened_.file, opened_.storages, memory_->bytes(), memory_, kThreads);
    const double us = microseconds_since(start);
    loaded_size_ = loaded_bytes(opened_.storages);
    return us;
  }

  // The plain save writes the same bytes as the file that our writer makes.
  double save(const std::string& verb, const std::string& path) {
    if (loaded_.empty()) throw std::invalid_argument("load first");
    if (verb == "plain_save") {
      fault_in(copy_, opened_.file->bytes().size());
      const auto bytes = copy_->bytes().first(opened_.file->bytes().size());
      std::memcpy(bytes.data(), opened_.file->bytes().data(), bytes.size());
      const auto start = Clock::now();
      plain_save(path, bytes);
      return microseconds_since(start);
    }
    const auto start = Clock::now();
    if (is_safetensors(path)) {
      std::vector<std::pair<std::string, Tensor>> tensors;
      for (size_t i = 0; i < loaded_.size(); ++i) {
        tensors.emplace_back(opened_.safe.entries[i].name, opened_.safe.entries[i].tensor);
        tensors.back().second.storage = loaded_[i];
      }
      write_file_atomically(path,
                            [&](ByteSink& out) { write_safetensors(tensors, opened_.safe.metadata, out); });
    } else {
      write_file_atomically(
          path, [&](ByteSink& out) { write_torch_zip(opened_.zip.prefix, opened_.zip.root, loaded_, out); });
    }
    return microseconds_since(start);
  }

  static Json make(const std::vector<std::string>& words) {
    const uint64_t bytes = std::stoull(words.at(2)), count = std::stoull(words.at(3));
    const auto rows = static_cast<int64_t>(bytes / count / 2 / 1024);
    uint64_t state = std::stoull(words.at(4));
    std::vector<std::pair<std::string, Tensor>> tensors;
    pickle::Ref root = pickle::dict();
    Storages storages;
    for (uint64_t i = 0; i < count; ++i) {
      std::vector<std::byte> data(static_cast<size_t>(rows) * 2048);
      for (size_t at = 0; at < data.size(); at += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t value = (state ^ (state >> 29)) & 0x3fff3fff3fff3fff;  // finite in bfloat16
        std::memcpy(data.data() + at, &value, 8);
      }
      const std::string name = "model.layers." + std::to_string(i) + ".weight";
      tensors.emplace_back(name, make_tensor(DType::bfloat16, {rows, 1024}, std::move(data), name));
      storages.push_back(tensors.back().second.storage);
      root->pairs.emplace_back(pickle::string(name), tensor_node(tensors.back().second, std::to_string(i)));
    }
    const std::string& path = words.at(1);
    write_file_atomically(path, [&](ByteSink& out) {
      if (is_safetensors(path))
        write_safetensors(tensors, {{"format", "pt"}}, out);
      else
        write_torch_zip("archive", root, storages, out);
    });
    return {{"tensors", count}, {"tensor_bytes", rows * 2048 * static_cast<int64_t>(count)}};
  }

  Json cache(const std::string& verb, const std::string& path) {
    Plain plain(path);
    if (verb == "evict") ::posix_fadvise(plain.fd(), 0, 0, POSIX_FADV_DONTNEED);
    if (verb == "warm") sink_ = sink_ + touch(plain.map());
    Plain again(path);
    return {{"resident", again.resident_share()}};
  }

  static Json ratio(const std::vector<std::string>& words) {
    const auto numbers = [](const std::string& text) {
      std::vector<double> values;
      std::istringstream stream(text);
      for (std::string word; std::getline(stream, word, ',');) values.push_back(std::stod(word));
      return values;
    };
    const auto a = numbers(words.at(1)), b = numbers(words.at(2));
    const Interval interval = ratio_interval(a, b, block_length(a.size()), 0.95, 1);
    return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}, {"samples", a.size()}};
  }

  Opened opened_;
  Storages loaded_;
  std::shared_ptr<PageAligned> memory_, copy_;
  size_t loaded_size_ = 0;
  volatile uint64_t sink_ = 0;  // keeps reads from being optimized away
};

}  // namespace
}  // namespace qcts

int main() {
  qcts::Server server;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> words;
    std::istringstream stream(line);
    for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
    nlohmann::ordered_json answer;
    try {
      answer = server.answer(words);
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}
