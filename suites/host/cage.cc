// SPDX-License-Identifier: BSD-3-Clause
#include "suites/host/cage.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "suites/base/memory.h"

namespace qcts {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;  // unknown here: no filter
#endif

constexpr uint32_t kFirstX32Call = 0x40000000;  // the same calls under other numbers (x86-64 only)
constexpr uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr long kRefusedCalls[] = {
    // read or write another process
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp, SYS_pidfd_open,
    SYS_pidfd_getfd, SYS_pidfd_send_signal,
    // run code or make calls in the kernel that a filter does not see
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_bpf, SYS_userfaultfd,
    SYS_perf_event_open,
    // change which files a path names
    SYS_mount, SYS_umount2, SYS_fsopen, SYS_fsmount, SYS_move_mount, SYS_open_tree, SYS_pivot_root,
    SYS_chroot,
    // make or enter a namespace, with capabilities in it
    SYS_unshare, SYS_setns,
    // share keys with the judge
    SYS_keyctl, SYS_add_key, SYS_request_key};

bool drop_capabilities() {
  for (unsigned long each = 0; ::prctl(PR_CAPBSET_READ, each) >= 0; ++each)
    ::prctl(PR_CAPBSET_DROP, each);  // refused without CAP_SETPCAP; no_new_privs then has the same effect
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

sock_filter load(size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }

sock_filter answer(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

// Skips the next statement unless the loaded word equals `value`.
sock_filter unless_equal(uint32_t value) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1); }

std::vector<sock_filter> filter_program() {
  const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM, absent = SECCOMP_RET_ERRNO | ENOSYS;
  std::vector<sock_filter> program = {
      load(offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      answer(refuse),
      load(offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstX32Call, 0, 1),
      answer(absent),
  };
  for (const long call : kRefusedCalls) {
    program.push_back(unless_equal(static_cast<uint32_t>(call)));
    program.push_back(answer(refuse));
  }
  // libc falls back to clone, whose flags a filter can read.
  program.push_back(unless_equal(SYS_clone3));
  program.push_back(answer(absent));
  const sock_filter of_clone[] = {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
                                  load(offsetof(seccomp_data, args)),
                                  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1), answer(refuse)};
  program.insert(program.end(), std::begin(of_clone), std::end(of_clone));
  // A process may limit itself, which is process 0.
  program.push_back(load(offsetof(seccomp_data, nr)));
  const sock_filter of_prlimit[] = {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 3),
                                    load(offsetof(seccomp_data, args)),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), answer(refuse)};
  program.insert(program.end(), std::begin(of_prlimit), std::end(of_prlimit));
  program.push_back(answer(SECCOMP_RET_ALLOW));
  return program;
}

bool filter_calls() {
  if (kArchitecture == 0) return false;
  std::vector<sock_filter> program = filter_program();
  sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

// Landlock's interface, of which the headers of older systems know a part. linux/landlock.h names the bits.
struct LandlockRuleset {
  uint64_t handled_access_fs, handled_access_net, scoped;
};
struct [[gnu::packed]] LandlockPath {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kVersionRequest = 1, kPathRule = 1;
constexpr uint64_t kWriteFile = 1u << 1, kRemove = 3u << 4, kMake = 0x7fu << 6, kRefer = 1u << 13,
                   kTruncate = 1u << 14, kTcp = 3, kScopes = 3;

bool allow(int ruleset, const std::filesystem::path& path, uint64_t access) {
  LandlockPath rule{access, ::open(path.c_str(), O_PATH | O_CLOEXEC)};
  if (rule.parent_fd < 0) return false;
  const bool allowed = ::syscall(kAddRule, ruleset, kPathRule, &rule, 0) == 0;
  ::close(rule.parent_fd);
  return allowed;
}

// The devices that a CUDA driver opens for writing.
std::vector<std::filesystem::path> driver_devices() {
  std::vector<std::filesystem::path> found = {"/dev/nvidiactl",         // commands to the driver
                                              "/dev/nvidia-uvm",        // virtual memory
                                              "/dev/nvidia-uvm-tools",  // the same, for compute-sanitizer
                                              "/dev/nvidia-caps",       // MIG instances
                                              "/dev/dxg"};              // the GPU under WSL
  for (int i = 0; i < 32; ++i) found.push_back("/dev/nvidia" + std::to_string(i));  // the GPUs
  return found;
}

// Confines signals too, since Linux 6.12. The probes say whether it did.
void confine_writes(const std::filesystem::path& scratch, bool own_shared_memory, bool has_device) {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kVersionRequest);
  if (version < 1) return;
  uint64_t writing = kWriteFile | kRemove | kMake;
  if (version >= 2) writing |= kRefer;
  if (version >= 3) writing |= kTruncate;
  const LandlockRuleset wanted{writing, version >= 4 ? kTcp : 0, version >= 6 ? kScopes : 0};
  const size_t known_bytes = version >= 6 ? sizeof wanted : version >= 4 ? 16 : 8;
  const int ruleset = static_cast<int>(::syscall(kCreateRuleset, &wanted, known_bytes, 0));
  if (ruleset < 0) return;
  const uint64_t of_file = writing & (kWriteFile | kTruncate);
  const bool allows_scratch = allow(ruleset, scratch, writing);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full"}) allow(ruleset, device, of_file);
  if (own_shared_memory) allow(ruleset, "/dev/shm", writing);
  std::error_code none;
  if (has_device)
    for (const std::filesystem::path& device : driver_devices())
      allow(ruleset, device, std::filesystem::is_directory(device, none) ? writing : of_file);
  if (allows_scratch) ::syscall(kRestrictSelf, ruleset, 0);
  ::close(ruleset);
}

}  // namespace

Cage enter_cage(const std::filesystem::path& scratch, bool own_shared_memory, bool has_device) {
  ::setenv("HOME", scratch.c_str(), 1);
  ::setenv("TMPDIR", scratch.c_str(), 1);
  Cage cage;
  if (!kMemoryCounts) return cage;  // a sanitizer's runtime makes its own calls
  const bool keeps_privileges = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  cage.has_no_capabilities = drop_capabilities() && keeps_privileges;
  confine_writes(scratch, own_shared_memory, has_device);
  cage.is_filtered = filter_calls();
  return cage;
}

bool hide_from_others() { return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0; }

}  // namespace qcts
