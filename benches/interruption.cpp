// How long a running thread is away when it is sampled, beside what an empty handler costs it. The thread, 128 frames
// deep, reads the clock without a pause; a gap between two reads in which its signal stack was written to is a signal.
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

constexpr unsigned kDepth = 128, kRounds = 9, kRoundMs = 1000;
constexpr double kBar = 1.05;
constexpr std::size_t kStack = 64 * 1024;
constexpr unsigned char kUntouched = 0x5a;

char *signal_stack;
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
  std::uint64_t until = bench::now_ns() + kRoundMs * 1000000ull;
  std::memset(signal_stack, kUntouched, kStack);
  for (std::uint64_t last = bench::now_ns(); last < until;) {
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
  must(gaps.size() >= 100, "too few signals");
  return bench::median(gaps);
}

void empty(int, siginfo_t *, void *) {}

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

double with_empty_handler() {
  struct sigaction action = {};
  action.sa_sigaction = empty;
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
  std::vector<double> ratios, bare, sampled;
  for (unsigned round = 0; round < kRounds; round++) {
    bool first = round % 2 == 0;
    double one = first ? with_empty_handler() : with_samples(loop);
    double other = first ? with_samples(loop) : with_empty_handler();
    bare.push_back(first ? one : other);
    sampled.push_back(first ? other : one);
    ratios.push_back(sampled.back() / bare.back());
  }
  double ratio = bench::median(ratios);
  std::printf("%s\n", name);
  std::printf("  %-56s %10.1f %7.3f\n", "away for an empty handler", bench::median(bare), 1.0);
  std::printf("  %-56s %10.1f %7.3f", "away for a sample", bench::median(sampled), ratio);
  if (!is_judged) {
    std::printf("\n");
    return true;
  }
  std::printf("  %.2f%s\n", kBar, ratio <= kBar ? "" : "  MISSED");
  return ratio <= kBar;
}

}  // namespace

int main() {
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
