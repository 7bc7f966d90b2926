// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/request_writer.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace qcts {
namespace {

constexpr size_t kAlignment = 64;

template <class T>
T* copy_to(void* place, const T& given) {
  return static_cast<T*>(std::memcpy(place, &given, sizeof given));
}

}  // namespace

RequestWriter::RequestWriter(std::span<std::byte> message, const HostMemory& memory)
    : free_(message.subspan((sizeof(HostRequest) + kAlignment - 1) / kAlignment * kAlignment)),
      memory_(memory) {}

void* RequestWriter::take(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded > free_.size()) throw std::length_error("the arguments of a call to a host are too large");
  void* const place = free_.data();
  free_ = free_.subspan(rounded);
  return place;
}

const char* RequestWriter::text(const char* given) {
  if (given == nullptr) return nullptr;
  const size_t bytes = std::strlen(given) + 1;
  return static_cast<const char*>(std::memcpy(take(bytes), given, bytes));
}

void RequestWriter::open(const void* address, HostAccess access) {
  if (address == nullptr) return;
  const std::optional<HostBlock> block = memory_.block_of(address);
  if (!block) throw std::logic_error("a buffer that is not in the host's memory");
  const auto first = reinterpret_cast<uint64_t>(block->open.data());
  const auto found = std::ranges::find(open_, first, &OpenPages::address);
  const uint32_t writable = access == HostAccess::writes && block->access == HostAccess::writes ? 1 : 0;
  if (found == open_.end())
    open_.push_back({first, block->open.size(), writable, block->is_timed ? 1u : 0u});
  else
    found->writable |= writable;
}

const qcts_plane* RequestWriter::planes(const qcts_plane* given, uint32_t count, HostAccess access) {
  if (given == nullptr) return nullptr;
  auto* const copies = static_cast<qcts_plane*>(take(count * sizeof(qcts_plane)));
  for (uint32_t i = 0; i < count; ++i) {
    qcts_plane* const copy = copy_to(copies + i, given[i]);
    copy->name = text(given[i].name);
    open(given[i].data, access);
  }
  return copies;
}

const qcts_problem* RequestWriter::problem(const qcts_problem& given) {
  qcts_problem* const copy = copy_to(take(sizeof given), given);
  copy->scheme = text(given.scheme);
  copy->layout = text(given.layout);
  copy->activation = text(given.activation);
  copy->scheme_name = text(given.scheme_name);
  copy->device_info = nullptr;  // of this process; the host has its own
  if (given.params != nullptr) copy->params = copy_to(take(sizeof *given.params), *given.params);
  copy->planes = planes(given.planes, given.n_planes, HostAccess::reads);
  copy->out_planes = planes(given.out_planes, given.n_out_planes, HostAccess::writes);
  for (const void* address : {given.x, given.bias, given.prepared}) open(address, HostAccess::reads);
  for (const void* address : {given.y, given.workspace, static_cast<void*>(given.device_status)})
    open(address, HostAccess::writes);
  return copy;
}

const qcts_problem* const* RequestWriter::problems(std::span<const qcts_problem> given) {
  auto* const list = static_cast<const qcts_problem**>(take(given.size() * sizeof(const qcts_problem*)));
  for (size_t i = 0; i < given.size(); ++i) list[i] = problem(given[i]);
  return list;
}

const qcts_program_call* RequestWriter::program(const qcts_program_call& given) {
  qcts_program_call* const copy = copy_to(take(sizeof given), given);
  copy->path = text(given.path);
  copy->method = text(given.method);
  copy->inputs = planes(given.inputs, given.n_inputs, HostAccess::reads);
  copy->emit = nullptr;
  copy->context = nullptr;
  return copy;
}

void RequestWriter::finish(HostRequest& request) const {
  if (open_.size() > kMaxOpenPages) throw std::length_error("too many buffers for a call to a host");
  request.n_open = static_cast<uint32_t>(open_.size());
  std::ranges::copy(open_, request.open);
}

}  // namespace qcts
