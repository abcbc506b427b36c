/* The words with which a loaded module imports ALooper's functions, read without the library's help. */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stdint.h>

#define WORDS_MAX 32

struct word {
  char function[32];
  const volatile uintptr_t *at;
  uintptr_t value;
  /* "rw-p", as the maps have it. */
  char access[5];
  /* The word is a pointer of the program's own, not the linker's. */
  bool is_pointer;
};

struct words {
  unsigned count;
  struct word word[WORDS_MAX];
  /* Where the module is mapped; it has packed relative relocations, too. */
  uintptr_t start, end;
  bool has_relr;
};

/* By the last part of the module's path. `false`: it is not loaded. */
bool words_read(const char *module, struct words *words);
/* The same words hold the same, on pages of the same use. */
bool words_same(const struct words *one, const struct words *other);
/* How many words of `now` differ from what they were `before`. */
unsigned words_changed(const struct words *before, const struct words *now);

#endif
