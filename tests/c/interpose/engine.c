#include "engine.h"

#include <android/looper.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200

/* A source of events. Its address is what the looper is given as data. */
struct source {
  const char *name;
  int fd;
  int calls, calls_left;
};

static ALooper *looper;
static FILE *out;
static struct engine_counts counts;
static unsigned slow;
static struct source input, brief, moving, commands, heavy;
static struct source *const sources[] = {&input, &brief, &moving, &commands, &heavy};

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void open_source(struct source *source, const char *name) {
  memset(source, 0, sizeof *source);
  source->name = name;
  source->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (source->fd < 0) {
    fail("eventfd");
  }
}

static void raise_event(struct source *source) {
  uint64_t one = 1;
  if (write(source->fd, &one, sizeof one) != sizeof one) {
    fail(source->name);
  }
}

static void take_event(int fd) {
  uint64_t value;
  if (read(fd, &value, sizeof value) != sizeof value) {
    fail("read");
  }
}

static const char *name_of_fd(int fd) {
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    if (sources[i]->fd == fd) {
      return sources[i]->name;
    }
  }
  return fd == 0 ? "none" : "some other";
}

static const char *name_of_data(const void *data) {
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    if (sources[i] == data) {
      return sources[i]->name;
    }
  }
  return data == NULL ? "none" : "some other";
}

static void work_slowly(void) {
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += (long)slow * 1000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static int called(const char *callback, int fd, int events, void *data) {
  struct source *source = data;
  counts.callbacks++;
  source->calls++;
  take_event(fd);
  fprintf(out, "  %s(%s, %d, %s) for the %d. time\n", callback, name_of_fd(fd), events, name_of_data(data), source->calls);
  return 1;
}

static int on_input(int fd, int events, void *data) {
  /* Any result but 0 keeps it. */
  return called("on_input", fd, events, data) ? -7 : 0;
}

static int on_brief(int fd, int events, void *data) {
  struct source *source = data;
  called("on_brief", fd, events, data);
  return --source->calls_left > 0;
}

static int on_heavy(int fd, int events, void *data) {
  called("on_heavy", fd, events, data);
  work_slowly();
  return 1;
}

static int on_moved(int fd, int events, void *data);

/* Gives its descriptor to the other callback and back, from inside. */
static int move(int fd, ALooper_callbackFunc to) {
  int removed = ALooper_removeFd(looper, fd);
  int again = ALooper_removeFd(looper, fd);
  int added = ALooper_addFd(looper, fd, 0, ALOOPER_EVENT_INPUT, to, &moving);
  fprintf(out, "  removed %d, again %d, added %d\n", removed, again, added);
  return 1;
}

static int on_moving(int fd, int events, void *data) {
  called("on_moving", fd, events, data);
  return move(fd, on_moved);
}

static int on_moved(int fd, int events, void *data) {
  called("on_moved", fd, events, data);
  return move(fd, on_moving);
}

static int poll_once(int timeout_ms) {
  int fd = -9, events = -9;
  void *data = &fd;
  counts.polls++;
  int result = ALooper_pollOnce(timeout_ms, &fd, &events, &data);
  fprintf(out, "pollOnce(%d) = %d: %s, %d, %s\n", timeout_ms, result, name_of_fd(fd), events, name_of_data(data));
  if (result >= 0) {
    take_event(fd);
  }
  return result;
}

static int poll_all(int timeout_ms) {
  int fd = -9, events = -9;
  void *data = &fd;
  counts.polls++;
  int result = ALooper_pollAll(timeout_ms, &fd, &events, &data);
  fprintf(out, "pollAll(%d) = %d: %s, %d, %s\n", timeout_ms, result, name_of_fd(fd), events, name_of_data(data));
  if (result >= 0) {
    take_event(fd);
  }
  return result;
}

static void add(struct source *source, int ident, ALooper_callbackFunc callback) {
  fprintf(out, "addFd(%s) = %d\n", source->name,
          ALooper_addFd(looper, source->fd, ident, ALOOPER_EVENT_INPUT, callback, source));
}

static void play(unsigned round) {
  raise_event(&input);
  poll_once(-1);
  if (round % 3 == 0) {
    raise_event(&commands);
    poll_once(-1);
  }
  if (round % 4 == 0) {
    raise_event(&commands);
    raise_event(&input);
    poll_all(1000);
    poll_all(0);
  }
  if (round % 5 == 0) {
    raise_event(&moving);
    poll_once(1000);
  }
  if (round % 7 == 0) {
    ALooper_wake(looper);
    poll_once(-1);
  }
  if (round % 50 == 0) {
    /* Three calls, then it has taken itself away; and comes again. */
    brief.calls_left = 3;
    add(&brief, 0, on_brief);
    for (int i = 0; i < 4; i++) {
      raise_event(&brief);
      poll_once(i < 3 ? -1 : 10);
    }
    take_event(brief.fd);
    fprintf(out, "removeFd(brief) = %d\n", ALooper_removeFd(looper, brief.fd));
  }
  if (round % 60 == 0) {
    /* Added twice: the second callback stands for both. */
    add(&input, 3, on_moved);
    add(&input, 3, on_input);
    poll_once(1);
  }
  if (round == 20) {
    raise_event(&heavy);
    poll_once(-1);
    poll_once(0);
    work_slowly();
    poll_once(0);
  }
}

struct engine_counts engine_run(FILE *transcript, unsigned slow_ms) {
  out = transcript;
  slow = slow_ms;
  counts = (struct engine_counts){0, 0};
  poll_once(0); /* no looper yet */
  looper = ALooper_prepare(ALOOPER_PREPARE_ALLOW_NON_CALLBACKS);
  open_source(&input, "input");
  open_source(&brief, "brief");
  open_source(&moving, "moving");
  open_source(&commands, "commands");
  open_source(&heavy, "heavy");
  add(&input, 5, on_input);
  add(&moving, 0, on_moving);
  add(&commands, 12, NULL);
  add(&heavy, 0, on_heavy);
  fprintf(out, "addFd without callback and ident = %d\n",
          ALooper_addFd(looper, brief.fd, -4, ALOOPER_EVENT_INPUT, NULL, &brief));
  for (unsigned round = 1; round <= ROUNDS; round++) {
    play(round);
  }
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    fprintf(out, "removeFd(%s) = %d\n", sources[i]->name, ALooper_removeFd(looper, sources[i]->fd));
    close(sources[i]->fd);
  }
  fprintf(out, "%u callbacks in %u polls\n", counts.callbacks, counts.polls);
  return counts;
}
