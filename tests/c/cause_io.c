/* Staged waits for files, pages and other processes: each is found in nearly every one of a hundred short blocks, and said in
 * words. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"
#include "support/procfs.h"
#include "support/staged.h"

static int ends[2];

/* Answers each run after a while. */
static void *slow_peer(void *argument) {
  for (unsigned n = 1; n <= RUNS; n++) {
    wait_for(&run, n);
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
  go_first();
  CHECK(pipe(ends) == 0, "pipe");
  start_thread(slow_peer, NULL);
  staged("slow_pipe", is_pipe, NULL, read_block);
  finish();
}

static void recv_block(unsigned n) {
  char byte;
  atomic_store(&run, n);
  CHECK(recv(ends[0], &byte, 1, 0) == 1, "recv");
}

static bool is_socket(const struct told *told) { return says(told, BC_CAUSE_IPC, "recvfrom(socket, fd "); }

static void socket_wait(void) {
  go_first();
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  start_thread(slow_peer, NULL);
  staged("socket_wait", is_socket, NULL, recv_block);
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
  go_first();
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
  staged("slow_file", is_file, NULL, file_block);
  finish();
  close(ends[0]);
}

#define STORM_BYTES (64u << 20)
static char *storm;
static int storm_file;

static void forget_pages(unsigned n) {
  (void)n;
  CHECK(madvise(storm, STORM_BYTES, MADV_DONTNEED) == 0 &&
            posix_fadvise(storm_file, 0, STORM_BYTES, POSIX_FADV_DONTNEED) == 0, "still in memory");
}

/* Reads pages at random from a file that nothing holds in memory any more. */
static void storm_block(unsigned n) {
  uint64_t until = now_ns() + BLOCK_MS * 1000000ull, seed = n;
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
  staged("fault_storm", is_storm, forget_pages, storm_block);
  finish();
}

CASES({"slow_pipe", slow_pipe}, {"slow_file", slow_file}, {"fault_storm", fault_storm}, {"socket_wait", socket_wait})
