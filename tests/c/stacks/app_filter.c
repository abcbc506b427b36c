#include "app_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* The system calls of bionic, less those that apps are denied: as of Android 16. */
static const unsigned short allowed[] = {
#define ALLOW(name) SYS_##name,
    /* clang-format off */
    ALLOW(accept4) ALLOW(bind) ALLOW(bpf) ALLOW(brk) ALLOW(capget) ALLOW(capset) ALLOW(chdir) ALLOW(clock_getres)
    ALLOW(clock_gettime) ALLOW(clock_nanosleep) ALLOW(clone) ALLOW(clone3) ALLOW(close) ALLOW(close_range)
    ALLOW(connect) ALLOW(copy_file_range) ALLOW(dup) ALLOW(dup3) ALLOW(epoll_create1) ALLOW(epoll_ctl)
    ALLOW(epoll_pwait) ALLOW(epoll_pwait2) ALLOW(eventfd2) ALLOW(execve) ALLOW(execveat) ALLOW(exit) ALLOW(exit_group)
    ALLOW(faccessat) ALLOW(fadvise64) ALLOW(fallocate) ALLOW(fchdir) ALLOW(fchmod) ALLOW(fchmodat) ALLOW(fchown)
    ALLOW(fchownat) ALLOW(fcntl) ALLOW(fdatasync) ALLOW(fgetxattr) ALLOW(flistxattr) ALLOW(flock) ALLOW(fremovexattr)
    ALLOW(fsetxattr) ALLOW(fstat) ALLOW(fstatfs) ALLOW(fsync) ALLOW(ftruncate) ALLOW(futex) ALLOW(getcpu)
    ALLOW(getcwd) ALLOW(getdents64) ALLOW(getegid) ALLOW(geteuid) ALLOW(getgid) ALLOW(getgroups) ALLOW(getitimer)
    ALLOW(getpeername) ALLOW(getpgid) ALLOW(getpid) ALLOW(getppid) ALLOW(getpriority) ALLOW(getrandom)
    ALLOW(getresgid) ALLOW(getresuid) ALLOW(getrlimit) ALLOW(getrusage) ALLOW(getsid) ALLOW(getsockname)
    ALLOW(getsockopt) ALLOW(gettid) ALLOW(gettimeofday) ALLOW(getuid) ALLOW(getxattr) ALLOW(inotify_add_watch)
    ALLOW(inotify_init1) ALLOW(inotify_rm_watch) ALLOW(io_cancel) ALLOW(io_destroy) ALLOW(io_getevents)
    ALLOW(io_setup) ALLOW(io_submit) ALLOW(ioctl) ALLOW(ioprio_get) ALLOW(ioprio_set) ALLOW(kill) ALLOW(lgetxattr)
    ALLOW(linkat) ALLOW(listen) ALLOW(listxattr) ALLOW(llistxattr) ALLOW(lremovexattr) ALLOW(lseek) ALLOW(lsetxattr)
    ALLOW(madvise) ALLOW(membarrier) ALLOW(memfd_create) ALLOW(mincore) ALLOW(mkdirat) ALLOW(mknodat) ALLOW(mlock)
    ALLOW(mlock2) ALLOW(mlockall) ALLOW(mmap) ALLOW(mprotect) ALLOW(mremap) ALLOW(msync) ALLOW(munlock)
    ALLOW(munlockall) ALLOW(munmap) ALLOW(nanosleep) ALLOW(newfstatat) ALLOW(openat) ALLOW(perf_event_open)
    ALLOW(personality) ALLOW(pidfd_getfd) ALLOW(pidfd_open) ALLOW(pidfd_send_signal) ALLOW(pipe2) ALLOW(pivot_root)
    ALLOW(ppoll) ALLOW(prctl) ALLOW(pread64) ALLOW(preadv) ALLOW(preadv2) ALLOW(prlimit64) ALLOW(process_madvise)
    ALLOW(process_vm_readv) ALLOW(process_vm_writev) ALLOW(pselect6) ALLOW(ptrace) ALLOW(pwrite64) ALLOW(pwritev)
    ALLOW(pwritev2) ALLOW(quotactl) ALLOW(read) ALLOW(readahead) ALLOW(readlinkat) ALLOW(readv) ALLOW(recvfrom)
    ALLOW(recvmmsg) ALLOW(recvmsg) ALLOW(removexattr) ALLOW(renameat) ALLOW(renameat2) ALLOW(restart_syscall)
    ALLOW(rt_sigaction) ALLOW(rt_sigpending) ALLOW(rt_sigprocmask) ALLOW(rt_sigqueueinfo) ALLOW(rt_sigreturn)
    ALLOW(rt_sigsuspend) ALLOW(rt_sigtimedwait) ALLOW(rt_tgsigqueueinfo) ALLOW(sched_get_priority_max)
    ALLOW(sched_get_priority_min) ALLOW(sched_getaffinity) ALLOW(sched_getattr) ALLOW(sched_getparam)
    ALLOW(sched_getscheduler) ALLOW(sched_rr_get_interval) ALLOW(sched_setaffinity) ALLOW(sched_setattr)
    ALLOW(sched_setparam) ALLOW(sched_setscheduler) ALLOW(sched_yield) ALLOW(seccomp) ALLOW(sendfile) ALLOW(sendmmsg)
    ALLOW(sendmsg) ALLOW(sendto) ALLOW(set_tid_address) ALLOW(setitimer) ALLOW(setns) ALLOW(setpgid)
    ALLOW(setpriority) ALLOW(setresuid) ALLOW(setrlimit) ALLOW(setsid) ALLOW(setsockopt) ALLOW(setxattr)
    ALLOW(shutdown) ALLOW(sigaltstack) ALLOW(signalfd4) ALLOW(socket) ALLOW(socketpair) ALLOW(splice)
    ALLOW(statfs) ALLOW(statx) ALLOW(symlinkat) ALLOW(sync) ALLOW(sync_file_range) ALLOW(syncfs) ALLOW(sysinfo)
    ALLOW(tee) ALLOW(tgkill) ALLOW(timer_create) ALLOW(timer_delete) ALLOW(timer_getoverrun) ALLOW(timer_gettime)
    ALLOW(timer_settime) ALLOW(timerfd_create) ALLOW(timerfd_gettime) ALLOW(timerfd_settime) ALLOW(times) ALLOW(tkill)
    ALLOW(truncate) ALLOW(umask) ALLOW(uname) ALLOW(unlinkat) ALLOW(unshare) ALLOW(userfaultfd) ALLOW(utimensat)
    ALLOW(vmsplice) ALLOW(wait4) ALLOW(waitid) ALLOW(write) ALLOW(writev)
#ifdef __x86_64__
    ALLOW(arch_prctl) ALLOW(getdents) ALLOW(open) ALLOW(readlink) ALLOW(stat) ALLOW(vfork)
#endif
    /* clang-format on */
};

/* Calls that the desktop's C library needs for each thread, and those that it tries and does without. */
static const unsigned short needed[] = {SYS_rseq};
static const unsigned short tried[] = {SYS_set_robust_list};

static void told_off(int number, siginfo_t *info, void *context) {
  (void)number;
  (void)context;
  dprintf(STDERR_FILENO, "system call %d is not for apps\n", info->si_syscall);
  _exit(1);
}

static unsigned short add(struct sock_filter *program, unsigned short length, const unsigned short *calls, int count,
                          unsigned result) {
  for (int i = 0; i < count; i++) {
    program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result);
  }
  return length;
}

void app_filter_install(void) {
  struct sigaction action = {.sa_sigaction = told_off, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSYS, &action, NULL) == 0, "sigaction");
  enum {
    ALLOWED = sizeof allowed / sizeof allowed[0],
    NEEDED = sizeof needed / sizeof needed[0],
    TRIED = sizeof tried / sizeof tried[0],
  };
  static struct sock_filter program[2 * (ALLOWED + NEEDED + TRIED) + 5];
  unsigned short length = 0;
  program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  length = add(program, length, allowed, ALLOWED, SECCOMP_RET_ALLOW);
  length = add(program, length, needed, NEEDED, SECCOMP_RET_ALLOW);
  length = add(program, length, tried, TRIED, SECCOMP_RET_ERRNO | ENOSYS);
  program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  struct sock_fprog filter = {.len = length, .filter = program};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "%s", strerror(errno));
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "%s", strerror(errno));
}
