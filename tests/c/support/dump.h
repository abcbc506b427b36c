/* A dump of all threads, taken apart. */
#ifndef DUMP_H
#define DUMP_H

#include <stdbool.h>
#include <stdint.h>

#define DUMP_THREADS 2048

/* One thread of it. Texts end at the line's end, not in a NUL. */
struct dumped {
  int32_t tid;
  char state;
  unsigned frames;
  /* What stands behind "name: " up to the process's name. */
  char name[64];
  /* The whole line about its state. */
  char about[256];
  const char *begin, *end;
};

struct dump {
  unsigned threads;
  /* As the first lines say. */
  unsigned announced;
  /* As the last lines say. */
  unsigned more;
  struct dumped thread[DUMP_THREADS];
};

/* Every line is one of those that a dump has; frames count up from 0 and look as ndk-stack reads them. */
void dump_parse(struct dump *dump, const char *text);
/* The thread; NULL: it is not there. Fails if it is there twice. */
const struct dumped *dump_find(const struct dump *dump, int32_t tid);
/* Do its frames hold these functions, inner ones first, one directly behind the other? */
bool dump_has(const struct dumped *thread, const char *const *names, unsigned count);
/* Dumps until this thread, which runs, has a stack, a minute at most: on a busy machine it may have no processor while it is
 * looked at. */
const struct dumped *dump_until_caught(struct dump *dump, int32_t tid);
/* Dumps into a file without a name, measures that, and takes it apart; the text stays until the next one. */
const char *dump_now(struct dump *dump, uint64_t *took_ns);

#endif
