/* A block that ends in a kill: on disk already, and told by whoever uses the directory next. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/json.h"
#include "support/procfs.h"

#define THRESHOLD_MS 50
#define BLOCKS 256
/* Of a block that has been over its limit for so long, everything is known; longer by the time that the library's threads
 * were ready to run and had no processor. */
#define SURE_MS 100

/* What a child notes of itself, in memory that outlives it. Tags are numbers from 1 on. */
struct diary {
  /* The dispatch that is open, and when it began; 0: none. */
  atomic_uint_least64_t tag, begun_ns;
  /* How long the library's threads had waited for a processor by then. */
  atomic_uint_least64_t waited_ns;
  /* Its listener was told of the end of the block with this tag. */
  atomic_uchar ended[BLOCKS];
};

STAYS static void the_blocking_function(unsigned ms) {
  if (ms % 2 == 0) {
    sleep_ms(ms);
  } else {
    spin_ms(ms);
  }
  /* No tail call: it is to be on the stack. */
  __asm__ volatile("");
}

static struct diary *diary;

static void notes_ends(const bc_block *block, void *unused) {
  (void)unused;
  if (block->state == BC_BLOCK_ENDED && block->tag < BLOCKS) {
    atomic_store(&diary->ended[block->tag], 1);
  }
}

/* What is executed for `kill_children`: blocks again and again until it is killed. */
static void child(void) {
  const char *directory = getenv("KILLED_DIRECTORY"), *file = getenv("KILLED_DIARY");
  if (directory == NULL || file == NULL) {
    return;
  }
  int fd = open(file, O_RDWR | O_CLOEXEC);
  diary = mmap(NULL, sizeof *diary, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(diary != MAP_FAILED, "%s: %s", file, strerror(errno));
  srand48(getpid());
  bc_config config = config_of(THRESHOLD_MS);
  config.report_dir = directory;
  config.version_name = "the child's";
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(notes_ends, NULL));
  CHECK_OK(bc_start());
  bc_loop *loop = watched("the child's loop");
  for (uint64_t tag = 1; tag < BLOCKS; tag++) {
    atomic_store(&diary->waited_ns, threads_waited_ns(getpid(), "bc-"));
    atomic_store(&diary->begun_ns, now_ns());
    atomic_store(&diary->tag, tag);
    bc_dispatch_begin(loop, "a block", tag);
    the_blocking_function((unsigned)(lrand48() % 300));
    bc_dispatch_end(loop);
    atomic_store(&diary->tag, 0);
  }
  pause();
}

struct victim {
  pid_t pid;
  char directory[300], file[300];
  struct diary *diary;
};

static struct victim start_child(const char *base, unsigned number) {
  struct victim victim;
  snprintf(victim.directory, sizeof victim.directory, "%s/%u", base, number);
  snprintf(victim.file, sizeof victim.file, "%s/%u.diary", base, number);
  int fd = open(victim.file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(fd >= 0 && ftruncate(fd, sizeof *victim.diary) == 0, "%s: %s", victim.file, strerror(errno));
  victim.diary = mmap(NULL, sizeof *victim.diary, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(victim.diary != MAP_FAILED, "%s", strerror(errno));
  close(fd);
  setenv("KILLED_DIRECTORY", victim.directory, 1);
  setenv("KILLED_DIARY", victim.file, 1);
  victim.pid = start_case("child");
  return victim;
}

static unsigned killed, killed_naming, killed_samples, killed_stacks;
static bc_cause killed_cause;
static uint64_t killed_tag, killed_id;
static char killed_path[512];

static void counts_killed(const bc_block *block, void *unused) {
  (void)unused;
  CHECK(block->state == BC_BLOCK_KILLED, "state %u of a block that nobody here had", block->state);
  const char *what = block->what != NULL ? block->what : "nothing";
  CHECK(strcmp(block->loop_name, "the child's loop") == 0 && strcmp(what, "a block") == 0, "%s: %s", block->loop_name,
        what);
  killed++;
  killed_tag = block->tag;
  killed_id = block->id;
  killed_cause = block->cause;
  snprintf(killed_path, sizeof killed_path, "%s", block->report_path != NULL ? block->report_path : "");
  bool is_named = false;
  killed_samples = (unsigned)block->sample_count;
  killed_stacks = 0;
  for (size_t i = 0; i < block->sample_count; i++) {
    const bc_sample *sample = (const bc_sample *)((const char *)block->samples + i * block->sample_size);
    killed_stacks += sample->frame_count > 0;
    for (size_t j = 0; j < sample->frame_count && !is_named; j++) {
      const bc_frame *frame = (const bc_frame *)((const char *)sample->frames + j * block->frame_size);
      is_named = frame->symbol != NULL && strcmp(frame->symbol, "the_blocking_function") == 0;
    }
  }
  killed_naming += is_named;
}

/* Starts where a child has died; gives how many blocks were told as killed. */
static unsigned recover(const char *directory) {
  killed = killed_naming = 0;
  killed_tag = killed_id = 0;
  bc_config config = config_of(1000);
  config.report_dir = directory;
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(counts_killed, NULL));
  CHECK_OK(bc_start());
  flush();
  bc_health now = health();
  CHECK(now.blocks_seen == killed && now.blocks_delivered == killed && now.reports_failed == 0, "%lu, %lu, %u, %lu",
        (unsigned long)now.blocks_seen, (unsigned long)now.blocks_delivered, killed, (unsigned long)now.reports_failed);
  CHECK_OK(bc_uninstall());
  return killed;
}

/* Whole or not there: every report, at whatever moment. */
static void reports_are_whole(const char *directory) {
  DIR *entries = opendir(directory);
  if (entries == NULL) {
    return;
  }
  static char text[1 << 20];
  for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    size_t length = strlen(entry->d_name);
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    if (strncmp(entry->d_name, "looper-", 7) == 0 && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0) {
      read_whole(path, text, sizeof text);
      CHECK(json_valid(text), "%s is no JSON", path);
    }
  }
  closedir(entries);
}

static struct {
  unsigned kills, open, sure, told, named, starved;
} sum;

static void judge(const struct victim *victim, uint64_t killed_ns, uint64_t waited) {
  int status;
  CHECK(waitpid(victim->pid, &status, 0) == victim->pid && WIFSIGNALED(status), "the child ended by itself: %x",
        status);
  uint64_t tag = atomic_load(&victim->diary->tag), begun_ns = atomic_load(&victim->diary->begun_ns);
  reports_are_whole(victim->directory);
  unsigned told = recover(victim->directory);
  reports_are_whole(victim->directory);
  bool is_over = tag != 0 && killed_ns > begun_ns + THRESHOLD_MS * 1000000ull;
  uint64_t before = atomic_load(&victim->diary->waited_ns);
  bool is_known = waited != UINT64_MAX && before != UINT64_MAX;
  uint64_t late_ns = is_known ? waited - before : 0;
  bool is_sure = tag != 0 && is_known && killed_ns > begun_ns + (THRESHOLD_MS + SURE_MS) * 1000000ull + late_ns;
  sum.kills++;
  sum.open += is_over;
  sum.sure += is_sure;
  sum.told += told;
  sum.named += killed_naming;
  CHECK(told <= 1, "%u blocks were told as killed", told);
  CHECK(!is_sure || (told == 1 && killed_tag == tag), "block %lu, begun %.1f ms before the kill, %.1f ms without a processor: %u told, tag %lu",
        (unsigned long)tag, (double)(killed_ns - begun_ns) / 1e6, (double)late_ns / 1e6, told, (unsigned long)killed_tag);
  if (told == 1) {
    /* Its process may have been killed just after the block's end, before anybody was told. */
    CHECK(killed_tag < BLOCKS && !atomic_load(&victim->diary->ended[killed_tag]), "block %lu was told as ended before",
          (unsigned long)killed_tag);
    /* A thread that gets no processor cannot answer, and the block says so. */
    bool is_starved = killed_stacks == 0 && killed_cause == BC_CAUSE_STARVED;
    sum.starved += is_starved;
    CHECK(!is_sure || is_starved || killed_naming == 1, "none of %u samples, %u with a stack, names the function that blocked for %.1f ms: %s",
          killed_samples, killed_stacks, (double)(killed_ns - begun_ns) / 1e6, killed_path);
    static char text[1 << 20];
    size_t length = strlen(killed_path);
    CHECK(length > 4, "no report");
    memcpy(killed_path + length - 4, ".json", 6);
    read_whole(killed_path, text, sizeof text);
    CHECK(json_is(text, "state", "\"killed\"") && strstr(text, "the child's\"") != NULL, "%s", killed_path);
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)victim->pid);
    CHECK(json_is(text, "pid", pid), "another process's report");
  }
  CHECK(recover(victim->directory) == 0, "told again");
  CHECK(files_in(victim->directory, ".bcr") == 0 && files_in(victim->directory, ".tmp") == 0, "a recorder is left");
  munmap(victim->diary, sizeof *victim->diary);
}

static void kill_children(unsigned times) {
  enum { kAtOnce = 4 };
  const char *fresh = fresh_directory("killed");
  char base[256];
  snprintf(base, sizeof base, "%s", fresh);
  srand48((long)now_ns());
  /* On a busy machine more are needed until enough have met a block. */
  for (unsigned done = 0; done < times || (sum.sure < times / 8 && done < 3 * times); done += kAtOnce) {
    struct victim victims[kAtOnce];
    for (unsigned i = 0; i < kAtOnce; i++) {
      victims[i] = start_child(base, done + i);
    }
    for (unsigned i = 0; i < kAtOnce; i++) {
      WAIT_FOR(atomic_load(&victims[i].diary->begun_ns) != 0, 20000);
      pause_ms((unsigned)(lrand48() % 400));
      uint64_t killed_ns = now_ns(), waited = threads_waited_ns(victims[i].pid, "bc-");
      kill(victims[i].pid, SIGKILL);
      judge(&victims[i], killed_ns, waited);
    }
  }
  printf("%u kills, %u in a block, %u more than %d ms past its limit; %u told as killed, once each, %u with the function, %u starved "
         "without a stack\n",
         sum.kills, sum.open, sum.sure, SURE_MS, sum.told, sum.named, sum.starved);
  CHECK(sum.sure >= times / 8, "too few kills met a block");
}

static void sixty(void) { kill_children(60); }
static void thousand(void) { kill_children(1000); }

static void exits_by_message(bc_log_level level, const char *message, void *unused) {
  (void)level;
  (void)unused;
  if (strstr(message, "has been blocked") != NULL) {
    exit(0);
  }
}

static bool exits_by_second(const bc_block *block, void *unused) {
  (void)unused;
  if (block->tag == 2) {
    exit(0);
  }
  return true;
}

static void *blocks_too(void *unused) {
  bc_dispatch_begin(watched("another loop"), "another block", 2);
  pause();
  return unused;
}

/* What is executed for `exits` and those behind it: ends itself inside a block. */
static void leaver(void) {
  const char *directory = getenv("KILLED_DIRECTORY"), *where = getenv("KILLED_WHERE");
  if (directory == NULL || where == NULL) {
    return;
  }
  bool in_handler = strcmp(where, "handler") == 0, in_filter = strcmp(where, "filter") == 0;
  bc_config config = config_of(THRESHOLD_MS);
  config.report_dir = directory;
  CHECK_OK(bc_set_log_handler(in_handler ? exits_by_message : NULL, NULL));
  install_and_start(&config);
  CHECK_OK(bc_set_filter(in_filter ? exits_by_second : NULL, NULL));
  bc_dispatch_begin(watched("the child's loop"), "a block", 1);
  if (!in_handler) {
    WAIT_FOR(blocks_tagged(BC_BLOCK_ONGOING, 1) == 1, 20000);
  }
  if (in_filter) {
    start_thread(blocks_too, NULL);
  }
  if (in_handler || in_filter) {
    pause_ms(60000);
    _exit(1);
  }
  exit(0);
}

/* A program that ends in order inside a block: the block has ended, nothing is left to be found, and nobody waits. */
static void exits_in(const char *where) {
  char directory[300];
  snprintf(directory, sizeof directory, "%s/reports", fresh_directory(where));
  setenv("KILLED_DIRECTORY", directory, 1);
  setenv("KILLED_WHERE", where, 1);
  pid_t pid = start_case("leaver");
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
  CHECK(files_in(directory, ".json") == 1 && files_in(directory, "") == 2, "%d files", files_in(directory, ""));
  DIR *entries = opendir(directory);
  for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    static char text[1 << 20];
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    if (strstr(entry->d_name, ".json") != NULL) {
      read_whole(path, text, sizeof text);
      CHECK(json_valid(text) && json_is(text, "state", "\"ended\""), "%s: %.300s", path, text);
    }
  }
  closedir(entries);
  CHECK(recover(directory) == 0, "told as killed");
}

static void exits(void) { exits_in("main"); }
/* The writer's own thread runs these. */
static void exits_in_handler(void) { exits_in("handler"); }
static void exits_in_filter(void) { exits_in("filter"); }

CASES({"leaver", leaver}, {"exits", exits}, {"exits_in_handler", exits_in_handler}, {"exits_in_filter", exits_in_filter},
      {"child", child}, {"sixty", sixty}, {"thousand", thousand})
