/* Staged causes: each is found in nearly every one of a hundred short blocks, and said in words. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

#define RUNS 100
#define LIMIT_MS 30
#define BLOCK_MS 60

static const char *folder;

/* What other threads do for a run: told by a number that they wait for. */
static atomic_uint run;
static atomic_bool over;

static void wait_for_run(unsigned n) {
  while (atomic_load(&run) < n && !atomic_load(&over)) {
    pause_ms(1);
  }
}

static int32_t tid_of_self(void) { return (int32_t)syscall(SYS_gettid); }

/* Is this the cause, in these words? */
typedef bool (*judge)(const struct told *told);

/* What is staged by two threads begins with a sleep until both are ready; on a busy machine that may be most of a block. */
static unsigned least = 95;

/* Blocks `RUNS` times and counts the blocks that are told rightly. */
static void staged(const char *name, judge is_right, void (*block)(unsigned n)) {
  bc_config config = config_of(LIMIT_MS);
  folder = fresh_directory(name);
  config.report_dir = folder;
  install_and_start(&config);
  bc_loop *loop = watched(name);
  for (unsigned n = 1; n <= RUNS; n++) {
    bc_dispatch_begin(loop, name, n);
    block(n);
    bc_dispatch_end(loop);
    flush();
  }
  atomic_store(&over, true);
  unsigned right = 0, early = 0, seen = blocks_in(BC_BLOCK_ENDED);
  const struct told *wrong = NULL;
  for (unsigned n = 1; n <= RUNS; n++) {
    if (blocks_tagged(BC_BLOCK_ENDED, n) == 0) {
      continue;
    }
    const struct told *told = blocks_get(BC_BLOCK_ENDED, n);
    right += is_right(told);
    wrong = is_right(told) ? wrong : told;
    early += blocks_tagged(BC_BLOCK_ONGOING, n) == 1 && is_right(blocks_get(BC_BLOCK_ONGOING, n));
  }
  printf("%s: %u blocks, %u told rightly, %u already while they went on\n", name, seen, right, early);
  printf("  for example: %s\n", blocks_get(BC_BLOCK_ENDED, RUNS / 2)->detail);
  if (wrong != NULL) {
    printf("  not right: cause %u, %s\n", wrong->cause, wrong->detail);
  }
  CHECK(seen == RUNS && right >= least, "%u blocks, %u right, %u are wanted", seen, right, least);
}

static bool says(const struct told *told, bc_cause cause, const char *words) {
  return told->cause == cause && strstr(told->detail, words) != NULL;
}

static void finish(void) {
  bc_health end = health();
  printf("  %d samples, %d unanswered, %d waits cut\n", (int)end.samples_taken, (int)end.samples_unanswered,
         (int)end.waits_cut);
  CHECK(end.waits_cut == 0, "waits were cut short");
  CHECK_OK(bc_uninstall());
}

/* A report of one of the blocks, whole; NUL behind. */
static const char *report_of(unsigned n, const char *ending) {
  static char text[1 << 20];
  char path[600];
  snprintf(path, sizeof path, "%.*s%s", (int)(strlen(blocks_get(BC_BLOCK_ENDED, n)->path) - 4),
           blocks_get(BC_BLOCK_ENDED, n)->path, ending);
  CHECK(read_whole(path, text, sizeof text) > 0, "nothing in %s", path);
  return text;
}

static const char *json_of(unsigned n) {
  const char *text = report_of(n, ".json");
  CHECK(json_valid(text), "no JSON: %u", n);
  return text;
}

/* This function is among the frames of the first thread that the report has beside the blocked one. */
static void check_holder(unsigned n, const char *name, const char *function) {
  const char *threads = json_member(json_of(n), "threads");
  char quoted[128];
  CHECK(threads != NULL && *threads == '[', "no threads");
  CHECK(json_is(threads, "role", "\"lock holder\""), "%.200s", threads);
  snprintf(quoted, sizeof quoted, "\"%s\"", name);
  CHECK(json_is(threads, "name", quoted), "%.200s", threads);
  const char *process = strstr(threads, "\"process\":{");
  snprintf(quoted, sizeof quoted, "\"symbol\":\"%s\"", function);
  const char *found = strstr(threads, quoted);
  CHECK(found != NULL && found < process, "%s is not among the frames: %.2000s", function, threads);
  const char *log = report_of(n, ".log");
  snprintf(quoted, sizeof quoted, ", name: %s  >>> ", name);
  const char *section = strstr(log, quoted);
  CHECK(section != NULL && section < strstr(log, "\nstack = "), "the log has no section of %s", name);
}

static bool is_spin(const struct told *told) {
  /* What the machine has made of it, by the thread's own clock. */
  return told->cpu_ns > told->wall_ns / 2 ? says(told, BC_CAUSE_RUNNING, " % of one processor")
                                          : says(told, BC_CAUSE_STARVED, "ready to run, ");
}

static void spin_block(unsigned n) {
  (void)n;
  spin_ms(BLOCK_MS);
}

static void spin(void) {
  setpriority(PRIO_PROCESS, (id_t)tid_of_self(), -20);
  staged("spin", is_spin, spin_block);
  finish();
}

static bool is_sleep(const struct told *told) {
  return says(told, BC_CAUSE_SLEEP, "clock_nanosleep of 60 ms");
}

static void sleep_block(unsigned n) {
  (void)n;
  pause_ms(BLOCK_MS);
}

static void asleep(void) {
  staged("asleep", is_sleep, sleep_block);
  finish();
}

static void pin(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "not pinned");
}

static void *hog(void *argument) {
  pthread_setname_np(pthread_self(), "hog");
  pin();
  setpriority(PRIO_PROCESS, (id_t)tid_of_self(), -10);
  for (unsigned n = 1; !atomic_load(&over); n++) {
    wait_for_run(n);
    spin_ms(BLOCK_MS);
  }
  return argument;
}

/* Little to do, and others have the only processor that may do it. */
static void starve_block(unsigned n) {
  atomic_store(&run, n);
  uint64_t until = now_ns() + BLOCK_MS * 1000000ull;
  while (now_ns() < until) {
  }
}

static bool is_starved(const struct told *told) { return says(told, BC_CAUSE_STARVED, "ready to run, "); }

static void *starved_thread(void *argument) {
  pin();
  staged("starved", is_starved, starve_block);
  return argument;
}

static void starved(void) {
  for (int i = 0; i < 4; i++) {
    start_thread(hog, NULL);
  }
  join_thread(start_thread(starved_thread, NULL));
  unsigned named = 0;
  for (unsigned n = 1; n <= RUNS; n++) {
    named += strstr(blocks_get(BC_BLOCK_ENDED, n)->detail, "; busiest: ") != NULL &&
             strstr(blocks_get(BC_BLOCK_ENDED, n)->detail, " 'hog' ") != NULL;
  }
  printf("  the hogs are named in %u\n", named);
  CHECK(named >= 95, "%u", named);
  const char *top = json_member(json_of(RUNS / 2), "top_threads");
  CHECK(json_is(top, "name", "\"hog\""), "%.200s", top);
  CHECK(!json_is(json_of(RUNS / 2), "run_queue_wait_ms", "null"), "the wait in the run queue is not known");
  finish();
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint held;
static char held_by[64];

__attribute__((noinline)) void hold_the_lock(unsigned n) {
  pthread_mutex_lock(&first);
  atomic_store(&held, n);
  pause_ms(BLOCK_MS + 5);
  pthread_mutex_unlock(&first);
}

static void *loader(void *argument) {
  pthread_setname_np(pthread_self(), "Loader");
  snprintf(held_by, sizeof held_by, "held by tid %d 'Loader'", (int)tid_of_self());
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for_run(n);
    hold_the_lock(n);
  }
  return argument;
}

static void lock_block(unsigned n) {
  atomic_store(&run, n);
  while (atomic_load(&held) < n) {
    pause_ms(1);
  }
  pthread_mutex_lock(&first);
  pthread_mutex_unlock(&first);
}

static bool is_held(const struct told *told) {
  return says(told, BC_CAUSE_LOCK, "futex 0x") && says(told, BC_CAUSE_LOCK, held_by);
}

static void lock_owner(void) {
  unsigned long thread = start_thread(loader, NULL);
  WAIT_FOR(held_by[0] != 0, 20000);
  staged("lock_owner", is_held, lock_block);
  join_thread(thread);
  check_holder(RUNS / 2, "Loader", "hold_the_lock");
  finish();
}

static char deadlock_words[64];
static atomic_int blocked_tid;

static void timed_lock(pthread_mutex_t *mutex, unsigned ms) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)ms * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  if (pthread_mutex_timedlock(mutex, &until) == 0) {
    pthread_mutex_unlock(mutex);
  }
}

__attribute__((noinline)) void hold_the_other(unsigned n) {
  pthread_mutex_lock(&second);
  atomic_store(&held, n);
  timed_lock(&first, 4 * BLOCK_MS);
  pthread_mutex_unlock(&second);
}

static void *opposite(void *argument) {
  pthread_setname_np(pthread_self(), "Opposite");
  WAIT_FOR(atomic_load(&blocked_tid) != 0, 20000);
  snprintf(deadlock_words, sizeof deadlock_words, "deadlock: %d → %d → %d", atomic_load(&blocked_tid),
           (int)tid_of_self(), atomic_load(&blocked_tid));
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for_run(n);
    hold_the_other(n);
  }
  return argument;
}

static void deadlock_block(unsigned n) {
  pthread_mutex_lock(&first);
  atomic_store(&run, n);
  while (atomic_load(&held) < n) {
    pause_ms(1);
  }
  timed_lock(&second, BLOCK_MS);
  pthread_mutex_unlock(&first);
}

static bool is_deadlock(const struct told *told) { return says(told, BC_CAUSE_LOCK, deadlock_words); }

static void deadlock(void) {
  atomic_store(&blocked_tid, (int)tid_of_self());
  unsigned long thread = start_thread(opposite, NULL);
  WAIT_FOR(deadlock_words[0] != 0, 20000);
  least = 80;
  staged("deadlock", is_deadlock, deadlock_block);
  join_thread(thread);
  check_holder(RUNS / 2, "Opposite", "hold_the_other");
  finish();
}

static int ends[2];

/* Answers each run after a while. */
static void *slow_peer(void *argument) {
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for_run(n);
    pause_ms(BLOCK_MS);
    CHECK(write(ends[1], "x", 1) == 1, "write");
  }
  return argument;
}

static void read_block(unsigned n) {
  char byte;
  atomic_store(&run, n);
  CHECK(read(ends[0], &byte, 1) == 1, "read");
}

static bool is_pipe(const struct told *told) { return says(told, BC_CAUSE_IPC, "read(pipe, fd "); }

static void slow_pipe(void) {
  CHECK(pipe(ends) == 0, "pipe");
  start_thread(slow_peer, NULL);
  staged("slow_pipe", is_pipe, read_block);
  finish();
}

static void recv_block(unsigned n) {
  char byte;
  atomic_store(&run, n);
  CHECK(recv(ends[0], &byte, 1, 0) == 1, "recv");
}

static bool is_socket(const struct told *told) { return says(told, BC_CAUSE_IPC, "recvfrom(socket, fd "); }

static void socket_wait(void) {
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  start_thread(slow_peer, NULL);
  staged("socket_wait", is_socket, recv_block);
  finish();
}

/* A file system of one file that takes long to read, served by a process of its own: it must be there when ours exits. */
static int fuse;
static char fuse_folder[64];

static void fuse_answer(uint64_t unique, int error, const void *body, size_t size) {
  struct fuse_out_header head = {.len = (uint32_t)(sizeof head + size), .error = -error, .unique = unique};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)body, size}};
  ssize_t written = writev(fuse, parts, 2);
  (void)written; /* An answer that nobody waits for any more is refused. */
}

static struct fuse_attr fuse_attributes(uint64_t node) {
  return (struct fuse_attr){.ino = node, .size = node == 1 ? 0 : 1u << 20, .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644,
                            .nlink = 1};
}

static void serve_files(void) {
  static char request[1 << 17], data[1 << 17];
  for (;;) {
    ssize_t length = read(fuse, request, sizeof request);
    if (length < (ssize_t)sizeof(struct fuse_in_header)) {
      return;
    }
    struct fuse_in_header head;
    memcpy(&head, request, sizeof head);
    switch (head.opcode) {
      case FUSE_INIT: {
        struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 19, .max_write = 4096};
        fuse_answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_LOOKUP: {
        struct fuse_entry_out out = {.nodeid = 2, .attr = fuse_attributes(2)};
        fuse_answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr = fuse_attributes(head.nodeid)};
        fuse_answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_OPEN: {
        struct fuse_open_out out = {.fh = 1, .open_flags = FOPEN_DIRECT_IO};
        fuse_answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_READ: {
        struct fuse_read_in in;
        memcpy(&in, request + sizeof head, sizeof in);
        pause_ms(BLOCK_MS);
        fuse_answer(head.unique, 0, data, in.size < sizeof data ? in.size : sizeof data);
        break;
      }
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
        break;
      default:
        fuse_answer(head.unique, ENOSYS, NULL, 0);
    }
  }
}

static bool is_file(const struct told *told) {
  return says(told, BC_CAUSE_IO, "read(fd ") && strstr(told->detail, "/level.bin)") != NULL;
}

static void file_block(unsigned n) {
  char byte;
  (void)n;
  CHECK(read(ends[0], &byte, 1) == 1, "read");
}

static void slow_file(void) {
  char options[128], path[96];
  snprintf(fuse_folder, sizeof fuse_folder, "%s", fresh_directory("fuse"));
  fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0", fuse);
  if (fuse < 0 || mount("blockcanary", fuse_folder, "fuse", 0, options) != 0) {
    printf("slow_file: left out, no file system can be mounted here: %s\n", strerror(errno));
    return;
  }
  pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve_files();
    _exit(0);
  }
  CHECK(server > 0, "fork");
  /* From here on the server's end alone keeps the file system going. */
  close(fuse);
  snprintf(path, sizeof path, "%s/level.bin", fuse_folder);
  ends[0] = open(path, O_RDONLY | O_CLOEXEC);
  int error = errno;
  umount2(fuse_folder, MNT_DETACH);
  CHECK(ends[0] >= 0, "%s: %s", path, strerror(error));
  staged("slow_file", is_file, file_block);
  finish();
  close(ends[0]);
}

#define STORM_BYTES (64u << 20)
static char *storm;
static int storm_file;

/* Reads pages at random from a file that nothing holds in memory any more. */
static void storm_block(unsigned n) {
  uint64_t until = now_ns() + BLOCK_MS * 1000000ull, seed = n;
  CHECK(madvise(storm, STORM_BYTES, MADV_DONTNEED) == 0 &&
            posix_fadvise(storm_file, 0, STORM_BYTES, POSIX_FADV_DONTNEED) == 0, "still in memory");
  while (now_ns() < until) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    (void)*(volatile char *)&storm[(seed >> 33) % STORM_BYTES];
  }
}

/* A fast disk leaves the processor more to do than the thread has to wait. */
static bool is_storm(const struct told *told) {
  return says(told, BC_CAUSE_IO, "page fault") || says(told, BC_CAUSE_RUNNING, " of them from storage");
}

static void fault_storm(void) {
  storm_file = open("cause.storm", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(storm_file >= 0, "no file");
  unlink("cause.storm");
  static char page[1 << 16];
  for (unsigned n = 0; n < STORM_BYTES / sizeof page; n++) {
    memset(page, (int)n, sizeof page);
    CHECK(write(storm_file, page, sizeof page) == sizeof page, "write");
  }
  CHECK(fsync(storm_file) == 0, "fsync");
  storm = mmap(NULL, STORM_BYTES, PROT_READ, MAP_SHARED, storm_file, 0);
  CHECK(storm != MAP_FAILED && madvise(storm, STORM_BYTES, MADV_RANDOM) == 0, "not mapped");
  /* Where it may, it runs whenever it can, however busy the machine is. */
  struct sched_param first_of_all = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &first_of_all) != 0) {
    printf("  runs like everybody else: %s\n", strerror(errno));
  }
  staged("fault_storm", is_storm, storm_block);
  finish();
}

CASES({"spin", spin}, {"asleep", asleep}, {"starved", starved}, {"lock_owner", lock_owner}, {"deadlock", deadlock},
      {"slow_pipe", slow_pipe}, {"slow_file", slow_file}, {"fault_storm", fault_storm}, {"socket_wait", socket_wait})
