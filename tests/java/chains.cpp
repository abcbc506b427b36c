/* Printers of other libraries: each hears of each message once, begin and end in turn, as it would without us. */
#include <unistd.h>

extern "C" {
#include "../c/check.h"
#include "../c/support/blocks.h"
}
#include "main_looper.h"
#include "vm.h"

namespace {

uint64_t misused(void) {
  return health().calls_misused;
}

void hears(int printer, int messages) {
  int lines = others("lines", printer);
  CHECK(lines >= 0, "Printer %d was told %d times of what it could not be told of", printer, -lines);
  CHECK(lines == messages, "Printer %d was told of %d messages of %d", printer, lines, messages);
}

/* One message that the main thread works on for so long. */
void run_step(void (*step)(JNIEnv *, jint)) {
  on_step = step;
  app("step", "(I)V", 1);
  run_bare(0);
}

void work(JNIEnv *, jint) {
  spin_ms(4000);
}

void work_under_another(JNIEnv *, jint) {
  others("replace", 3);
  spin_ms(4000);
}

void *uninstall(void *) {
  CHECK_OK(bc_uninstall());
  return nullptr;
}

void uninstall_elsewhere(JNIEnv *, jint) {
  join_thread(start_thread(uninstall, nullptr));
}

void busy_elsewhere(JNIEnv *, jint) {
  others("busy", 50);
}

void climb(JNIEnv *, jint) {
  others("climb", 0);
}

}  // namespace

/* Who has put a Printer over ours, and calls it, has not replaced it, however long a message takes. */
void wrapped(void) {
  begin(true, 200);
  others("replace", 1);
  watch();
  others("wrap", 2);
  run_step(work);
  CHECK(misused() == 0, "%llu replaced", static_cast<unsigned long long>(misused()));
  run_bare(10);
  hears(1, 13);
  hears(2, 13);
  CHECK(dispatches() == 13, "%llu dispatches", static_cast<unsigned long long>(dispatches()));
  end();
}

/* A Printer over ours cannot be taken away, and goes on after uninstall; so does the one below. */
void wrapped_lives(void) {
  begin(true, 200);
  others("replace", 1);
  watch();
  others("wrap", 2);
  for (int life = 1; life <= 3; life++) {
    run_bare(9);
    CHECK(dispatches() == 10 && misused() == 0, "%llu dispatches, %llu misused",
          static_cast<unsigned long long>(dispatches()), static_cast<unsigned long long>(misused()));
    CHECK_OK(bc_uninstall());
    run_bare(9);
    hears(2, life * 20);
    hears(1, life * 20);
    begin_again(200);
    watch();
  }
  end();
}

/* A Printer that comes in a message hears of it neither begin nor end; the one before hears both. Ours is put in again
 * meanwhile or later. */
void within(void) {
  begin(true, 200);
  others("replace", 1);
  watch();
  run_step(work_under_another);
  /* The first message, and its end. */
  hears(1, 1);
  WAIT_FOR((run_bare(20), pause_ms(20), misused() == 1), 20000);
  uint64_t before = dispatches();
  run_bare(99);
  CHECK(dispatches() == before + 100, "%llu dispatches", static_cast<unsigned long long>(dispatches() - before));
  int lines = others("lines", 3);
  CHECK(lines > 100, "%d lines", lines);
  hears(1, 1);
  end();
}

/* The library goes in a message: who was there before hears its end. */
void left_within(void) {
  begin(true, 200);
  others("replace", 1);
  watch();
  run_step(uninstall_elsewhere);
  run_bare(3);
  hears(1, 6);
  begin_again(200);
  watch();
  run_bare(3);
  hears(1, 10);
  CHECK(misused() == 0, "%llu misused", static_cast<unsigned long long>(misused()));
  end();
}

/* One that calls whoever it was put over, and is put over ours, which calls it: each message is marked once. */
void climbed(void) {
  begin(true, 200);
  others("climb", 0);
  watch();
  for (unsigned round = 1; round <= 3; round++) {
    for (int time = 0; time < 3; time++) {
      run_step(climb);
    }
    uint64_t before = dispatches();
    run_bare(99);
    CHECK(dispatches() == before + 100 && misused() == round - 1, "round %u: %llu dispatches, %llu misused", round,
          static_cast<unsigned long long>(dispatches() - before), static_cast<unsigned long long>(misused()));
    others("replace", 1);
    WAIT_FOR((run_bare(20), pause_ms(20), misused() == round), 20000);
  }
  end();
}

/* What another one's Printer throws goes to the Looper, as without us; the marks are right afterwards. */
void throwing(void) {
  const char at[] = {'>', '<'};
  for (char sign : at) {
    if (sign == '>') {
      begin(true, 200);
    } else {
      begin_again(200);
    }
    others("thrower", sign);
    watch();
    app("post", "(III)V", 1, 0, 0);
    app("loop", "()V");
    /* Ours was taken out by the one that threw. The wait for messages comes through between them. */
    WAIT_FOR((run_bare(20), others("later", 20), app("loop", "()V"), misused() == 1), 20000);
    uint64_t before = dispatches();
    run_bare(99);
    CHECK(dispatches() == before + 100, "%llu dispatches", static_cast<unsigned long long>(dispatches() - before));
    CHECK(misused() == 1, "%llu misused", static_cast<unsigned long long>(misused()));
    end();
  }
}

/* A Printer over ours that is another thread's, too: what that thread does is no message of the main one's. */
void shared(void) {
  begin(true, 200);
  watch();
  run_bare(0);
  others("share", 0);
  for (int time = 0; time < 20; time++) {
    run_step(busy_elsewhere);
  }
  /* A message for each step, one behind each that ends the loop, and the one before. */
  CHECK(dispatches() == 41, "%llu dispatches of 41", static_cast<unsigned long long>(dispatches()));
  others("later", 1500);
  app("loop", "()V");
  flush();
  CHECK(blocks_told() == 0, "%u blocks of a thread that waited", blocks_told());
  run(10, 10, 500);
  CHECK(misused() == 0, "%llu misused", static_cast<unsigned long long>(misused()));
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks of one", blocks_in(BC_BLOCK_ENDED));
  end();
}
