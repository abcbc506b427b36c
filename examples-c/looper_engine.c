/* A small engine on Android's looper: a thread with input from an eventfd, frames from a timerfd, and a pipe by which it
 * is told to quit. Four times it blocks on purpose; the library must report each of them once, with the guilty function.
 *
 *   looper_engine [--seconds N] [--report-dir DIR] [--threshold-ms N]
 *
 * Ends with 1 if a block that was made was not reported, reported twice, or not explained. */
#include <android/looper.h>
#include <blockcanary.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "blocking.h"
#include "summary.h"

/* What the engine is told to do, in this order. Its number is the tag of the block. */
static const struct action {
  const char *function;
  void (*run)(unsigned ms);
} actions[] = {
    {"engine_spin", engine_spin},
    {"engine_sleep", engine_sleep},
    {"engine_wait_for_lock", engine_wait_for_lock},
    {"engine_slow_read", engine_slow_read},
};
enum { ACTIONS = sizeof actions / sizeof actions[0] };

struct engine {
  bc_loop *loop;
  int input, ticks, quit[2];
  unsigned threshold_ms;
  bool running;
  atomic_uint frames, done;
};

static atomic_uint reported[ACTIONS], explained[ACTIONS];
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static bool on_terminal;

static void check(bool good, const char *what) {
  if (!good) {
    perror(what);
    exit(1);
  }
}

static void check_status(bc_status status, const char *what) {
  if (status != BC_OK) {
    fprintf(stderr, "%s: %s\n", what, bc_status_str(status));
    exit(1);
  }
}

/* Runs on the library's reporter thread. */
static void on_block(const bc_block *block, void *user_data) {
  (void)user_data;
  if (block->state != BC_BLOCK_ENDED) {
    return;
  }
  bool made = block->tag >= 1 && block->tag <= ACTIONS;
  pthread_mutex_lock(&output);
  fputs(on_terminal ? "\r\033[K" : "", stdout);
  bool named = summary_print(block, made ? actions[block->tag - 1].function : NULL);
  fflush(stdout);
  pthread_mutex_unlock(&output);
  if (made) {
    atomic_fetch_add(&reported[block->tag - 1], 1);
    atomic_fetch_add(&explained[block->tag - 1], named);
  }
}

/* The functions of the engine's thread are not static: reports take names from the dynamic symbols. */
int on_input(int fd, int events, void *data);
int on_tick(int fd, int events, void *data);
int on_quit(int fd, int events, void *data);
void *engine_main(void *data);

/* Input: the next action, as a dispatch with a name of its own. */
int on_input(int fd, int events, void *data) {
  struct engine *engine = data;
  (void)events;
  uint64_t wanted;
  check(read(fd, &wanted, sizeof wanted) == sizeof wanted, "input");
  for (; wanted > 0; wanted--) {
    unsigned number = atomic_load(&engine->done);
    const struct action *action = &actions[number % ACTIONS];
    bc_dispatch_begin(engine->loop, action->function, number + 1);
    action->run(engine->threshold_ms * 3);
    bc_dispatch_end(engine->loop);
    atomic_fetch_add(&engine->done, 1);
  }
  return 1;
}

/* A frame: some work, far below the threshold. */
int on_tick(int fd, int events, void *data) {
  struct engine *engine = data;
  (void)events;
  uint64_t ticks;
  check(read(fd, &ticks, sizeof ticks) == sizeof ticks, "tick");
  bc_dispatch_begin(engine->loop, "frame", 1000000 + atomic_fetch_add(&engine->frames, 1));
  for (volatile unsigned n = 0; n < 100000; n++) {
  }
  bc_dispatch_end(engine->loop);
  return 1;
}

int on_quit(int fd, int events, void *data) {
  struct engine *engine = data;
  char byte;
  (void)events;
  check(read(fd, &byte, 1) == 1, "quit");
  engine->running = false;
  return 0;
}

void *engine_main(void *data) {
  struct engine *engine = data;
  check_status(bc_loop_watch("engine", &engine->loop), "bc_loop_watch");
  ALooper *looper = ALooper_prepare(0);
  check(looper != NULL, "ALooper_prepare");
  bool added = bc_looper_add_fd(looper, engine->input, 0, ALOOPER_EVENT_INPUT, on_input, engine) == 1 &&
               bc_looper_add_fd(looper, engine->ticks, 0, ALOOPER_EVENT_INPUT, on_tick, engine) == 1 &&
               bc_looper_add_fd(looper, engine->quit[0], 0, ALOOPER_EVENT_INPUT, on_quit, engine) == 1;
  check(added, "bc_looper_add_fd");
  for (engine->running = true; engine->running;) {
    bc_looper_poll_once(-1, NULL, NULL, NULL);
  }
  bc_looper_remove_fd(looper, engine->input);
  bc_looper_remove_fd(looper, engine->ticks);
  return NULL;
}

static unsigned blocks_reported(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < ACTIONS; i++) {
    sum += atomic_load(&reported[i]);
  }
  return sum;
}

/* Spreads the actions over the time and tells how it goes. */
static void conduct(struct engine *engine, double seconds) {
  unsigned asked = 0, told = 0;
  for (double now = 0; now < seconds; now += 0.05) {
    if (asked < ACTIONS && now >= seconds * (asked + 0.2) / ACTIONS) {
      uint64_t one = 1;
      check(write(engine->input, &one, sizeof one) == sizeof one, "input");
      asked++;
    }
    if (on_terminal || (unsigned)now >= told) {
      pthread_mutex_lock(&output);
      printf("%s%4.1f s: %u frames, %u blocks made, %u reported%s", on_terminal ? "\r\033[K" : "", now,
             atomic_load(&engine->frames), atomic_load(&engine->done), blocks_reported(), on_terminal ? "" : "\n");
      fflush(stdout);
      pthread_mutex_unlock(&output);
      told = (unsigned)now + 1;
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  }
  fputs(on_terminal ? "\r\033[K" : "", stdout);
}

/* Gives how many of the blocks were not reported as they must be. */
static int verdict(const struct engine *engine) {
  int wrong = atomic_load(&engine->done) != ACTIONS;
  for (unsigned i = 0; i < ACTIONS; i++) {
    unsigned times = atomic_load(&reported[i]);
    if (times != 1) {
      printf("%s was reported %u times\n", actions[i].function, times);
    } else if (atomic_load(&explained[i]) != 1) {
      printf("%s is not named among the hottest frames of its block\n", actions[i].function);
    }
    wrong += times != 1 || atomic_load(&explained[i]) != 1;
  }
  printf("%u frames, %u blocks made, %u reported: %s\n", atomic_load(&engine->frames), atomic_load(&engine->done),
         blocks_reported(), wrong == 0 ? "each once, with the function that blocked" : "NOT as it must be");
  return wrong;
}

int main(int argc, char **argv) {
  struct engine engine = {.threshold_ms = 100};
  double seconds = 5;
  const char *report_dir = "reports";
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--seconds") == 0 && atof(value) > 0) {
      seconds = atof(value);
    } else if (strcmp(argv[i], "--report-dir") == 0 && value[0] != 0) {
      report_dir = value;
    } else if (strcmp(argv[i], "--threshold-ms") == 0 && atoi(value) > 0) {
      engine.threshold_ms = (unsigned)atoi(value);
    } else {
      fprintf(stderr, "usage: %s [--seconds N] [--report-dir DIR] [--threshold-ms N]\n", argv[0]);
      return 2;
    }
  }
  on_terminal = isatty(STDOUT_FILENO);

  bc_config config;
  bc_config_init(&config, sizeof config);
  config.block_threshold_ms = engine.threshold_ms;
  config.report_dir = report_dir;
  config.qualifier = "looper_engine";
  config.version_name = bc_version();
  check_status(bc_install(&config), "bc_install");
  check_status(bc_set_listener(on_block, NULL), "bc_set_listener");
  check_status(bc_start(), "bc_start");

  engine.input = eventfd(0, EFD_CLOEXEC);
  engine.ticks = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct itimerspec frame = {.it_interval.tv_nsec = 16666667, .it_value.tv_nsec = 16666667};
  check(engine.input >= 0 && pipe(engine.quit) == 0 && timerfd_settime(engine.ticks, 0, &frame, NULL) == 0, "descriptors");
  blocking_init();
  pthread_t thread;
  check(pthread_create(&thread, NULL, engine_main, &engine) == 0, "pthread_create");
  conduct(&engine, seconds);
  check(write(engine.quit[1], "q", 1) == 1, "quit");
  pthread_join(thread, NULL);
  check_status(bc_flush(5000), "bc_flush");
  blocking_end();
  int wrong = verdict(&engine);
  check_status(bc_uninstall(), "bc_uninstall");
  return wrong == 0 ? 0 : 1;
}
