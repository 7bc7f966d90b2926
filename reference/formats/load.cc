#include "reference/formats/load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "reference/formats/refusal.h"

namespace qcts {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kPieceBytes = 4u << 20;  // large enough that a call costs nothing, small enough that threads end together

struct Piece {
  uint64_t offset;
  std::span<std::byte> into;
};

uint64_t aligned(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// errno, or 0.
int read_piece(int fd, Piece piece) {
  while (!piece.into.empty()) {
    const ssize_t count = ::pread(fd, piece.into.data(), piece.into.size(), static_cast<off_t>(piece.offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;  // shorter than it was when it was mapped
    piece.into = piece.into.subspan(static_cast<size_t>(count));
    piece.offset += static_cast<uint64_t>(count);
  }
  return 0;
}

void read_pieces(int fd, const std::string& path, std::span<const Piece> pieces, unsigned threads) {
  std::atomic<size_t> next = 0;
  std::atomic<int> error = 0;
  const auto work = [&] {
    for (size_t i = next++; i < pieces.size() && error == 0; i = next++)
      if (const int failed = read_piece(fd, pieces[i])) error = failed;
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  if (error != 0) throw IoError(path, "read", error);
}

}  // namespace

uint64_t loaded_bytes(std::span<const std::shared_ptr<const Storage>> storages) {
  uint64_t total = 0;
  for (const auto& storage : storages) total += aligned(storage->bytes.size());
  return total;
}

std::vector<std::shared_ptr<const Storage>> load_storages(const MappedFile& file,
                                                          std::span<const std::shared_ptr<const Storage>> storages,
                                                          std::span<std::byte> memory,
                                                          std::shared_ptr<const void> owner, unsigned threads) {
  if (memory.size() < loaded_bytes(storages)) throw std::invalid_argument("load_storages: too little memory");
  std::vector<Piece> pieces;
  std::vector<std::shared_ptr<const Storage>> loaded;
  const auto whole = file.bytes();
  for (const auto& storage : storages) {
    const auto bytes = storage->bytes;
    const auto into = memory.first(bytes.size());
    memory = memory.subspan(aligned(bytes.size()));
    const bool inside = bytes.data() >= whole.data() && bytes.data() + bytes.size() <= whole.data() + whole.size();
    if (!inside && !bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
    for (size_t at = 0; inside && at < bytes.size(); at += kPieceBytes)
      pieces.push_back({static_cast<uint64_t>(bytes.data() - whole.data()) + at,
                        into.subspan(at, std::min(kPieceBytes, bytes.size() - at))});
    auto copy = std::make_shared<Storage>(*storage);
    copy->bytes = into;
    copy->owner = owner;
    loaded.push_back(std::move(copy));
  }
  const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw IoError(file.path(), "open", errno);
  const std::shared_ptr<const void> closer(nullptr, [fd](const void*) { ::close(fd); });
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw IoError(file.path(), "stat", errno);
  if (!file.is(info.st_dev, info.st_ino)) throw IoError(file.path(), "read", ESTALE);
  read_pieces(fd, file.path(), pieces, threads);
  return loaded;
}

}  // namespace qcts
