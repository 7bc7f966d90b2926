// SPDX-License-Identifier: BSD-3-Clause
#include "suites/providers/hosted_provider.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kernels/abi/problem.h"
#include "suites/base/paths.h"
#include "suites/providers/handshake.h"
#include "suites/providers/request_writer.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kFirstAbiWithDevices = 12;
constexpr size_t kEmittedBytes = size_t{1} << 29;  // for all that a program returns; untouched pages are free

// These mark the kernels of a HostedProvider: a C function does not know its provider, so provider_call calls
// the HostedProvider directly.
qcts_status hosted_supports(const qcts_problem*, char*, size_t) { return QCTS_FAILED; }
uint64_t hosted_bytes(const qcts_problem*) { return 0; }
qcts_status hosted_prepare(const qcts_problem*, void*) { return QCTS_FAILED; }
qcts_status hosted_run(const qcts_problem*) { return QCTS_FAILED; }
void hosted_failure(char*, size_t) {}

template <class T>
T words_from(const Json& json) {
  T value{};
  const std::vector<uint32_t> words = json.get<std::vector<uint32_t>>();
  if (words.size() * sizeof(uint32_t) != sizeof value)
    throw std::runtime_error("its host described a kernel with a struct of another size");
  std::memcpy(&value, words.data(), sizeof value);
  return value;
}

std::string text_from(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? std::string() : found->get<std::string>();
}

// Throws what the host says the call did.
void throw_fault(HostOutcome outcome, const std::string& text) {
  if (outcome == HostOutcome::answered) return;
  if (outcome == HostOutcome::harm_fault) throw HarmFault(text);
  throw ProviderFault(text);
}

qcts_status status_of(const HostAnswer& answer, const char* function) {
  if (answer.status < QCTS_OK || answer.status > QCTS_FAILED)
    throw ProviderFault(std::string(function) + "() returned " + std::to_string(answer.status) +
                        ", which is not a qcts_status");
  return static_cast<qcts_status>(answer.status);
}

Support support_of(const HostAnswer& answer, const char* function) {
  Support support{status_of(answer, function), answer.text};
  if (support.status == QCTS_OK) support.reason.clear();
  if (support.status != QCTS_OK && support.reason.empty())
    throw ProviderFault(std::string(function) + "() refused without a reason");
  return support;
}

// Fills in an answer of C's form.
qcts_status told(const Support& support, char* why, size_t why_size) {
  std::snprintf(why, why_size, "%s", support.reason.c_str());
  return support.status;
}

// A block of a host's memory for the time of one call.
class CallBlock {
 public:
  CallBlock(HostMemory& memory, std::string name, HostAccess access, size_t bytes) : memory_(memory) {
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t whole = std::max((bytes + page - 1) / page, size_t{1}) * page;
    bytes_ = memory_.take(std::move(name), access, whole + 2 * page, page, whole);
    data_ = bytes_.subspan(page, whole);
  }
  ~CallBlock() { memory_.give_back(bytes_); }
  CallBlock(const CallBlock&) = delete;
  CallBlock& operator=(const CallBlock&) = delete;
  std::byte* data() const { return data_.data(); }

 private:
  HostMemory& memory_;
  std::span<std::byte> bytes_, data_;
};

}  // namespace

HostedProvider::HostedProvider(const std::filesystem::path& library, const CageRequest& cage,
                               uint64_t memory_limit_bytes, std::optional<int> device,
                               const RepeatedChunk& repeated)
    : library_(library),
      cage_(cage),
      memory_limit_bytes_(memory_limit_bytes),
      device_(device),
      process_(library, cage, memory_limit_bytes, device, repeated),
      handshake_(process_.read_handshake()) {
  read_table();
}

HostedProvider::HostedProvider(const HostedProvider& other, const RepeatedChunk& repeated,
                               const std::vector<std::string>& environment)
    : library_(other.library_),
      cage_(other.cage_),
      memory_limit_bytes_(other.memory_limit_bytes_),
      device_(other.device_),
      process_(library_, cage_, memory_limit_bytes_, device_, repeated, environment),
      handshake_(process_.read_handshake(other.handshake_)) {
  read_table();
}

std::unique_ptr<HostedProvider> HostedProvider::started_anew(
    const RepeatedChunk& repeated, const std::vector<std::string>& environment) const {
  return std::unique_ptr<HostedProvider>(new HostedProvider(*this, repeated, environment));
}

void HostedProvider::read_table() {
  const Json& table = handshake_->table;
  if (const std::string error = text_from(table, "error"); !error.empty()) throw std::runtime_error(error);
  name_ = text_from(table, "name");
  version_ = text_from(table, "version");
  url_ = text_from(table, "url");
  choices_ = text_from(table, "choices");
  profile_ = text_from(table, "profile");
  load_fault_ = text_from(table, "load_fault");
  isolation_ = text_from(table, "isolation");
  has_load_save_ = table.at("load_save");
  has_run_program_ = table.at("run_program");
  table_.struct_size = sizeof table_;
  table_.abi_version = table.at("abi_version");
  if (device() != nullptr && table_.abi_version < kFirstAbiWithDevices)
    throw std::runtime_error(name_ + ": its ABI version is " + std::to_string(table_.abi_version) +
                             "; problems on a device come with " + std::to_string(kFirstAbiWithDevices));
  table_.name = name_.c_str();
  table_.version = version_.c_str();
  table_.url = url_.c_str();
  table_.choices = choices_.c_str();
  table_.profile = profile_.c_str();
  table_.claims = table.at("claims");
  table_.n_kernels = table.at("n_kernels");
  if (!table.contains("kernels")) return;
  for (const Json& entry : table.at("kernels")) read_kernel(entry);
  table_.kernels = kernel_pointers_.data();
}

void HostedProvider::read_kernel(const Json& entry) {
  if (entry.is_null()) return kernel_pointers_.push_back(nullptr);
  Kernel& kernel = kernels_.emplace_back();
  kernel.owner = this;
  kernel.index = static_cast<uint32_t>(kernel_pointers_.size());
  kernel_pointers_.push_back(&kernel);
  kernel.struct_size = entry.at("struct_size");
  if (!entry.contains("op")) return;  // too short to be a kernel
  kernel.struct_size = sizeof(qcts_kernel);
  kernel.op = entry.at("op");
  kernel.claims = entry.at("claims");
  kernel.numerics = words_from<qcts_numerics>(entry.at("numerics"));
  kernel.fused_sums = words_from<qcts_fused_sums>(entry.at("fused_sums"));
  kernel.align_bytes = entry.at("align_bytes");
  kernel.row_align_bytes = entry.at("row_align_bytes");
  const auto take = [&](const char* name, std::string& text, const char*& field) {
    if (entry.at(name).is_null()) return;
    text = entry.at(name);
    field = text.c_str();
  };
  take("scheme", kernel.scheme_text, kernel.scheme);
  take("variant", kernel.variant_text, kernel.variant);
  take("description", kernel.description_text, kernel.description);
  take("reads_layouts", kernel.layouts_text, kernel.reads_layouts);
  const Json& has = entry.at("has");
  if (has.at("supports").get<bool>()) kernel.supports = hosted_supports;
  if (has.at("workspace_bytes").get<bool>()) kernel.workspace_bytes = hosted_bytes;
  if (has.at("prepared_bytes").get<bool>()) kernel.prepared_bytes = hosted_bytes;
  if (has.at("prepare").get<bool>()) kernel.prepare = hosted_prepare;
  if (has.at("run").get<bool>()) kernel.run = hosted_run;
  if (has.at("failure").get<bool>()) kernel.failure = hosted_failure;
}

const HostedProvider::Kernel* HostedProvider::kernel_of(const qcts_kernel& kernel) {
  return kernel.run == hosted_run ? static_cast<const Kernel*>(&kernel) : nullptr;
}

FileCalls HostedProvider::file_calls() {
  FileCalls calls;
  if (has_load_save_)
    calls.load_save = [this](const char* input, const char* output, char* why, size_t why_size) {
      return told(load_save(input, output), why, why_size);
    };
  if (has_run_program_)
    calls.run_program = [this](const qcts_program_call* call, char* why, size_t why_size) {
      return told(run_program(*call), why, why_size);
    };
  return calls;
}

HostAnswer HostedProvider::ask_kernel(HostCall call, const Kernel& kernel, const qcts_problem& problem,
                                      void* prepared, bool gated, bool flushes) {
  const auto write = [&](HostRequest& request, RequestWriter& writer) {
    request.call = call;
    request.kernel = kernel.index;
    request.problem = writer.problem(problem);
    request.prepared = prepared;
    request.flushes = flushes ? 1 : 0;
    writer.open(prepared, HostAccess::writes);
  };
  const HostAnswer answer = gated ? process_.ask_gated(write) : process_.ask(write);
  throw_fault(answer.outcome, answer.text);
  const std::lock_guard lock(mutex_);
  failures_[std::this_thread::get_id()] = {answer.failure_outcome, answer.failure};
  return answer;
}

KernelFacts HostedProvider::facts(const Kernel& kernel, const qcts_problem& problem) {
  HostAnswer answer = ask_kernel(HostCall::facts, kernel, problem);
  KernelFacts facts;
  facts.support = support_of(answer, "supports");
  facts.workspace_bytes = answer.bytes;
  if (facts.support.status != QCTS_OK) return facts;
  facts.prepared_bytes = answer.prepared_bytes;
  answer.status = answer.before_data;
  std::copy(std::begin(answer.failure), std::end(answer.failure), answer.text);
  facts.before_data = support_of(answer, "supports");
  return facts;
}

Support HostedProvider::supports(const Kernel& kernel, const qcts_problem& problem) {
  return support_of(ask_kernel(HostCall::supports, kernel, problem), "supports");
}

uint64_t HostedProvider::workspace_bytes(const Kernel& kernel, const qcts_problem& problem) {
  return ask_kernel(HostCall::workspace_bytes, kernel, problem).bytes;
}

uint64_t HostedProvider::prepared_bytes(const Kernel& kernel, const qcts_problem& problem) {
  return ask_kernel(HostCall::prepared_bytes, kernel, problem).bytes;
}

qcts_status HostedProvider::prepare(const Kernel& kernel, const qcts_problem& problem, void* prepared) {
  return status_of(ask_kernel(HostCall::prepare, kernel, problem, prepared), "prepare");
}

qcts_status HostedProvider::run(const Kernel& kernel, const qcts_problem& problem, bool gated) {
  return status_of(ask_kernel(HostCall::run, kernel, problem, nullptr, gated && device() != nullptr), "run");
}

qcts_status HostedProvider::run_flushed(const Kernel& kernel, const qcts_problem& problem) {
  return status_of(ask_kernel(HostCall::run, kernel, problem, nullptr, false, true), "run");
}

HostedProvider::Capture HostedProvider::capture(const Kernel& kernel, const qcts_problem& problem) {
  const HostAnswer answer = ask_kernel(HostCall::capture, kernel, problem);
  return {status_of(answer, "run"), answer.bytes};
}

void HostedProvider::replay(const Kernel& kernel, const qcts_problem& problem) {
  ask_kernel(HostCall::replay, kernel, problem);
}

uint32_t HostedProvider::take_graphs() {
  uint32_t number = 0;
  while (!taken_graphs_.insert(number).second) ++number;
  return number;
}

HostedProvider::Capture HostedProvider::capture_batch(const Kernel& kernel, uint32_t number,
                                                      std::span<const qcts_problem> problems,
                                                      size_t calls_a_graph) {
  const HostAnswer answer = process_.ask([&](HostRequest& request, RequestWriter& writer) {
    request.call = HostCall::capture_batch;
    request.kernel = kernel.index;
    request.batch = writer.problems(problems);
    request.n_batch = problems.size();
    request.calls_a_graph = calls_a_graph;
    request.graphs = number;
  });
  throw_fault(answer.outcome, answer.text);
  return {status_of(answer, "run"), answer.bytes};
}

BatchTime HostedProvider::time_batch(const Kernel& kernel, uint32_t number,
                                     const std::function<void()>& before) {
  BatchTime time;
  const HostAnswer answer = process_.ask_batch(
      [&](HostRequest& request, RequestWriter&) {
        request.call = HostCall::time_batch;
        request.kernel = kernel.index;
        request.graphs = number;
      },
      before, time);
  throw_fault(answer.outcome, answer.text);
  return time;
}

qcts_status HostedProvider::run_batch(const Kernel& kernel, std::span<const qcts_problem> problems,
                                      const std::function<void()>& before, BatchTime& time, size_t n_awake,
                                      double slowed) {
  if (device() != nullptr) throw std::logic_error("batches are computed only on the host");
  const HostAnswer answer = process_.ask_batch(
      [&](HostRequest& request, RequestWriter& writer) {
        request.call = HostCall::run_batch;
        request.kernel = kernel.index;
        request.batch = writer.problems(problems);
        request.n_batch = problems.size();
        request.n_awake = n_awake;
        request.slowed = slowed;
      },
      before, time);
  throw_fault(answer.outcome, answer.text);
  return status_of(answer, "run");
}

std::string HostedProvider::failure() const {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(std::this_thread::get_id());
  if (found == failures_.end()) return {};
  throw_fault(found->second.outcome, found->second.text);
  return found->second.text;
}

Support HostedProvider::load_save(const char* input, const char* output) {
  const HostAnswer answer = process_.ask([&](HostRequest& request, RequestWriter& writer) {
    request.call = HostCall::load_save;
    request.input = writer.text(input);
    request.output = writer.text(output);
  });
  throw_fault(answer.outcome, answer.text);
  return support_of(answer, "load_save");
}

// The planes that the program returns are read from a copy of their descriptions, and their data from the
// host's memory, once.
Support HostedProvider::run_program(const qcts_program_call& call) {
  std::deque<CallBlock> inputs;
  std::vector<qcts_plane> planes(call.inputs, call.inputs + call.n_inputs);
  for (qcts_plane& plane : planes) {
    const uint64_t bytes = bytes_of_plane(plane);
    CallBlock& block = inputs.emplace_back(memory(), "input", HostAccess::reads, bytes);
    if (bytes != 0) std::memcpy(block.data(), plane.data, bytes);
    plane.data = block.data();
  }
  const CallBlock emitted(memory(), "emitted planes", HostAccess::writes, kEmittedBytes);
  const HostAnswer answer = process_.ask([&](HostRequest& request, RequestWriter& writer) {
    qcts_program_call given = call;
    given.inputs = planes.data();
    request.call = HostCall::run_program;
    request.program = writer.program(given);
    request.emitted = emitted.data();
    request.emitted_bytes = kEmittedBytes;
    writer.open(emitted.data(), HostAccess::writes);
  });
  throw_fault(answer.outcome, answer.text);
  constexpr size_t kHeaderBytes = (sizeof(qcts_plane) + 63) / 64 * 64;
  const uint64_t end = std::min<uint64_t>(answer.bytes, kEmittedBytes);
  for (uint64_t at = 0; at + kHeaderBytes <= end;) {
    qcts_plane plane;
    std::memcpy(&plane, emitted.data() + at, sizeof plane);
    at += kHeaderBytes;
    const uint64_t bytes = bytes_of_plane(plane);
    if (bytes > end - at) throw ProviderFault("run_program() returned a plane beyond the end of its memory");
    plane.name = "";
    plane.data = emitted.data() + at;
    call.emit(call.context, &plane);
    at += (bytes + 63) / 64 * 64;
  }
  return support_of(answer, "run_program");
}

}  // namespace qcts
