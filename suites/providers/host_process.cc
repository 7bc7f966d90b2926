// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/host_process.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kernels/fakecuda/fake_driver.h"
#include "suites/base/paths.h"
#include "suites/host/words.h"
#include "suites/providers/handshake.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kEnvironment = {
    // Kernels are loaded with their library: one that is loaded in its first call may wait for the device.
    "CUDA_MODULE_LOADING=EAGER",
    // A kernel goes by its problem's number of threads, whatever the environment says.
    "OMP_NUM_THREADS=4"};

// Both ends are above the descriptors that the host gets by number.
struct LanePipe {
  int read_end, write_end;
  LanePipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    read_end = moved_up(ends[0]);
    write_end = moved_up(ends[1]);
  }
};

bool computes_on_device(HostCall call) {
  return call == HostCall::run || call == HostCall::prepare || call == HostCall::capture ||
         call == HostCall::replay;
}

// A host whose work on the device failed computes no more.
HostAnswer checked(HostAnswer answer) {
  if (answer.outcome == HostOutcome::device_fault) throw OverrunFault(answer.text);
  return answer;
}

// An input is never written to, so an access outside it is a read.
std::string overrun_text(const HostBlock& block, const std::byte* address) {
  const std::byte* const end = block.open.data() + block.open.size();
  const std::string verb = block.access == HostAccess::reads ? "read " : "read or wrote ";
  if (address >= end)
    return verb + "past the end of " + block.name + ", at +" + std::to_string(address - end);
  return verb + "before the start of " + block.name + ", at -" + std::to_string(block.open.data() - address);
}

}  // namespace

HostProcess::~HostProcess() {
  for (const int fd : {lanes_[1].request_fd, lanes_[1].answer_fd})
    if (fd >= 0) ::close(fd);
}

std::string HostProcess::device_word() const {
  if (!device_) return "cpu";
  return std::to_string(device_->device.ordinal()) + (device_->memory.layout().has_guards ? "+guards" : "");
}

HostProcess::HostProcess(const std::filesystem::path& library, const CageRequest& cage,
                         uint64_t memory_limit_bytes, std::optional<int> device,
                         const RepeatedChunk& repeated, const std::vector<std::string>& environment)
    : device_(device ? std::make_unique<OnDevice>(*device, windows_) : nullptr),
      memory_(windows_, device_ ? std::optional(device_->memory.layout()) : std::nullopt) {
  const LanePipe requests, answers;
  lanes_[1].request_fd = requests.write_end;
  lanes_[1].answer_fd = answers.read_end;
  ::fcntl(answers.read_end, F_SETFL, O_NONBLOCK);
  char address[32];
  std::snprintf(address, sizeof address, "%llx",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(windows_.inputs())));
  std::vector<std::string> words = {address,
                                    std::to_string(windows_.bytes()),
                                    std::to_string(repeated.offset),
                                    std::to_string(repeated.bytes),
                                    std::to_string(repeated.count),
                                    std::to_string(memory_limit_bytes),
                                    cage.is_wanted ? "caged" : "free",
                                    device_word(),
                                    cage.scratch.string(),
                                    library.string()};
  for (const std::filesystem::path& folder : cage.covered) words.push_back(folder.string());
  std::vector<InheritedFd> inherited = {{windows_.inputs_fd(), kInputsFd},
                                        {windows_.outputs_fd(), kOutputsFd},
                                        {requests.read_end, kSecondRequestFd},
                                        {answers.write_end, kSecondAnswerFd}};
  for (int to = kFirstDeviceFd;
       device_ && to < kFirstDeviceFd + static_cast<int>(device_->memory.fds().size()); ++to)
    inherited.push_back({device_->memory.fds()[static_cast<size_t>(to - kFirstDeviceFd)], to});
  std::vector<std::string> settings = kEnvironment;
  settings.insert(settings.end(), environment.begin(), environment.end());
  child_ = std::make_unique<ChildProcess>(program_path().parent_path() / "qcts_host", words,
                                          environment_with(settings), "/proc/self/fd/2", ChildRole::host,
                                          inherited);
  ::close(requests.read_end);
  ::close(answers.write_end);
  windows_.close_fds();
  if (device_) device_->memory.close_fds();
}

std::shared_ptr<const Handshake> HostProcess::read_handshake(std::shared_ptr<const Handshake> known) {
  for (bool open = true;;) {
    if (const auto line = child_->next_line()) {
      if (!known || known->line != *line)
        known.reset(new Handshake{*line, Json::parse(*line, nullptr, false)});
      const Json& table = known->table;
      pid_ = last_descendant(child_->pid());  // the child may be its launcher (suites/host/namespaces.h)
      if (device_ && table.is_object() && table.contains("device_memory"))
        device_first_ = table["device_memory"].get<std::array<CuAddress, 2>>();
      if (table.is_object()) return known;
      throw std::runtime_error("its host's first line is not a handshake: " + line->substr(0, 100));
    }
    if (!open) throw HostFailure{"its worker ended before the handshake: " + child_->wait()};
    pollfd poll_fd{child_->answer_fd(), POLLIN, 0};
    ::poll(&poll_fd, 1, -1);
    open = child_->read_available();
  }
}

size_t HostProcess::take_lane() {
  std::unique_lock lock(mutex_);
  for (;;) {
    for (size_t i = 0; i < kLanes; ++i)
      if (!lanes_[i].is_busy) {
        lanes_[i].is_busy = true;
        return i;
      }
    lane_is_free_.wait(lock);
  }
}

void HostProcess::give_back_lane(size_t lane) {
  {
    const std::lock_guard lock(mutex_);
    lanes_[lane].is_busy = false;
  }
  lane_is_free_.notify_one();
}

// A lane of a host for the time of one request.
class HostProcess::TakenLane {
 public:
  explicit TakenLane(HostProcess& process) : process_(process), lane_(process.take_lane()) {}
  ~TakenLane() { process_.give_back_lane(lane_); }
  TakenLane(const TakenLane&) = delete;
  TakenLane& operator=(const TakenLane&) = delete;
  operator size_t() const { return lane_; }

 private:
  HostProcess& process_;
  size_t lane_;
};

HostAnswer HostProcess::ask(const WriteRequest& write) {
  const TakenLane lane(*this);
  std::vector<OpenPages> on_device;
  const std::string number = send(lane, [&](HostRequest& request, RequestWriter& writer) {
    write(request, writer);
    if (!device_) return;
    std::vector<OpenPages> used = writer.take_open();
    std::erase_if(used, [](const OpenPages& pages) { return pages.populate != 0; });
    if (computes_on_device(request.call)) copy_to_device(on_device = std::move(used));
  });
  HostAnswer answer = checked(receive(lane, number));
  copy_from_device(on_device);
  return answer;
}

HostAnswer HostProcess::ask_gated(const WriteRequest& write) {
  // The first call, which may load a kernel, is not gated. A busy machine takes a second or two to enqueue.
  constexpr std::chrono::seconds kEnqueueLimit{10};
  const TakenLane lane(*this);
  answer_of(windows_.outputs(), lane).is_ready = 0;
  std::vector<OpenPages> inputs, outputs;
  const std::string number = send(lane, [&](HostRequest& request, RequestWriter& writer) {
    write(request, writer);
    request.gated = 1;
    for (const OpenPages& pages : writer.take_open())
      (pages.writable != 0 ? outputs : inputs).push_back(pages);
    copy_to_device(outputs);
    copy_junk_to_device(inputs);
    device_->memory.set_gate(lane, false);
  });
  const bool ready = await_ready(lane, kEnqueueLimit);
  const bool waits = !ready && !has_answered(lane), early = ready && outputs_changed(outputs);
  copy_to_device(inputs);
  device_->memory.set_gate(lane, true);
  HostAnswer answer = checked(receive(lane, number));
  copy_from_device(inputs);
  copy_from_device(outputs);
  if (waits) throw ProviderFault("run() waits for the device: it returned only once its stream went on");
  if (early) throw ProviderFault("wrote its outputs before its stream went on: it uses another stream");
  return answer;
}

bool HostProcess::outputs_changed(const std::vector<OpenPages>& used) const {
  for (const OpenPages& pages : used) {
    auto* const of_window = reinterpret_cast<std::byte*>(pages.address);
    std::vector<std::byte> now(pages.bytes);
    device_->memory.copy_from_device(now, of_window);
    device_->memory.wait();
    if (std::memcmp(now.data(), of_window, now.size()) != 0) return true;
  }
  return false;
}

// A kernel that reads its inputs too early computes with these.
void HostProcess::copy_junk_to_device(const std::vector<OpenPages>& used) const {
  for (const OpenPages& pages : used) {
    const std::vector<std::byte> junk(pages.bytes, std::byte{0x5A});
    device_->memory.copy_to_device(reinterpret_cast<const std::byte*>(pages.address), junk);
  }
  if (!used.empty()) device_->memory.wait();
}

// Red zones are copied too: what the kernel writes outside its buffers is seen in the window.
void HostProcess::copy_to_device(const std::vector<OpenPages>& used) const {
  for (const OpenPages& pages : used) {
    const auto* const of_window = reinterpret_cast<const std::byte*>(pages.address);
    device_->memory.copy_to_device(of_window, {of_window, pages.bytes});
  }
  if (!used.empty()) device_->memory.wait();
}

void HostProcess::copy_from_device(const std::vector<OpenPages>& used) const {
  for (const OpenPages& pages : used) {
    auto* const of_window = reinterpret_cast<std::byte*>(pages.address);
    device_->memory.copy_from_device({of_window, pages.bytes}, of_window);
  }
  if (!used.empty()) device_->memory.wait();
}

HostAnswer HostProcess::ask_batch(const WriteRequest& write, const std::function<void()>& before,
                                  BatchTime& time) {
  const TakenLane lane(*this);
  answer_of(windows_.outputs(), lane).is_ready = 0;
  const std::string number = send(lane, [&](HostRequest& request, RequestWriter& writer) {
    write(request, writer);
    if (device_) writer.take_open();
  });
  if (!await_ready(lane)) return checked(receive(lane, number));
  const CpuClocks clocks(pid_);
  const double waited = clocks.waited_seconds();
  before();
  const double cpu = clocks.running_seconds();
  const auto start = std::chrono::steady_clock::now();
  post(request_of(windows_.inputs(), lane).go, 1);
  HostAnswer answer = checked(receive(lane, number));
  const auto end = std::chrono::steady_clock::now();
  time.wall_us = std::chrono::duration<double, std::micro>(end - start).count();
  time.cpu_us = (clocks.running_seconds() - cpu + clocks.waited_seconds() - waited) * 1e6;
  time.events_us = answer.events_us;
  return answer;
}

bool HostProcess::await_ready(size_t lane, std::optional<std::chrono::milliseconds> limit) const {
  const auto start = std::chrono::steady_clock::now();
  const uint32_t& word = answer_of(windows_.outputs(), lane).is_ready;
  while (!await(word, 1, std::chrono::milliseconds(100))) {
    if (has_answered(lane)) return false;
    if (limit && std::chrono::steady_clock::now() - start > *limit) return false;
  }
  return true;
}

bool HostProcess::has_answered(size_t lane) const {
  pollfd poll_fd{lane == 0 ? child_->answer_fd() : lanes_[lane].answer_fd, POLLIN, 0};
  return ::poll(&poll_fd, 1, 0) != 0;
}

double HostProcess::cpu_seconds() const { return cpu_seconds_of(pid_); }

std::string HostProcess::send(size_t lane, const WriteRequest& write) {
  HostRequest& request = request_of(windows_.inputs(), lane);
  request = {};
  RequestWriter writer({reinterpret_cast<std::byte*>(&request), kMessageBytes}, memory_);
  write(request, writer);
  writer.finish(request);
  const std::string number = std::to_string(++lanes_[lane].number);
  ++round_trips_;
  if (lane == 0)
    child_->send_line(number);  // a host that no longer reads is dead, which the answer's pipe shows
  else if (const std::string line = number + "\n";
           ::write(lanes_[lane].request_fd, line.data(), line.size()) < 0)
    fail_dead();
  return number;
}

HostAnswer HostProcess::receive(size_t lane, const std::string& number) {
  const std::string answered = next_line(lane);
  if (answered != number)
    throw HostFailure{"its host answered out of turn: '" + answered.substr(0, 100) + "'"};
  HostAnswer answer = answer_of(windows_.outputs(), lane);  // the host may still write to the original
  answer.text[sizeof answer.text - 1] = answer.failure[sizeof answer.failure - 1] = '\0';
  return answer;
}

std::string HostProcess::next_line(size_t lane) {
  Lane& of = lanes_[lane];
  for (bool open = true;;) {
    if (lane == 0) {
      if (auto line = child_->next_line()) return *std::move(line);
    } else if (const size_t end = of.received.find('\n'); end != of.received.npos) {
      std::string line = of.received.substr(0, end);
      of.received.erase(0, end + 1);
      return line;
    }
    if (!open) fail_dead();
    pollfd poll_fd{lane == 0 ? child_->answer_fd() : of.answer_fd, POLLIN, 0};
    ::poll(&poll_fd, 1, -1);
    if (lane == 0) {
      open = child_->read_available();
      continue;
    }
    std::array<char, 256> chunk;
    const ssize_t count = ::read(of.answer_fd, chunk.data(), chunk.size());
    if (count > 0) of.received.append(chunk.data(), static_cast<size_t>(count));
    open = count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
  }
}

// The fake device keeps its memory at other addresses than those that kernels get.
const std::byte* HostProcess::of_window(uint64_t fault_address) const {
  if (!device_) return nullptr;
  const std::array<const std::byte*, 2> windows = {windows_.inputs(), windows_.outputs()};
  for (size_t i = 0; i < windows.size(); ++i)
    if (const uint64_t offset = fault_address - kFakeOffset - device_first_[i];
        offset < device_->memory.bytes())
      return windows[i] + offset;
  return nullptr;
}

// The host may read its inputs, so a forbidden access to one was a write. Outputs are open during a call, so
// a forbidden access to one came after it.
void HostProcess::fail_dead() {
  const uint64_t address = answer_of(windows_.outputs(), 0).fault_address;
  const std::unique_lock lock(mutex_);  // callers of both lanes notice
  const std::string ending = child_->wait();
  if (const auto beside = memory_.block_around(of_window(address)); device_ && beside)
    throw OverrunFault(overrun_text(*beside, of_window(address)));
  const auto block = memory_.block_of(reinterpret_cast<const void*>(address));
  if (address != 0 && block)
    throw OverrunFault(block->access == HostAccess::reads
                           ? "wrote into its input " + block->name
                           : "used " + block->name + " after run() had returned");
  if (const auto beside = memory_.block_around(reinterpret_cast<const void*>(address));
      address != 0 && beside)
    throw OverrunFault(overrun_text(*beside, reinterpret_cast<const std::byte*>(address)));
  char at[40] = "";
  if (address != 0)
    std::snprintf(at, sizeof at, " at address 0x%llx", static_cast<unsigned long long>(address));
  throw HostFailure{"its worker died: " + ending + at, child_->peak_resident_bytes()};
}

}  // namespace qcts
