// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/io/load.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace qcts {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kPieceBytes =
    4u << 20;  // large enough to hide the call's cost, small enough to balance the threads

struct Piece {
  uint64_t offset;
  std::span<std::byte> into;
};

uint64_t aligned(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

void read_pieces(const MappedFile& file, std::span<const Piece> pieces, unsigned threads) {
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::once_flag failed;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < pieces.size(); i = next++) file.read(pieces[i].offset, pieces[i].into);
    } catch (...) {
      next = pieces.size();
      std::call_once(failed, [&] { failure = std::current_exception(); });
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace

uint64_t loaded_bytes(std::span<const std::shared_ptr<const Storage>> storages) {
  uint64_t total = 0;
  for (const auto& storage : storages) total += aligned(storage->bytes.size());
  return total;
}

std::vector<std::shared_ptr<const Storage>> load_storages(
    const MappedFile& file, std::span<const std::shared_ptr<const Storage>> storages,
    std::span<std::byte> memory, std::shared_ptr<const void> owner, unsigned threads) {
  if (memory.size() < loaded_bytes(storages)) throw std::invalid_argument("load_storages: too little memory");
  std::vector<Piece> pieces;
  std::vector<std::shared_ptr<const Storage>> loaded;
  const auto whole = file.bytes();
  for (const auto& storage : storages) {
    const auto bytes = storage->bytes;
    const auto into = memory.first(bytes.size());
    memory = memory.subspan(aligned(bytes.size()));
    const bool inside =
        bytes.data() >= whole.data() && bytes.data() + bytes.size() <= whole.data() + whole.size();
    if (!inside && !bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
    for (size_t at = 0; inside && at < bytes.size(); at += kPieceBytes)
      pieces.push_back({static_cast<uint64_t>(bytes.data() - whole.data()) + at,
                        into.subspan(at, std::min(kPieceBytes, bytes.size() - at))});
    auto copy = std::make_shared<Storage>(*storage);
    copy->bytes = into;
    copy->owner = owner;
    loaded.push_back(std::move(copy));
  }
  read_pieces(file, pieces, threads);
  return loaded;
}

}  // namespace qcts
