/* Functions that no symbol in memory names: static ones, in a program that does not export its own, and in a library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/stacks.h"
#include "visitor.h"

static const char *const *wanted;
static unsigned with_stack, naming;
static double longest_offset;

static void examine(const bc_block *block) {
  for (size_t i = 0; i < block->sample_count && block->state == BC_BLOCK_ENDED; i++) {
    const bc_sample *sample = sample_of(block, i);
    bool has = true;
    for (size_t n = 0; wanted[n] != NULL; n++) {
      int at = stack_find(block, sample, wanted[n], 0);
      has = has && at >= 0 && frame_of(block, sample, (size_t)at)->symbol_offset > 0;
      if (at >= 0 && (double)frame_of(block, sample, (size_t)at)->symbol_offset > longest_offset) {
        longest_offset = (double)frame_of(block, sample, (size_t)at)->symbol_offset;
      }
    }
    with_stack += sample->frame_count > 0;
    naming += has;
    if (i == 0) {
      stack_print(block, sample);
    }
  }
}

STAYS static void kept_to_itself(void) {
  volatile int behind = 0;
  sleep_ms(200);
  behind++;
}

STAYS static void busy_by_itself(void) {
  volatile int behind = 0;
  spin_ms(200);
  behind++;
}

static void begin(const char *const *names) {
  wanted = names;
  bc_config config = config_of(40);
  config.sample_interval_ms = 10;
  blocks_examine(examine);
  install_and_start(&config);
}

static void judge(void) {
  CHECK_OK(bc_uninstall());
  printf("%u stacks, %u of them name all; at most %.0f bytes into a function\n", with_stack, naming, longest_offset);
  CHECK(with_stack >= 8, "%u stacks", with_stack);
  CHECK(naming == with_stack, "%u of %u", naming, with_stack);
  CHECK(longest_offset < 1000, "%.0f bytes into a function", longest_offset);
}

/* Nothing of the program is exported, or this shows nothing. */
static void check_unexported(void *function) {
  Dl_info info;
  CHECK(dladdr(function, &info) == 0 || info.dli_sname == NULL, "%s is exported", info.dli_sname);
}

STAYS static void program(void (*function)(void), const char *const *names) {
  check_unexported((void *)function);
  begin(names);
  bc_loop *loop = watched("own");
  bc_dispatch_begin(loop, "static", 1);
  function();
  bc_dispatch_end(loop);
  flush();
}

STAYS static void waiting(void) {
  static const char *const names[] = {"kept_to_itself", "program", "waiting", NULL};
  program(kept_to_itself, names);
  judge();
}

STAYS static void running(void) {
  static const char *const names[] = {"busy_by_itself", "program", "running", NULL};
  program(busy_by_itself, names);
  judge();
}

static void copy(const char *from, const char *to) {
  char buffer[4096];
  FILE *source = fopen(from, "rb"), *target = fopen(to, "wb");
  CHECK(source != NULL && target != NULL, "%s to %s", from, to);
  for (size_t length; (length = fread(buffer, 1, sizeof buffer, source)) > 0;) {
    CHECK(fwrite(buffer, 1, length, target) == length, "fwrite");
  }
  CHECK(fclose(source) == 0 && fclose(target) == 0, "fclose");
}

/* Of a library, which may not be the file any more that its path leads to when the report is made. */
STAYS static void library(const char *const *names, bool replace) {
  char path[64], other[64];
  snprintf(path, sizeof path, "./hidden-%d.so", (int)getpid());
  snprintf(other, sizeof other, "./other-%d.so", (int)getpid());
  copy(HIDDEN_ONE, path);
  copy(HIDDEN_TWO, other);
  begin(names);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(handle != NULL, "%s", dlerror());
  visitor_function *visitor;
  *(void **)&visitor = dlsym(handle, "leads_to_hidden");
  CHECK(visitor != NULL, "%s", dlerror());
  if (replace) {
    CHECK(rename(other, path) == 0, "rename");
  }
  bc_loop *loop = watched("own");
  bc_dispatch_begin(loop, "library", 1);
  visitor(kept_to_itself);
  bc_dispatch_end(loop);
  flush();
  CHECK(unlink(path) == 0 && (replace || unlink(other) == 0), "unlink");
}

STAYS static void library_static(void) {
  static const char *const names[] = {"kept_to_itself", "hidden_in_one", "leads_to_hidden", "library", "library_static", NULL};
  library(names, false);
  judge();
}

static void library_replaced(void) {
  static const char *const names[] = {"hidden_in_two", NULL};
  library(names, true);
  printf("%u stacks, %u of them name another file's function\n", with_stack, naming);
  CHECK(with_stack >= 8 && naming == 0, "%u of %u name another file's function", naming, with_stack);
  CHECK_OK(bc_uninstall());
}

CASES({"waiting", waiting}, {"running", running}, {"library_static", library_static},
      {"library_replaced", library_replaced})
