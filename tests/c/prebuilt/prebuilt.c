/* An engine that was built as a library, without a word of ours, interposed when it is there: all that it counts is seen,
 * and when watching has ended its words and pages are what they were. Arguments: the library, and what it has to be. */
#include <blockcanary.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../interpose/engine.h"
#include "words.h"

int run_watched(void);

static const char *path, *name, *kind;
static struct engine_counts (*run)(FILE *transcript, unsigned slow_ms);
static struct words before, now;
static char maps_before[16384], maps_after[16384];

/* The lines of the maps that tell of the library. */
static void read_maps(char *text, size_t size) {
  FILE *maps = fopen("/proc/self/maps", "re");
  CHECK(maps != NULL, "no maps");
  char line[1024];
  size_t used = 0;
  while (fgets(line, sizeof line, maps)) {
    if (strstr(line, name) != NULL) {
      used += (size_t)snprintf(text + used, size - used, "%s", line);
      CHECK(used < size, "%zu bytes of maps", used);
    }
  }
  CHECK(used > 0, "%s is not mapped", name);
  fclose(maps);
}

/* Is the library built as the test wants it? */
static void check_kind(void) {
  unsigned lazy = 0, protected = 0, slots = 0, pointers = 0;
  for (unsigned i = 0; i < before.count; i++) {
    const struct word *word = &before.word[i];
    lazy += before.start <= word->value && word->value < before.end;
    protected += word->access[1] != 'w';
    pointers += word->is_pointer;
    slots += !word->is_pointer;
  }
  CHECK(before.count >= 4, "%u words", before.count);
  CHECK((strstr(kind, "lazy") != NULL) == (lazy == slots && slots > 0), "%u of %u slots are lazy", lazy, slots);
  CHECK((strstr(kind, "protected") != NULL) == (protected > 0), "%u words are protected", protected);
  CHECK((strstr(kind, "pointers") != NULL) == (pointers > 0), "%u pointers", pointers);
  CHECK((strstr(kind, "relr") != NULL) == before.has_relr, "packed relative relocations: %d", before.has_relr);
}

static void load_engine(void) {
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  CHECK(library != NULL, "%s", dlerror());
  *(void **)&run = dlsym(library, "engine_run");
  CHECK(run != NULL, "%s", dlerror());
}

/* Stands for the engine where it is a part of the program. */
struct engine_counts engine_run(FILE *transcript, unsigned slow_ms) {
  if (run == NULL) {
    load_engine();
  }
  CHECK(words_read(name, &before), "%s is not loaded", name);
  check_kind();
  read_maps(maps_before, sizeof maps_before);
  CHECK_OK(bc_module_interpose(name));
  CHECK(words_read(name, &now), "%s is gone", name);
  CHECK(words_changed(&before, &now) == now.count, "%u of %u words", words_changed(&before, &now), now.count);
  struct engine_counts counts = run(transcript, slow_ms);
  CHECK(words_read(name, &now), "%s is gone", name);
  CHECK(words_changed(&before, &now) == now.count, "%u of %u words, after the run", words_changed(&before, &now),
        now.count);
  return counts;
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "usage: %s LIBRARY KIND", argv[0]);
  path = argv[1];
  name = strrchr(argv[1], '/') + 1;
  kind = argv[2];
  /* With the looper, which then has not been there when the library was installed. */
  if (strstr(kind, "later") == NULL) {
    load_engine();
  }
  int result = run_watched();
  CHECK(words_read(name, &now) && words_same(&before, &now), "the words are not what they were");
  read_maps(maps_after, sizeof maps_after);
  CHECK(strcmp(maps_before, maps_after) == 0, "mapped before:\n%sand after:\n%s", maps_before, maps_after);
  /* And it works by itself again. */
  FILE *nowhere = fopen("/dev/null", "we");
  CHECK(nowhere != NULL, "no /dev/null");
  struct engine_counts counts = run(nowhere, 1);
  CHECK(counts.callbacks > 0 && counts.polls > 0, "%u callbacks, %u polls", counts.callbacks, counts.polls);
  fclose(nowhere);
  return result;
}
