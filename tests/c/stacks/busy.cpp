// Threads that hold the C library's and the loader's locks most of the time, sampled a thousand times a second.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

extern "C" {
#include "../check.h"
#include "../support/blocks.h"
#include "../support/stacks.h"
}

namespace {

constexpr unsigned kLoops = 64;

std::atomic<bool> stop{false};

struct Count {
  std::atomic<unsigned> blocks{0}, samples{0}, with_stack{0}, by_signal{0};
};
Count counts[kLoops];

void examine(const bc_block *block) {
  if (block->state != BC_BLOCK_ENDED) {
    return;
  }
  Count &count = counts[block->tag % kLoops];
  count.blocks++;
  for (std::size_t i = 0; i < block->sample_count; i++) {
    const bc_sample *sample = sample_of(block, i);
    count.samples++;
    count.with_stack += sample->frame_count > 0;
    count.by_signal += sample->method == BC_SAMPLE_SIGNAL;
  }
}

void allocate() {
  void *pieces[64];
  for (std::size_t i = 0; i < 64; i++) {
    pieces[i] = std::malloc(16 + i * 977);
    *static_cast<volatile char *>(pieces[i]) = 1;
  }
  for (void *piece : pieces) {
    std::free(piece);
  }
}

void load() {
  void *library = dlopen(VISITOR_ONE, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr, "%s", dlerror());
  CHECK(dlclose(library) == 0, "dlclose");
}

int count_object(dl_phdr_info *info, std::size_t, void *data) {
  *static_cast<std::size_t *>(data) += info->dlpi_phnum;
  return 0;
}

void iterate() {
  std::size_t headers = 0;
  dl_iterate_phdr(count_object, &headers);
  CHECK(headers > 0, "no program headers");
}

__attribute__((noinline)) int throw_from(int depth) {
  if (depth == 0) {
    throw std::runtime_error("five deep");
  }
  return throw_from(depth - 1) + 1;
}

void throw_and_catch() {
  bool caught = false;
  try {
    throw_from(5);
  } catch (const std::exception &) {
    caught = true;
  }
  CHECK(caught, "not caught");
}

thread_local int of_thread[256];

void *touch(void *) {
  of_thread[17]++;
  return &of_thread[17];
}

void make_thread() {
  join_thread(start_thread(touch, nullptr));
}

struct Worker {
  const char *name;
  void (*work)();
  std::atomic<std::uint64_t> rounds;
};
Worker workers[] = {{"malloc", allocate, {0}},
                    {"dlopen", load, {0}},
                    {"dl_iterate_phdr", iterate, {0}},
                    {"throw", throw_and_catch, {0}},
                    {"threads", make_thread, {0}}};
constexpr unsigned kWorkers = sizeof workers / sizeof workers[0];

void *run_worker(void *argument) {
  Worker *worker = static_cast<Worker *>(argument);
  bc_loop *loop = watched(worker->name);
  while (!stop) {
    bc_dispatch_begin(loop, worker->name, static_cast<std::uint64_t>(worker - workers));
    std::uint64_t until = now_ns() + 400000000;
    while (now_ns() < until) {
      worker->work();
      worker->rounds++;
    }
    bc_dispatch_end(loop);
  }
  return nullptr;
}

void five(unsigned seconds) {
  bc_config config = config_of(5);
  config.sample_interval_ms = 1;
  config.sample_capacity = 8192;
  blocks_examine(examine);
  install_and_start(&config);
  unsigned long threads[kWorkers];
  for (unsigned i = 0; i < kWorkers; i++) {
    threads[i] = start_thread(run_worker, &workers[i]);
  }
  // All go on in every fifth of the time.
  for (unsigned part = 0; part < 5; part++) {
    std::uint64_t before[kWorkers];
    for (unsigned i = 0; i < kWorkers; i++) {
      before[i] = workers[i].rounds;
    }
    sleep_ms(seconds * 200);
    for (unsigned i = 0; i < kWorkers; i++) {
      CHECK(workers[i].rounds > before[i], "%s has stopped in part %u", workers[i].name, part);
    }
  }
  stop = true;
  for (unsigned long thread : threads) {
    join_thread(thread);
  }
  flush();
  bc_health end = health();
  for (unsigned i = 0; i < kWorkers; i++) {
    std::printf("%-16s %8llu rounds, %3u blocks, %5u samples, %5u with stack, %5u by signal\n", workers[i].name,
                static_cast<unsigned long long>(workers[i].rounds), counts[i].blocks.load(), counts[i].samples.load(),
                counts[i].with_stack.load(), counts[i].by_signal.load());
    CHECK(counts[i].blocks >= 1, "no block of %s", workers[i].name);
    CHECK(counts[i].with_stack >= seconds, "%u stacks of %s", counts[i].with_stack.load(), workers[i].name);
    CHECK(counts[i].with_stack * 4 >= counts[i].samples, "%u stacks of %u samples", counts[i].with_stack.load(),
          counts[i].samples.load());
  }
  std::printf("%llu signals, %llu unanswered, %llu waits cut, %llu samples lost, monitor %llu times late\n",
              static_cast<unsigned long long>(end.signals_sent), static_cast<unsigned long long>(end.samples_unanswered),
              static_cast<unsigned long long>(end.waits_cut), static_cast<unsigned long long>(end.samples_lost),
              static_cast<unsigned long long>(end.monitor_late));
  CHECK_OK(bc_uninstall());
}

void busy_five() {
  five(6);
}

void busy_five_long() {
  five(20);
}

pthread_barrier_t all_blocked;

void *block_at_once(void *argument) {
  std::uint64_t number = reinterpret_cast<std::uintptr_t>(argument);
  bc_loop *loop = watched("one of many");
  pthread_barrier_wait(&all_blocked);
  bc_dispatch_begin(loop, "blocked", number);
  sleep_ms(700);
  bc_dispatch_end(loop);
  return nullptr;
}

// The capacity is shared: each loop that is blocked at the same time has stacks.
void sixty_four_loops() {
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  config.max_loops = kLoops;
  config.report_ongoing = BC_OFF;
  blocks_examine(examine);
  install_and_start(&config);
  CHECK(pthread_barrier_init(&all_blocked, nullptr, kLoops) == 0, "barrier");
  unsigned long threads[kLoops];
  for (std::uintptr_t i = 0; i < kLoops; i++) {
    threads[i] = start_thread(block_at_once, reinterpret_cast<void *>(i));
  }
  for (unsigned long thread : threads) {
    join_thread(thread);
  }
  flush();
  unsigned fewest = ~0u, most = 0;
  for (Count &count : counts) {
    CHECK(count.blocks == 1, "%u blocks", count.blocks.load());
    unsigned with_stack = count.with_stack;
    fewest = with_stack < fewest ? with_stack : fewest;
    most = with_stack > most ? with_stack : most;
  }
  bc_health end = health();
  std::printf("%u to %u stacks a loop; %llu samples taken, %llu lost\n", fewest, most,
              static_cast<unsigned long long>(end.samples_taken), static_cast<unsigned long long>(end.samples_lost));
  CHECK(fewest >= 1, "a loop has no stack");
  CHECK_OK(bc_uninstall());
}

}  // namespace

CASES({"busy_five", busy_five}, {"busy_five_long", busy_five_long}, {"sixty_four_loops", sixty_four_loops})
