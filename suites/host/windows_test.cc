// SPDX-License-Identifier: BSD-3-Clause
// Tests that a process with a host's descriptor of the inputs can read them and never write them.
#include "suites/host/windows.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "suites/base/memory.h"

namespace qcts {
namespace {

constexpr size_t kPageBytes = 4096;

// Maps one page of a file; MAP_FAILED as mmap says.
void* map_page(int fd, int protection) { return ::mmap(nullptr, kPageBytes, protection, MAP_SHARED, fd, 0); }

class InputWindow : public testing::Test {
 protected:
  void SetUp() override { std::memcpy(windows_.inputs(), "given", 6); }
  void TearDown() override { EXPECT_STREQ(reinterpret_cast<const char*>(windows_.inputs()), "given"); }
  Windows windows_;
};

TEST_F(InputWindow, IsReadThroughTheHostsDescriptor) {
  void* const page = map_page(windows_.inputs_fd(), PROT_READ);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_STREQ(static_cast<const char*>(page), "given");
  EXPECT_NE(::mprotect(page, kPageBytes, PROT_READ | PROT_WRITE), 0) << "made writable afterwards";
  ::munmap(page, kPageBytes);
}

TEST_F(InputWindow, IsNotWrittenThroughTheHostsDescriptor) {
  EXPECT_EQ(map_page(windows_.inputs_fd(), PROT_READ | PROT_WRITE), MAP_FAILED);
  EXPECT_LT(::write(windows_.inputs_fd(), "other", 6), 0);
  EXPECT_NE(::ftruncate(windows_.inputs_fd(), 0), 0);
}

TEST_F(InputWindow, IsNotWrittenThroughAnotherDescriptor) {
  const std::string path = "/proc/self/fd/" + std::to_string(windows_.inputs_fd());
  const int again = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (again < 0) return;  // refused already
  EXPECT_EQ(map_page(again, PROT_READ | PROT_WRITE), MAP_FAILED);
  EXPECT_LT(::pwrite(again, "other", 6, 0), 0);
  EXPECT_NE(::ftruncate(again, 0), 0);
  ::close(again);
}

TEST(Windows, OutputsCanBeWrittenAndNotShrunk) {
  const Windows windows;
  void* const page = map_page(windows.outputs_fd(), PROT_READ | PROT_WRITE);
  ASSERT_NE(page, MAP_FAILED);
  std::memcpy(page, "answer", 7);
  EXPECT_STREQ(reinterpret_cast<const char*>(windows.outputs()), "answer");
  EXPECT_NE(::ftruncate(windows.outputs_fd(), 0), 0) << "the judge would die of its next access";
  ::munmap(page, kPageBytes);
}

// Batch systems limit address space and file sizes.
TEST(Windows, FitALimit) {
  EXPECT_EQ(Windows().bytes(), size_t{1} << 36);
  if (!kMemoryCounts) GTEST_SKIP() << "a sanitizer takes more address space than the limit";
  ::signal(SIGXFSZ, SIG_IGN);
  for (const auto resource : {RLIMIT_FSIZE, RLIMIT_AS}) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(resource, &before), 0);
    const rlimit less{resource == RLIMIT_AS ? rlim_t{40} << 30 : rlim_t{2} << 30, before.rlim_max};
    ASSERT_EQ(::setrlimit(resource, &less), 0);
    const size_t bytes = Windows().bytes();
    ::setrlimit(resource, &before);
    EXPECT_LT(bytes, size_t{1} << 36);
  }
}

TEST(Windows, TwoAtOnceHaveDifferentAddresses) {
  const Windows one, other;
  EXPECT_NE(one.inputs(), other.inputs());
  EXPECT_EQ(one.outputs() - one.inputs(), other.outputs() - other.inputs());
}

}  // namespace
}  // namespace qcts
