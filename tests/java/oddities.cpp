/* Messages, modes and loaders that are out of the ordinary. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

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

/* Each element is whole: it ends with its place in the source. */
static void check_elements(const char *stack) {
  const char *at = strchr(strstr(stack, "\"frames\""), '[');
  CHECK(at != nullptr, "no elements in %.200s", stack);
  unsigned count = 0;
  for (const char *open; (open = strchr(at, '"')) != nullptr && memchr(at, ']', static_cast<size_t>(open - at)) == nullptr;) {
    at = strchr(open + 1, '"');
    CHECK(at != nullptr && at[-1] == ')', "half an element: %.*s", static_cast<int>(at - open), open);
    at++;
    count++;
  }
  CHECK(count > 0, "no elements");
}

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
  const char *functions[] = {"Others.deepBelow", "Messages.call(", "Others.garbage("};
  for (unsigned i = 0, nth = 0; i < blocks_told(); i++) {
    if (blocks_at(i)->state == BC_BLOCK_ENDED) {
      const char *stack = java_stack(blocks_at(i)->path);
      CHECK(strstr(stack, functions[nth]) != nullptr, "%s is not in %.2000s", functions[nth], stack);
      check_elements(stack);
      nth++;
    }
  }
  end();
}

namespace {

bc_loop *loop_now;

void watch_anew(void) {
  CHECK_OK(bc_loop_unwatch(loop_now));
  loop_now = watch();
}

void change(JNIEnv *, jint step) {
  bool is_late = step >= 5;
  sleep_ms(is_late ? 300 : 0);
  if (step == 1) {
    CHECK_OK(bc_loop_unwatch(loop_now));
  } else if (step == 2 || step == 5) {
    watch_anew();
  } else if (step == 3 || step == 6) {
    CHECK_OK(bc_stop());
    sleep_ms(is_late ? 300 : 0);
    CHECK_OK(bc_start());
  } else {
    flush();
    CHECK_OK(bc_uninstall());
    begin_again(200);
    loop_now = watch();
  }
  sleep_ms(is_late ? 300 : 0);
}

std::atomic<bool> is_over;

void *change_always(void *) {
  vm_attach();
  for (int time = 0; time < 200; time++) {
    if (time % 3 == 0) {
      CHECK_OK(bc_loop_unwatch(loop_now));
    }
    if (time % 7 == 0) {
      app("precise", "(Z)V", time % 2);
    }
    loop_now = watch();
    if (time % 5 == 0) {
      others(time % 2 == 0 ? "wrap" : "replace", 1 + time % 3);
    }
  }
  is_over = true;
  app("quit", "()V");
  vm_detach();
  return nullptr;
}

void *send_always(void *) {
  vm_attach();
  while (!is_over) {
    app("post", "(III)V", 3, 0, 0);
    pause_ms(1);
  }
  vm_detach();
  return nullptr;
}

}  // namespace

/* A message that gives up the watch, the watching or the library, and begins anew: what is watched of it, if it is late, is
 * told, and no end is without a begin. */
void changed_within(void) {
  begin(true, 200);
  on_step = change;
  /* Of the message itself, and one of a message that follows. Of one that is watched from its middle on no begin is heard. */
  const unsigned expected[] = {1, 1, 1, 1, 2, 3, 2};
  for (jint step = 1; step <= 7; step++) {
    loop_now = watch();
    unsigned before = blocks_in(BC_BLOCK_ENDED);
    app("step", "(I)V", step);
    run_bare(20);
    loop_now = watch();
    run(10, 10, 500);
    unsigned ended = blocks_in(BC_BLOCK_ENDED) - before;
    CHECK(ended == expected[step - 1], "step %d: %u blocks of %u", step, ended, expected[step - 1]);
    CHECK(health().calls_misused == 0, "step %d: %llu misused", step, static_cast<unsigned long long>(health().calls_misused));
  }
  end();
}

/* Two threads: one has the main thread watched in turns, in both ways, the other sends it messages. */
void toggled(void) {
  begin(true, 200);
  loop_now = watch();
  unsigned long changes = start_thread(change_always, nullptr), messages = start_thread(send_always, nullptr);
  while (!is_over) {
    app("loop", "()V");
  }
  join_thread(changes);
  join_thread(messages);
  run_bare(0);
  unsigned before = blocks_in(BC_BLOCK_ENDED);
  run(10, 10, 500);
  WAIT_FOR((flush(), blocks_in(BC_BLOCK_ENDED) == before + 1), 5000);
  end();
}
