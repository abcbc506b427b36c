/* Messages, modes and loaders that are out of the ordinary. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern "C" {
#include "../c/check.h"
#include "../c/support/blocks.h"
}
#include "main_looper.h"
#include "reports.h"
#include "vm.h"

namespace {

unsigned blocks_called(const char *what) {
  unsigned count = 0;
  for (unsigned i = 0; i < blocks_told(); i++) {
    const struct told *block = blocks_at(i);
    printf("state %d: %s, %llu ms\n", block->state, block->what, static_cast<unsigned long long>(block->wall_ns / 1000000));
    count += block->state == BC_BLOCK_ENDED && strcmp(block->what, what) == 0;
  }
  return count;
}

}  // namespace

/* A message has thrown, and the app runs the Looper on: waiting for the next message is no block. */
void idle_after(void) {
  begin(true, 200);
  watch();
  app("fail", "()V");
  app("loop", "()V");
  others("later", 1500);
  app("loop", "()V");
  flush();
  CHECK(blocks_called("") == 0 && blocks_told() == 0, "%u blocks of a thread that waits", blocks_told());
  run(10, 10, 500);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1 && dispatches() == 13, "%u blocks, %llu dispatches", blocks_in(BC_BLOCK_ENDED),
        static_cast<unsigned long long>(dispatches()));
  CHECK(health().calls_misused == 0, "%llu misused", static_cast<unsigned long long>(health().calls_misused));
  end();
}

/* Whatever a callback says of itself, the message is called by its handler and number, and by nothing of that. */
void odd_names(void) {
  begin(true, 200);
  watch();
  int kinds = 1;
  for (int kind = 0; kind < kinds; kind++) {
    kinds = others("odd", kind);
    run(0, 0, 0);
  }
  unsigned count = blocks_called("dev.blockcanary.test.Others$\u00dcberl\u00e4ufer\U0001D4B3 what=-77");
  CHECK(static_cast<int>(count) == kinds, "%u of %d are called so", count, kinds);
  end();
}

/* The main thread's loader is exchanged while it is watched: our Printer goes all the same. */
void other_loader(void) {
  begin(true, 200);
  others("replace", 1);
  watch();
  others("loader", 0);
  run(10, 10, 500);
  unsigned named, stacks;
  count_blocks(&named, &stacks);
  CHECK(named == 1 && stacks == 1, "%u named, %u with a Java stack", named, stacks);
  end();
  run_bare(10);
  int lines = others("lines", 1);
  CHECK(lines == 22, "%d lines", lines);
  others("replace", 2);
  CHECK(app_number("printer", 0) == -1, "no Printer");
}

/* Watched again in the other way: one block stays one. */
void rewatched(void) {
  begin(true, 200);
  bc_loop *loop = watch();
  unsigned blocks = 0;
  for (int time = 0; time < 6; time++) {
    bool is_given_up = time < 4;
    app("precise", "(Z)V", time % 2 != 0);
    if (is_given_up) {
      CHECK_OK(bc_loop_unwatch(loop));
      WAIT_FOR((run_bare(3), pause_ms(20), app_number("printer", 0) == 0), 20000);
    }
    loop = watch();
    run(10, 10, 600);
    WAIT_FOR((flush(), blocks_in(BC_BLOCK_ENDED) > blocks), 5000);
    flush();
    CHECK(blocks_in(BC_BLOCK_ENDED) == blocks + 1, "time %d: %u blocks of one", time, blocks_in(BC_BLOCK_ENDED) - blocks);
    blocks++;
    CHECK(health().calls_misused == 0, "time %d: %llu misused", time, static_cast<unsigned long long>(health().calls_misused));
  }
  end();
}

namespace {

void go_deep(JNIEnv *, jint step) {
  if (step == 1) {
    others("deep", 3000);
  } else if (step == 2) {
    others("overflow", 0);
    sleep_ms(500);
  } else {
    others("garbage", 800);
  }
}

}  // namespace

/* A stack that is deeper than what is kept of one, one that has run over, and one whose VM collects garbage. */
void deep(void) {
  begin(true, 200);
  watch();
  on_step = go_deep;
  for (int step = 1; step <= 3; step++) {
    app("step", "(I)V", step);
    run(0, 0, 0);
  }
  CHECK(blocks_in(BC_BLOCK_ENDED) == 3, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  const char *functions[] = {"Others.deep(", "Messages.call(", "Others.garbage("};
  for (unsigned i = 0, nth = 0; i < blocks_told(); i++) {
    if (blocks_at(i)->state == BC_BLOCK_ENDED) {
      const char *stack = java_stack(blocks_at(i)->path);
      CHECK(strstr(stack, functions[nth]) != nullptr, "%s is not in %.2000s", functions[nth], stack);
      nth++;
    }
  }
  end();
}
