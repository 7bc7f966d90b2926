// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/emulated/fake_device.h"

#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "kernels/cuda/executor.h"
#include "kernels/cuda/failure.h"
#include "kernels/emulated/simt_rows.h"
#include "kernels/fakecuda/fake_driver.h"

namespace qcts::simt {
namespace {

FakeEnqueue find_enqueue() {
  const char* driver = std::getenv("QCTS_CUDA_DRIVER");
  void* const library = driver == nullptr ? nullptr : ::dlopen(driver, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<FakeEnqueue>(::dlsym(library, kFakeEnqueue));
}

FakeEnqueue enqueue_function() {
  static const FakeEnqueue found = find_enqueue();
  return found;
}

// The launches of one call, which the stream runs as one piece of work.
struct CallWork {
  Settings settings;
  WaitingLaunches launches;
};

// Returns a text that lives as long as the process.
const char* kept(const char* text) {
  static std::mutex mutex;
  static std::deque<std::string> texts;
  const std::lock_guard lock(mutex);
  return texts.emplace_back(text).c_str();
}

const char* run_work(void* context) {
  auto& work = *static_cast<CallWork*>(context);
  const std::lock_guard lock(executor_mutex());
  configure(work.settings);
  for (const auto& launch : work.launches)
    if (const char* fault = launch(); fault != nullptr) return kept(fault);
  return nullptr;
}

void drop_work(void* context) { delete static_cast<CallWork*>(context); }

}  // namespace

thread_local WaitingLaunches* waiting_launches = nullptr;

bool has_fake_device() { return enqueue_function() != nullptr; }

qcts_status enqueue_launches(void* stream, Settings settings, const std::function<qcts_status()>& call) {
  auto* const work = new CallWork{std::move(settings), {}};
  work->settings.global_offset = kFakeOffset;
  waiting_launches = &work->launches;
  const qcts_status status = call();
  waiting_launches = nullptr;
  if (status != QCTS_OK || work->launches.empty()) {
    drop_work(work);
    return status;
  }
  const int result = enqueue_function()(stream, run_work, drop_work, work);
  if (result == 0) return QCTS_OK;
  drop_work(work);
  return launch_failed("the stream refused the launch with CUDA error %d", result);
}

}  // namespace qcts::simt
