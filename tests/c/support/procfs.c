#include "procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"

/* As the kernel lays it out. */
struct entry {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

/* Calls `each` for every entry but . and .. */
static bool each_entry(const char *directory, void (*each)(const char *name, void *data), void *data) {
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  _Alignas(8) char buffer[4096];
  long got;
  while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < got;) {
      const struct entry *entry = (const struct entry *)(const void *)(buffer + at);
      if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0) {
        each(entry->name, data);
      }
      at += entry->length;
    }
  }
  close(fd);
  return true;
}

size_t read_whole(const char *path, char *buffer, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  ssize_t got = 0;
  while (fd >= 0 && length + 1 < size && (got = read(fd, buffer + length, size - 1 - length)) > 0) {
    length += (size_t)got;
  }
  if (fd >= 0) {
    close(fd);
  }
  buffer[length] = 0;
  return length;
}

struct sum {
  const char *prefix;
  unsigned count;
  uint64_t switches;
};

static void add_thread(const char *tid, void *data) {
  struct sum *sum = data;
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/self/task/%.16s/status", tid);
  read_whole(path, text, sizeof text);
  const char *name = strstr(text, "Name:\t");
  const char *switches = strstr(text, "\nvoluntary_ctxt_switches:\t");
  if (name != NULL && switches != NULL && strncmp(name + 6, sum->prefix, strlen(sum->prefix)) == 0) {
    sum->count++;
    sum->switches += strtoull(strchr(switches, '\t'), NULL, 10);
  }
}

static struct sum sum_of(const char *prefix) {
  struct sum sum = {.prefix = prefix};
  CHECK(each_entry("/proc/self/task", add_thread, &sum), "errno %d", errno);
  return sum;
}

unsigned threads(void) {
  return sum_of("").count;
}

unsigned threads_named(const char *prefix) {
  return sum_of(prefix).count;
}

uint64_t voluntary_switches(const char *prefix) {
  return sum_of(prefix).switches;
}

static void count(const char *name, void *data) {
  (void)name;
  (*(unsigned *)data)++;
}

unsigned descriptors(void) {
  unsigned found = 0;
  CHECK(each_entry("/proc/self/fd", count, &found), "errno %d", errno);
  return found - 1; /* the one that was read from */
}

void mappings_read(struct mappings *mappings) {
  size_t length = read_whole("/proc/self/maps", mappings->text, sizeof mappings->text);
  CHECK(length > 0 && length + 1 < sizeof mappings->text, "%zu bytes", length);
  mappings->lines = 0;
  mappings->bytes = 0;
  for (char *line = mappings->text; *line != 0; line = strchr(line, '\n') + 1) {
    char *dash;
    uint64_t from = strtoull(line, &dash, 16);
    mappings->bytes += strtoull(dash + 1, NULL, 16) - from;
    mappings->lines++;
  }
}

long resident_kib(void) {
  char text[4096];
  read_whole("/proc/self/status", text, sizeof text);
  const char *line = strstr(text, "\nVmRSS:");
  CHECK(line != NULL, "no VmRSS in %s", text);
  return strtol(line + 7, NULL, 10);
}

struct suffix {
  const char *text;
  int count;
};

static void count_suffix(const char *name, void *data) {
  struct suffix *suffix = data;
  size_t length = strlen(name), wanted = strlen(suffix->text);
  suffix->count += length >= wanted && strcmp(name + length - wanted, suffix->text) == 0;
}

int files_in(const char *directory, const char *suffix) {
  struct suffix sum = {.text = suffix};
  return each_entry(directory, count_suffix, &sum) ? sum.count : -1;
}

int files_but(const char *directory, const char *suffix) {
  int all = files_in(directory, "");
  return all < 0 ? all : all - files_in(directory, suffix);
}

struct removal {
  const char *directory;
};

static void remove_entry(const char *name, void *data) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", ((struct removal *)data)->directory, name);
  unlink(path);
}

const char *fresh_directory(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%.100s.%d", name, (int)getpid());
  struct removal removal = {.directory = path};
  each_entry(path, remove_entry, &removal);
  rmdir(path);
  CHECK(mkdir(path, 0755) == 0, "%s: %s", path, strerror(errno));
  return path;
}

uint64_t threads_waited_ns(pid_t pid, const char *prefix) {
  char begin[32];
  snprintf(begin, sizeof begin, "(%s", prefix);
  char path[300];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *tasks = opendir(path);
  CHECK(tasks != NULL, "%s: %s", path, strerror(errno));
  uint64_t sum = 0;
  for (const struct dirent *task = readdir(tasks); task != NULL && sum != UINT64_MAX; task = readdir(tasks)) {
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, task->d_name);
    if (task->d_name[0] == '.' || access(path, R_OK) != 0) {
      continue;
    }
    read_whole(path, text, sizeof text);
    const char *name = strstr(text, begin), *state = strstr(text, ") ");
    if (name == NULL || state == NULL) {
      continue;
    }
    if (state[2] == 'R' || state[2] == 'D') {
      sum = UINT64_MAX;
      break;
    }
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, task->d_name);
    read_whole(path, text, sizeof text);
    unsigned long long ran, waited;
    CHECK(sscanf(text, "%llu %llu", &ran, &waited) == 2, "%s: %s", path, text);
    sum += waited;
  }
  closedir(tasks);
  return sum;
}
