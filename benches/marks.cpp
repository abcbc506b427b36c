// What a mark costs beside two reads of the clock, and a watched looper round beside a bare one. The library runs and
// stores reports, as in a game.
#include <android/looper.h>
#include <blockcanary.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "rounds.hpp"

namespace {

bc_loop *loop;
int bare_event, watched_event;

void must(bool good, const char *what) {
  if (!good) {
    std::perror(what);
    std::exit(1);
  }
}

// Keeps the compiler from leaving out or merging what is measured.
inline void keep(const void *memory) {
  asm volatile("" : : "g"(memory) : "memory");
}

void two_clock_reads(unsigned times) {
  timespec begin, end;
  for (unsigned i = 0; i < times; i++) {
    clock_gettime(CLOCK_MONOTONIC, &begin);
    keep(&begin);
    clock_gettime(CLOCK_MONOTONIC, &end);
    keep(&end);
  }
}

void dispatch(unsigned times) {
  for (unsigned i = 0; i < times; i++) {
    bc_dispatch_begin(loop, "dispatch", i);
    bc_dispatch_end(loop);
  }
}

void inner_dispatch(unsigned times) {
  bc_dispatch_begin(loop, "outer", 0);
  dispatch(times);
  bc_dispatch_end(loop);
}

int on_event(int fd, int, void *) {
  std::uint64_t value;
  return read(fd, &value, sizeof value) == sizeof value;
}

void signal_event(int fd) {
  std::uint64_t one = 1;
  must(write(fd, &one, sizeof one) == sizeof one, "write");
}

void bare_round(unsigned times) {
  for (unsigned i = 0; i < times; i++) {
    signal_event(bare_event);
    must(ALooper_pollOnce(-1, nullptr, nullptr, nullptr) == ALOOPER_POLL_CALLBACK, "ALooper_pollOnce");
  }
}

void watched_round(unsigned times) {
  for (unsigned i = 0; i < times; i++) {
    signal_event(watched_event);
    must(bc_looper_poll_once(-1, nullptr, nullptr, nullptr) == ALOOPER_POLL_CALLBACK, "bc_looper_poll_once");
  }
}

void install(const char *report_dir) {
  bc_config config;
  bc_config_init(&config, sizeof config);
  config.report_dir = report_dir;
  must(bc_install(&config) == BC_OK && bc_start() == BC_OK && bc_loop_watch("bench", &loop) == BC_OK, "blockcanary");
}

}  // namespace

int main() {
  char report_dir[] = "/tmp/blockcanary-bench-XXXXXX";
  must(mkdtemp(report_dir) != nullptr, report_dir);
  install(report_dir);
  ALooper *looper = ALooper_prepare(0);
  bare_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  watched_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  must(looper != nullptr &&
           ALooper_addFd(looper, bare_event, 0, ALOOPER_EVENT_INPUT, on_event, nullptr) == 1 &&
           bc_looper_add_fd(looper, watched_event, 0, ALOOPER_EVENT_INPUT, on_event, nullptr) == 1,
       "looper");

  // The marks come first: once a thread polls through the library, what it does between polls is a dispatch already.
  constexpr unsigned kMarks = 40000, kPolls = 3000, kRounds = 21;
  std::vector<bench::Candidate> marks = {
      {"two clock_gettime (vDSO)", two_clock_reads, kMarks, 0, 0, {}},
      {"bc_dispatch_begin + bc_dispatch_end", dispatch, kMarks, 0, 1.20, {}},
      {"the same inside another dispatch", inner_dispatch, kMarks, 0, 1.20, {}},
  };
  std::vector<bench::Candidate> polls = {
      {"looper round: eventfd, pollOnce, callback", bare_round, kPolls, 0, 0, {}},
      {"the same by bc_looper_*: callback and poll to poll", watched_round, kPolls, 0, 1.10, {}},
  };
  bench::measure(marks, kRounds);
  bench::measure(polls, kRounds);
  bool kept = bench::print(marks);
  kept &= bench::print(polls);

  bc_health health = {};
  health.struct_size = sizeof health;
  must(bc_health_get(&health) == BC_OK && health.calls_misused == 0 && health.loops_refused == 0, "misuse");
  must(bc_uninstall() == BC_OK, "bc_uninstall");
  rmdir(report_dir);
  return kept ? 0 : 1;
}
