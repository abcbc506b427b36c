/* Messages go to Android's log, where there is one and the program has no handler. */
#include <stdatomic.h>
#include <string.h>

#include "check.h"
#include "support/blocks.h"
#include "support/liblog.h"
#include "support/procfs.h"

static atomic_uint handled;

static void handle(bc_log_level level, const char *message, void *user_data) {
  (void)level, (void)message, (void)user_data;
  atomic_fetch_add(&handled, 1);
}

static const struct log_line *written(unsigned from, int priority, const char *text) {
  for (unsigned i = from; i < log_count(); i++) {
    if (log_line(i)->priority == priority && strstr(log_line(i)->text, text) != NULL) {
      CHECK(strcmp(log_line(i)->tag, "blockcanary") == 0, "tag %s", log_line(i)->tag);
      return log_line(i);
    }
  }
  return NULL;
}

static void lines(void) {
  bc_config config = config_of(0);
  config.max_loops = 1000;
  CHECK_STATUS(bc_install(&config), BC_ERROR_INVALID_ARGUMENT);
  CHECK(written(0, 6, "bc_config.max_loops: 1000 is not in 1 to 256") != NULL && log_count() == 1, "%u lines", log_count());

  /* Of a block, from the library's own threads. */
  config = config_of(50);
  config.report_dir = fresh_directory("logcat");
  install_and_start(&config);
  bc_loop *loop = watched("game");
  blocking_dispatch(loop, "first", 1, 100);
  flush();
  CHECK(written(1, 5, "loop \"game\": \"first\" blocked for ") != NULL, "nothing of the block in %u lines", log_count());
  CHECK(written(1, 4, "has been blocked for ") != NULL, "nothing of it while it went on");

  /* With a handler it is the handler's, and afterwards again the log's. */
  CHECK_OK(bc_set_log_handler(handle, NULL));
  unsigned before = log_count();
  blocking_dispatch(loop, "second", 2, 100);
  flush();
  CHECK(log_count() == before && atomic_load(&handled) >= 2, "%u lines, %u handled", log_count() - before, handled);
  CHECK_OK(bc_set_log_handler(NULL, NULL));
  unsigned handled_before = atomic_load(&handled);
  blocking_dispatch(loop, "third", 3, 100);
  flush();
  CHECK(written(before, 5, "\"third\" blocked for ") != NULL && atomic_load(&handled) == handled_before, "not written");
  CHECK_OK(bc_uninstall());
}

CASES({"lines", lines})
