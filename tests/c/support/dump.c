#include "dump.h"

#include <blockcanary.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../check.h"

static const char banner[] = "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***";

static bool matches(const char *pattern, const char *line, regmatch_t *groups, size_t count) {
  static struct {
    const char *pattern;
    regex_t compiled;
  } known[8];
  for (unsigned i = 0; i < 8; i++) {
    if (known[i].pattern == NULL) {
      CHECK(regcomp(&known[i].compiled, pattern, REG_EXTENDED) == 0, "%s", pattern);
      known[i].pattern = pattern;
    }
    if (known[i].pattern == pattern) {
      return regexec(&known[i].compiled, line, count, groups, 0) == 0;
    }
  }
  CHECK(false, "too many patterns");
}

/* A copy of the line at `at`; NULL at the end. */
static const char *line_at(const char **at) {
  static char line[16 * 1024];
  const char *end = strchr(*at, '\n');
  if (end == NULL) {
    CHECK(**at == 0, "no line end: %.100s", *at);
    return NULL;
  }
  size_t length = (size_t)(end - *at);
  CHECK(length < sizeof line, "a line of %zu bytes", length);
  memcpy(line, *at, length);
  line[length] = 0;
  *at = end + 1;
  return line;
}

static void head_of(struct dumped *thread, const char **at) {
  regmatch_t groups[5];
  const char *line = line_at(at);
  CHECK(line != NULL && matches("^pid: ([0-9]+), tid: ([0-9]+), name: (.*)  >>> (.*) <<<$", line, groups, 5), "%s", line);
  CHECK(atoi(line + groups[1].rm_so) == getpid(), "%s", line);
  thread->tid = atoi(line + groups[2].rm_so);
  snprintf(thread->name, sizeof thread->name, "%.*s", (int)(groups[3].rm_eo - groups[3].rm_so),
           line + groups[3].rm_so);
  line = line_at(at);
  CHECK(line != NULL && matches("^state: ([A-Zt])( \\([a-z ]+\\))?( in [a-z0-9_]+)?(, watched( as \".*\")?)?(, internal)?$",
                                line, groups, 2),
        "%s", line);
  thread->state = line[groups[1].rm_so];
  snprintf(thread->about, sizeof thread->about, "%.250s", line);
}

static void frames_of(struct dumped *thread, const char **at) {
  regmatch_t groups[3];
  thread->begin = *at;
  thread->end = *at;
  const char *line;
  while ((line = line_at(at)) != NULL && line[0] != 0) {
    if (!matches("^    #([0-9]{2,}) pc [0-9a-f]{16}  ([^ ]+)( \\([^ ]+\\+[0-9]+\\))?( \\(BuildId: [0-9a-f]+\\))?$", line,
                 groups, 3)) {
      CHECK(line[0] == ' ' && strstr(line, "    (") == line, "%s", line);
      continue;
    }
    CHECK((unsigned)atoi(line + groups[1].rm_so) == thread->frames, "frame %u: %s", thread->frames, line);
    thread->frames++;
    thread->end = *at;
  }
  CHECK(line != NULL, "no empty line behind thread %d", thread->tid);
}

void dump_parse(struct dump *dump, const char *text) {
  const char *at = text, *line = line_at(&at);
  char expected[64];
  dump->threads = dump->more = 0;
  CHECK(line != NULL && matches("^----- pid [0-9]+ at [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\.[0-9]{3} -----$", line, NULL, 0),
        "%s", line);
  CHECK((line = line_at(&at)) != NULL && strncmp(line, "Cmd line: test_", 15) == 0, "%s", line);
  CHECK((line = line_at(&at)) != NULL && sscanf(line, "threads: %u", &dump->announced) == 1, "%s", line);
  CHECK((line = line_at(&at)) != NULL && line[0] == 0, "%s", line);
  while ((line = line_at(&at)) != NULL && strcmp(line, banner) == 0) {
    CHECK(dump->threads < DUMP_THREADS, "more threads than there is room for");
    struct dumped *thread = &dump->thread[dump->threads++];
    *thread = (struct dumped){0};
    head_of(thread, &at);
    frames_of(thread, &at);
  }
  if (line != NULL && sscanf(line, "(%u more threads)", &dump->more) == 1) {
    CHECK((line = line_at(&at)) != NULL && line[0] == 0, "%s", line);
    line = line_at(&at);
  }
  snprintf(expected, sizeof expected, "----- end %d -----", (int)getpid());
  CHECK(line != NULL && strcmp(line, expected) == 0, "%s", line);
  CHECK(*at == 0, "something behind the end: %.100s", at);
}

const struct dumped *dump_find(const struct dump *dump, int32_t tid) {
  const struct dumped *found = NULL;
  for (unsigned i = 0; i < dump->threads; i++) {
    if (dump->thread[i].tid == tid) {
      CHECK(found == NULL, "thread %d is there twice", tid);
      found = &dump->thread[i];
    }
  }
  return found;
}

bool dump_has(const struct dumped *thread, const char *const *names, unsigned count) {
  unsigned found = 0;
  for (const char *at = thread->begin; at < thread->end; at = strchr(at, '\n') + 1) {
    char function[128];
    snprintf(function, sizeof function, " (%s+", names[found]);
    const char *place = strstr(at, function);
    bool is_it = place != NULL && place < strchr(at, '\n');
    found = is_it ? found + 1 : 0;
    if (found == count) {
      return true;
    }
  }
  return false;
}

const char *dump_now(struct dump *dump, uint64_t *took_ns) {
  static char *text;
  free(text);
  int fd = memfd_create("dump", MFD_CLOEXEC);
  CHECK(fd >= 0, "memfd_create");
  uint64_t begin = now_ns();
  bc_status status = bc_threads_dump(fd);
  uint64_t end = now_ns();
  CHECK(status == BC_OK, "%s", bc_status_str(status));
  if (took_ns != NULL) {
    *took_ns = end - begin;
  }
  off_t size = lseek(fd, 0, SEEK_END);
  text = malloc((size_t)size + 1);
  CHECK(text != NULL && pread(fd, text, (size_t)size, 0) == size, "%lld bytes", (long long)size);
  text[size] = 0;
  close(fd);
  dump_parse(dump, text);
  return text;
}

const struct dumped *dump_until_caught(struct dump *dump, int32_t tid) {
  uint64_t until = now_ns() + 60000000000ull;
  const struct dumped *found;
  do {
    dump_now(dump, NULL);
    found = dump_find(dump, tid);
    CHECK(found != NULL, "it is missing");
  } while (found->frames == 0 && now_ns() < until);
  return found;
}
