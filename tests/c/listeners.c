/* What a listener may do, and what happens when it does not return. */
#include <stdatomic.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"

static atomic_int calls, released;
static bc_status from_flush, from_uninstall, from_watch, from_stop;

static void calling(const bc_block *block, void *user_data) {
  if (block->state != BC_BLOCK_ENDED) {
    return;
  }
  CHECK(user_data == &calls, "another user_data");
  bc_loop *loop = (bc_loop *)1;
  from_flush = bc_flush(1000);
  from_uninstall = bc_uninstall();
  from_watch = bc_loop_watch("reporter", &loop);
  CHECK(loop == NULL, "a refused watch left %p", (void *)loop);
  bc_health inside = health();
  CHECK(inside.blocks_seen > 0, "no block seen inside a listener");
  from_stop = bc_stop();
  atomic_fetch_add(&calls, 1);
}

static void calls_from_inside(void) {
  bc_config config = config_of(50);
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(calling, &calls));
  CHECK_OK(bc_start());
  blocking_dispatch(watched("calling"), "late", 1, 100);
  WAIT_FOR(atomic_load(&calls) == 1, 20000);
  CHECK_STATUS(from_flush, BC_ERROR_WRONG_THREAD);
  CHECK_STATUS(from_uninstall, BC_ERROR_WRONG_THREAD);
  CHECK_STATUS(from_watch, BC_ERROR_WRONG_THREAD);
  CHECK_STATUS(from_stop, BC_OK);
  CHECK(!bc_is_running(), "bc_stop inside a listener had no effect");
  CHECK_OK(bc_start());
  CHECK_OK(bc_uninstall());
}

static void stuck(const bc_block *block, void *user_data) {
  (void)user_data;
  if (block->state == BC_BLOCK_ENDED) {
    atomic_fetch_add(&calls, 1);
    WAIT_FOR(atomic_load(&released) == 1, 60000);
  }
}

static unsigned took_ms(uint64_t since) {
  return (unsigned)((now_ns() - since) / 1000000);
}

/* Nobody waits for a listener for ever. */
static void never_returning(void) {
  bc_config config = config_of(50);
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(stuck, NULL));
  CHECK_OK(bc_start());
  bc_loop *loop = watched("stuck");
  blocking_dispatch(loop, "first", 1, 100);
  WAIT_FOR(atomic_load(&calls) == 1, 20000);
  blocking_dispatch(loop, "second", 2, 100);
  CHECK_STATUS(bc_flush(50), BC_ERROR_TIMEOUT);

  uint64_t begin = now_ns();
  CHECK_OK(bc_stop());
  CHECK(took_ms(begin) < 200, "bc_stop took %u ms", took_ms(begin));
  begin = now_ns();
  CHECK_STATUS(bc_uninstall(), BC_ERROR_TIMEOUT);
  CHECK(took_ms(begin) >= 1900 && took_ms(begin) < 4000, "bc_uninstall took %u ms", took_ms(begin));
  CHECK(!bc_is_running(), "running");
  CHECK_STATUS(bc_install(&config), BC_ERROR_INVALID_STATE);
  atomic_store(&released, 1);
  CHECK_OK(bc_uninstall());
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_uninstall());
}

static atomic_int in_old, old_calls;

static void old_listener(const bc_block *block, void *user_data) {
  (void)user_data;
  if (block->state == BC_BLOCK_ENDED) {
    atomic_store(&in_old, 1);
    sleep_ms(300);
    atomic_fetch_add(&old_calls, 1);
    atomic_store(&in_old, 0);
  }
}

/* When the call that replaces a listener returns, the old one is not running and will not run again. */
static void replaced(void) {
  bc_config config = config_of(50);
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(old_listener, NULL));
  CHECK_OK(bc_start());
  bc_loop *loop = watched("replaced");
  blocking_dispatch(loop, "old", 1, 100);
  WAIT_FOR(atomic_load(&in_old) == 1, 20000);
  CHECK_OK(bc_set_listener(blocks_listener, NULL));
  CHECK(atomic_load(&in_old) == 0 && atomic_load(&old_calls) == 1, "the old listener is still running");
  blocking_dispatch(loop, "new", 2, 100);
  flush();
  CHECK(atomic_load(&old_calls) == 1, "the old listener ran again");
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 2) == 1, "%u", blocks_tagged(BC_BLOCK_ENDED, 2));

  CHECK_OK(bc_set_listener(NULL, NULL));
  blocking_dispatch(loop, "nobody", 3, 100);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 3) == 0, "told a listener that was removed");
  CHECK_OK(bc_uninstall());
}

static atomic_int messages;
static atomic_int nonsense_levels;

static void log_handler(bc_log_level level, const char *message, void *user_data) {
  CHECK(user_data == &messages, "another user_data");
  if (level < BC_LOG_ERROR || level > BC_LOG_DEBUG || message == NULL || message[0] == 0) {
    atomic_fetch_add(&nonsense_levels, 1);
  }
  atomic_fetch_add(&messages, 1);
}

/* The log handler may be set before install and stays through uninstall. */
static void log_messages(void) {
  CHECK_OK(bc_set_log_handler(log_handler, &messages));
  bc_config config = config_of(50);
  for (unsigned i = 1; i <= 2; i++) {
    int before = atomic_load(&messages);
    install_and_start(&config);
    blocking_dispatch(watched("logged"), "late", i, 100);
    flush();
    CHECK_OK(bc_uninstall());
    CHECK(atomic_load(&messages) > before, "no message in installation %u", i);
  }
  CHECK(atomic_load(&nonsense_levels) == 0, "%d messages without level or text", atomic_load(&nonsense_levels));
  CHECK_OK(bc_set_log_handler(NULL, NULL));
  int before = atomic_load(&messages);
  install_and_start(&config);
  CHECK_OK(bc_uninstall());
  CHECK(atomic_load(&messages) == before, "a message to a handler that was removed");
}

static void slow_listener(const bc_block *block, void *user_data) {
  (void)block, (void)user_data;
  atomic_fetch_add(&calls, 1);
  sleep_ms(200);
}

static void waiting_listener(const bc_block *block, void *user_data) {
  (void)block, (void)user_data;
  WAIT_FOR(atomic_load(&released), 5000);
}

/* Only the old one is waited for, not the new one that comes right after it. */
static void replaced_by_one_that_waits(void) {
  bc_config config = config_of(30);
  config.report_ongoing = BC_OFF;
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(slow_listener, NULL));
  CHECK_OK(bc_start());
  bc_loop *loop = watched("three");
  for (unsigned i = 0; i < 3; i++) {
    blocking_dispatch(loop, "work", i, 45);
  }
  WAIT_FOR(atomic_load(&calls) > 0, 10000);
  CHECK_OK(bc_set_listener(waiting_listener, NULL));
  atomic_store(&released, 1);
  flush();
  CHECK_OK(bc_uninstall());
}

static atomic_int in_listener, in_handler;

static void replaces_handler(const bc_block *block, void *user_data) {
  (void)block, (void)user_data;
  atomic_store(&in_listener, 1);
  WAIT_FOR(atomic_load(&in_handler), 5000);
  bc_set_log_handler(NULL, NULL);
}

static void replaces_listener(bc_log_level level, const char *message, void *user_data) {
  (void)level, (void)message, (void)user_data;
  if (atomic_load(&in_listener)) {
    atomic_store(&in_handler, 1);
    bc_set_listener(NULL, NULL);
  }
}

/* Each may be called from inside the other: neither waits for ever. */
static void replaced_crosswise(void) {
  CHECK_OK(bc_set_log_handler(replaces_listener, NULL));
  bc_config config = config_of(30);
  config.report_ongoing = BC_OFF;
  CHECK_OK(bc_install(&config));
  CHECK_OK(bc_set_listener(replaces_handler, NULL));
  CHECK_OK(bc_start());
  bc_loop *loop = watched("three");
  for (unsigned i = 0; i < 3; i++) {
    blocking_dispatch(loop, "work", i, 45);
  }
  CHECK_OK(bc_flush(5000));
  CHECK_OK(bc_uninstall());
}

CASES({"calls_from_inside", calls_from_inside}, {"never_returning", never_returning}, {"replaced", replaced},
      {"log_messages", log_messages},
      {"replaced_by_one_that_waits", replaced_by_one_that_waits},
      {"replaced_crosswise", replaced_crosswise})
