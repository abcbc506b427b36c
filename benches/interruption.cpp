// How long a running thread is away when it is sampled, beside what an empty handler costs it. The thread, 128 frames
// deep, reads the clock without a pause; a gap between two reads in which its signal stack was written to is a signal.
// The bar is the goal; the handler in between shows how much of it is spent by what every sample of such a stack needs.
#include <blockcanary.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "rounds.hpp"

namespace {

constexpr unsigned kDepth = 128, kRounds = 9, kRoundMs = 1000, kSignals = 100;
constexpr double kBar = 1.05;
constexpr std::size_t kStack = 64 * 1024;
constexpr unsigned char kUntouched = 0x5a;

char *signal_stack;
const char *stack_high;
std::vector<double> gaps;

void must(bool good, const char *what) {
  if (!good) {
    std::perror(what);
    std::exit(1);
  }
}

// The kernel writes its frame from the upper end down.
bool was_written() {
  const char *near_end = signal_stack + kStack - 512;
  for (int i = 0; i < 512; i++) {
    if (near_end[i] != static_cast<char>(kUntouched)) {
      return true;
    }
  }
  return false;
}

void watch_gaps() {
  std::uint64_t begin = bench::now_ns(), until = begin + kRoundMs * 1000000ull, patience = begin + 30 * kRoundMs * 1000000ull;
  std::memset(signal_stack, kUntouched, kStack);
  for (std::uint64_t last = bench::now_ns(); last < until || (gaps.size() < kSignals && last < patience);) {
    std::uint64_t now = bench::now_ns();
    if (now - last > 500 && was_written()) {
      gaps.push_back(static_cast<double>(now - last));
      std::memset(signal_stack, kUntouched, kStack);
      now = bench::now_ns();
    }
    last = now;
  }
}

void pin(pid_t tid, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  must(sched_setaffinity(tid, sizeof set, &set) == 0, "sched_setaffinity");
}

// The library's threads, so that what they do is not taken for what the handler does.
void pin_library(int core) {
  DIR *tasks = opendir("/proc/self/task");
  must(tasks != nullptr, "/proc/self/task");
  unsigned found = 0;
  while (const dirent *task = readdir(tasks)) {
    char path[300], name[32] = "";
    std::snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    if (std::FILE *file = std::fopen(path, "r")) {
      if (std::fgets(name, sizeof name, file) != nullptr && std::strncmp(name, "bc-", 3) == 0) {
        pin(static_cast<pid_t>(std::atoi(task->d_name)), core);
        found++;
      }
      std::fclose(file);
    }
  }
  closedir(tasks);
  must(found >= 2, "threads of the library");
}

// Frames of a size as games have them: the stack is larger than what a sample copies of it.
__attribute__((noinline)) unsigned deep(unsigned depth) {
  volatile char room[160];
  room[0] = 1;
  if (depth == 0) {
    watch_gaps();
    return 0;
  }
  return deep(depth - 1) + static_cast<unsigned>(room[0]);
}

double median_gap() {
  gaps.clear();
  must(deep(kDepth) == kDepth, "depth");
  must(gaps.size() >= kSignals, "too few signals");
  return bench::median(gaps);
}

void empty(int, siginfo_t *, void *) {}

constexpr std::size_t kCopy = 16 * 1024;
char copy[kCopy];
volatile std::uintptr_t records[2 * kDepth];

// What a sample of 128 frames cannot do without, and no more: the lowest 16 KiB of the stack, and the frame records above.
// Nobody reads it on another processor, as the library's monitor reads its answers.
void barest(int, siginfo_t *, void *context) {
  const greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  const char *low = reinterpret_cast<const char *>(registers[REG_RSP]);
  if (stack_high - low < static_cast<std::ptrdiff_t>(kCopy)) {
    return;
  }
  std::memcpy(copy, low, kCopy);
  unsigned count = 0;
  auto above = reinterpret_cast<std::uintptr_t>(low) + kCopy, high = reinterpret_cast<std::uintptr_t>(stack_high);
  std::uintptr_t last = 0, record = static_cast<std::uintptr_t>(registers[REG_RBP]);
  while (record > last && record + 16 <= high && count + 2 <= 2 * kDepth) {
    if (record >= above) {
      records[count++] = record;
      records[count++] = reinterpret_cast<const std::uintptr_t *>(record)[1];
    }
    last = record;
    record = *reinterpret_cast<const std::uintptr_t *>(record);
  }
}

std::atomic<bool> stop{false};
bool pinned;
pid_t target;

void *send(void *) {
  if (pinned) {
    pin(0, 1);
  }
  while (!stop) {
    timespec pause = {0, 1000000};
    nanosleep(&pause, nullptr);
    syscall(SYS_tgkill, getpid(), target, SIGUSR1);
  }
  return nullptr;
}

double with_handler(void (*handler)(int, siginfo_t *, void *)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  must(sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  stop = false;
  target = static_cast<pid_t>(syscall(SYS_gettid));
  pthread_t sender;
  must(pthread_create(&sender, nullptr, send, nullptr) == 0, "pthread_create");
  double gap = median_gap();
  stop = true;
  pthread_join(sender, nullptr);
  return gap;
}

double with_samples(bc_loop *loop) {
  bc_dispatch_begin(loop, "bench", 0);
  double gap = median_gap();
  bc_dispatch_end(loop);
  return gap;
}

bool measure(bc_loop *loop, const char *name, bool is_judged) {
  constexpr std::size_t kKinds = 3;
  std::vector<double> gap[kKinds], ratio[kKinds];
  for (unsigned round = 0; round < kRounds; round++) {
    for (std::size_t i = 0; i < kKinds; i++) {
      std::size_t kind = (round + i) % kKinds;
      gap[kind].push_back(kind == 0 ? with_handler(empty) : kind == 1 ? with_handler(barest) : with_samples(loop));
    }
    for (std::size_t kind = 0; kind < kKinds; kind++) {
      ratio[kind].push_back(gap[kind].back() / gap[0].back());
    }
  }
  std::printf("%s\n", name);
  const char *names[kKinds] = {"away for an empty handler", "away for a handler that copies 16 KiB and follows frames",
                               "away for a sample"};
  for (std::size_t kind = 0; kind < kKinds; kind++) {
    std::printf("  %-56s %10.1f %7.3f", names[kind], bench::median(gap[kind]), bench::median(ratio[kind]));
    bool missed = bench::median(ratio[kind]) > kBar;
    if (kind == kKinds - 1 && is_judged) {
      std::printf("  %.2f%s", kBar, missed ? "  MISSED" : "");
    }
    std::printf("\n");
  }
  return !is_judged || bench::median(ratio[kKinds - 1]) <= kBar;
}

}  // namespace

int main() {
  char here = 0;
  stack_high = &here;
  signal_stack = static_cast<char *>(
      mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  must(signal_stack != MAP_FAILED, "mmap");
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = kStack;
  must(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  gaps.reserve(100000);

  bc_config config;
  bc_config_init(&config, sizeof config);
  config.block_threshold_ms = 10;
  config.sample_interval_ms = 1;
  config.sample_capacity = 4096;
  config.max_stack_depth = 256;
  config.sampling_method = BC_SAMPLING_SIGNAL;
  bc_loop *loop = nullptr;
  must(bc_install(&config) == BC_OK && bc_start() == BC_OK && bc_loop_watch("bench", &loop) == BC_OK, "blockcanary");

  bool kept = true;
  std::printf("%-58s %10s %7s  %s\n", "a running thread, 128 frames deep", "median ns", "ratio", "bar");
  kept &= measure(loop, "all threads where the scheduler puts them", false);
  pinned = sysconf(_SC_NPROCESSORS_ONLN) > 1;
  if (pinned) {
    pin(0, 0);
    pin_library(1);
    kept &= measure(loop, "sender and library on another core", true);
  }
  must(bc_uninstall() == BC_OK, "bc_uninstall");
  return kept ? 0 : 1;
}
