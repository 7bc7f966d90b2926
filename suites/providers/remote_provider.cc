// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/remote_provider.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/registry.h"
#include "suites/base/paths.h"
#include "suites/host/cage.h"
#include "suites/host/probes.h"
#include "suites/providers/provider_call.h"
#include "suites/providers/remote_protocol.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kGapBytes = 256;  // between two tensors of the shared memory
constexpr std::byte kPaint{0xa5};
constexpr int kMemoryFd = 4;             // the memory in the program
constexpr int kOlderHandshakeMs = 1000;  // time limit for a program that refused this host's version

// These two mark the kernels of a RemoteProvider: a C function does not know its provider, so provider_call
// calls the RemoteProvider directly.
qcts_status marks_supports(const qcts_problem*, char*, size_t) { return QCTS_FAILED; }
qcts_status marks_run(const qcts_problem*) { return QCTS_FAILED; }

// Checks that the bytes outside all tensors are unchanged.
void check_gaps(std::span<const std::byte> memory, const std::vector<RemoteTensor>& tensors) {
  size_t at = 0;
  for (size_t i = 0; i <= tensors.size(); ++i) {
    const size_t end = i < tensors.size() ? tensors[i].offset : memory.size();
    for (; at < end; ++at)
      if (memory[at] != kPaint)
        throw OverrunFault("wrote outside its tensors, at byte " + std::to_string(at) +
                           " of the shared memory");
    if (i < tensors.size()) at = tensors[i].offset + tensors[i].bytes;
  }
}

qcts_status must_be_ok(const Json& answer, const char* what) {
  char why[256] = "";
  const qcts_status status = answered(answer, why, sizeof why);
  const std::string text = std::string(what) + " failed: " + why;
  if (status == QCTS_FAILED) throw FailedFault(text);
  if (status != QCTS_OK) throw ProviderFault(text);
  return QCTS_OK;
}

// Returns the words of the hidden subcommand that becomes the program.
std::vector<std::string> words_of(const std::filesystem::path& program, const CageRequest& cage,
                                  uint64_t memory_limit_bytes) {
  std::vector<std::string> words = {
      "provider-process", "--memory-limit-bytes", std::to_string(memory_limit_bytes),
      "--scratch",        cage.scratch.string(),  cage.is_wanted ? "--caged" : "--free"};
  for (const std::filesystem::path& folder : cage.covered) {
    words.push_back("--covered");
    words.push_back(folder.string());
  }
  words.push_back(program.string());
  return words;
}

}  // namespace

SharedMemory::SharedMemory() {
  const int fd = ::memfd_create("qcts", MFD_CLOEXEC);
  if (fd < 0) throw std::runtime_error(std::string("memfd_create: ") + std::strerror(errno));
  fd_ = moved_up(fd);
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  ::close(fd_);
}

void SharedMemory::reserve(size_t bytes) {
  if (bytes <= bytes_.size()) return;
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
  void* mapped = MAP_FAILED;
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) == 0)
    mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) throw std::runtime_error(std::string("shared memory: ") + std::strerror(errno));
  bytes_ = {static_cast<std::byte*>(mapped), bytes};
}

const RemoteProvider::Kernel* RemoteProvider::kernel_of(const qcts_kernel& kernel) {
  return kernel.run == marks_run ? static_cast<const Kernel*>(&kernel) : nullptr;
}

RemoteProvider::RemoteProvider(const std::filesystem::path& program, const CageRequest& cage,
                               uint64_t memory_limit_bytes)
    : child_(program_path(), words_of(program, cage, memory_limit_bytes), environment_with({}),
             "/proc/self/fd/2", ChildRole::provider, {{memory_.fd(), kMemoryFd}}) {
  try {
    isolation_ = next_json("isolation").at("isolation");
    read_handshake(handshake());
  } catch (const nlohmann::json::exception& error) {
    const std::string what = error.what();  // "[json.exception.out_of_range.403] key 'name' not found"
    throw std::runtime_error(program.string() + ": its answer to hello is not a valid provider handshake: " +
                             what.substr(what.starts_with('[') ? what.find("] ") + 2 : 0));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(program.string() + ": " + error.what());
  }
}

Json RemoteProvider::exchange(const Json& request) {
  child_.send_line(request.dump());  // a program that no longer reads may have answered before it ended
  return next_json(request.at("request"));
}

Json RemoteProvider::next_json(const std::string& request) {
  for (bool open = true;;) {
    if (const auto line = child_.next_line()) {
      Json answer = Json::parse(*line, nullptr, false);
      if (answer.is_object()) return answer;
      throw ProviderFault("answered '" + request +
                          "' with a line that is not a JSON object: " + line->substr(0, 100));
    }
    if (!open) {
      const std::string ending = std::string(kProviderEnded) + child_.wait() + "\n";
      std::fputs(ending.c_str(), stderr);
      std::_Exit(1);
    }
    pollfd poll_fd{child_.answer_fd(), POLLIN, 0};
    ::poll(&poll_fd, 1, -1);
    open = child_.read_available();
  }
}

// A provider built for an older host may answer with an error, and then keep reading or exit.
Json RemoteProvider::handshake() {
  const Json first = exchange({{"request", "hello"}, {"abi_version", QCTS_ABI_VERSION}});
  if (!first.contains("error")) return first;
  for (uint32_t version = QCTS_ABI_VERSION - 1; version >= kOldestAbiVersion; --version) {
    const Json request = {{"request", "hello"}, {"abi_version", version}};
    if (!child_.send_line(request.dump())) return first;
    auto line = child_.next_line();
    while (!line) {
      pollfd poll_fd{child_.answer_fd(), POLLIN, 0};
      if (::poll(&poll_fd, 1, kOlderHandshakeMs) <= 0 || !child_.read_available()) return first;
      line = child_.next_line();
    }
    const Json answer = Json::parse(*line, nullptr, false);
    if (answer.is_object() && !answer.contains("error")) return answer;
  }
  return first;
}

void RemoteProvider::read_handshake(const Json& handshake) {
  if (handshake.contains("error")) throw std::runtime_error(handshake["error"].get<std::string>());
  name_ = handshake.at("name");
  version_ = handshake.value("version", "");
  url_ = handshake.value("url", "");
  choices_ = handshake.value("choices", "");
  profile_ = handshake.value("profile", "");
  for (const Json& entry : handshake.at("kernels")) read_kernel(entry);
  for (const Kernel& kernel : kernels_) kernel_pointers_.push_back(&kernel);
  table_.struct_size = sizeof table_;
  table_.abi_version = handshake.at("abi_version").get<uint32_t>();
  table_.name = name_.c_str();
  table_.version = version_.c_str();
  table_.url = url_.c_str();
  table_.choices = choices_.c_str();
  table_.profile = profile_.c_str();
  table_.n_kernels = static_cast<uint32_t>(kernel_pointers_.size());
  table_.kernels = kernel_pointers_.data();
  offers_load_save_ = handshake.value("load_save", false);
}

void RemoteProvider::read_kernel(const Json& entry) {
  Kernel& kernel = kernels_.emplace_back();
  kernel.owner = this;
  kernel.index = kernels_.size() - 1;
  kernel.scheme_text = entry.at("scheme");
  kernel.variant_text = entry.at("variant");
  kernel.description_text = entry.value("description", "");
  kernel.struct_size = sizeof(qcts_kernel);
  const std::string op = entry.at("op");
  kernel.op = op_from_name(op);
  if (kernel.op == 0) throw std::runtime_error("op: unknown operation '" + op + "'");
  kernel.scheme = kernel.scheme_text.c_str();
  kernel.variant = kernel.variant_text.c_str();
  kernel.description = kernel.description_text.c_str();
  kernel.claims = claims_from(entry.value("claims", Json::array()));
  kernel.numerics = numerics_from(entry.value("numerics", Json::object()));
  kernel.fused_sums = fused_sums_from(entry.value("fused_sums", Json::object()));
  for (const Json& layout : entry.value("reads_layouts", Json::array()))
    kernel.layouts_text += (kernel.layouts_text.empty() ? "" : ",") + layout.get<std::string>();
  kernel.reads_layouts = kernel.layouts_text.c_str();
  kernel.supports = marks_supports;
  kernel.run = marks_run;
}

qcts_status RemoteProvider::supports(const Kernel& kernel, const qcts_problem& problem, char* why,
                                     size_t why_size) {
  std::vector<RemoteTensor> none;
  return answered(
      exchange({{"request", "supports"}, {"kernel", kernel.index}, {"problem", problem_json(problem, none)}}),
      why, why_size);
}

std::vector<RemoteTensor> RemoteProvider::copy_in(const qcts_problem& problem) {
  std::vector<RemoteTensor> tensors = tensors_of(problem);
  size_t end = 0;
  for (RemoteTensor& tensor : tensors) {
    // Keep the caller's offset from a multiple of 64.
    tensor.offset = (end + kGapBytes + 63) / 64 * 64 + reinterpret_cast<uintptr_t>(tensor.data) % 64;
    end = tensor.offset + tensor.bytes;
  }
  memory_.reserve(end + kGapBytes);
  const std::span<std::byte> memory = memory_.bytes();
  std::fill(memory.begin(), memory.end(), kPaint);
  for (const RemoteTensor& tensor : tensors)
    if (tensor.bytes > 0) std::memcpy(memory.data() + tensor.offset, tensor.data, tensor.bytes);
  return tensors;
}

Json RemoteProvider::with_memory(const char* request, const Kernel& kernel, const qcts_problem& problem,
                                 const std::vector<RemoteTensor>& tensors) const {
  return {{"request", request},
          {"kernel", kernel.index},
          {"memory", "/proc/self/fd/" + std::to_string(kMemoryFd)},
          {"memory_bytes", memory_.bytes().size()},
          {"problem", problem_json(problem, tensors)}};
}

void RemoteProvider::copy_out(const std::vector<RemoteTensor>& tensors) {
  check_gaps(memory_.bytes(), tensors);
  for (const RemoteTensor& tensor : tensors)
    if (tensor.bytes > 0) std::memcpy(tensor.data, memory_.bytes().data() + tensor.offset, tensor.bytes);
}

qcts_status RemoteProvider::run(const Kernel& kernel, const qcts_problem& problem) {
  const std::lock_guard one_at_a_time(running_);  // one memory, so one conversation at a time
  const std::vector<RemoteTensor> tensors = copy_in(problem);
  const Json answer = exchange(with_memory("run", kernel, problem, tensors));
  copy_out(tensors);
  return must_be_ok(answer, "run()");
}

void RemoteProvider::begin_timing(const Kernel& kernel, const qcts_problem& problem, size_t copies) {
  timed_ = copy_in(problem);
  Json request = with_memory("begin_timing", kernel, problem, timed_);
  request["copies"] = copies;
  must_be_ok(exchange(request), "begin_timing");
}

double RemoteProvider::time_us(size_t first, size_t calls, bool rotate) {
  const Json answer = exchange({{"request", "time"}, {"first", first}, {"calls", calls}, {"rotate", rotate}});
  must_be_ok(answer, "time");
  const Json us = answer.value("us", Json());
  if (!us.is_number() || !(us.get<double>() > 0))
    throw ProviderFault("answered 'time' without a positive `us`: " + answer.dump().substr(0, 200));
  return us.get<double>();
}

Json RemoteProvider::end_timing() {
  Json answer = exchange({{"request", "end_timing"}});
  must_be_ok(answer, "end_timing");
  copy_out(timed_);
  Json measures = answer.value("measures", Json::object());
  for (const auto& [name, value] : measures.items())
    if (!value.is_number()) throw ProviderFault("end_timing: measure '" + name + "' is not a number");
  return measures;
}

qcts_status RemoteProvider::load_save(const char* input, const char* output, char* why, size_t why_size) {
  return answered(exchange({{"request", "load_save"}, {"input", input}, {"output", output}}), why, why_size);
}

int become_provider(const std::string& program, const CageRequest& asked, uint64_t memory_limit_bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // survives exec
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit limit{memory_limit_bytes, RLIM_INFINITY};
  if (memory_limit_bytes != 0) ::setrlimit(RLIMIT_DATA, &limit);
  const Namespaces namespaces =
      asked.is_wanted ? enter_namespaces(asked.covered, {program, asked.scratch}) : Namespaces{::getppid()};
  if (namespaces.are_own) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Cage cage = asked.is_wanted ? enter_cage(asked.scratch, namespaces.are_own, false) : Cage();
  std::puts(Json{{"isolation", isolation_of(cage, namespaces, nullptr, asked.covered)}}.dump().c_str());
  std::fflush(stdout);
  char* const words[] = {const_cast<char*>(program.c_str()), nullptr};
  ::execv(program.c_str(), words);
  // Sent instead of the program's handshake.
  std::puts(Json{{"error", std::strerror(errno)}}.dump().c_str());
  return 5;
}

}  // namespace qcts
