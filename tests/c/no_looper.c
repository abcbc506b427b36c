/* Without ALooper_* in the process the looper calls answer as a looper that failed would, there are no frames to watch,
 * and Java is refused. */
#include <blockcanary.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "support/blocks.h"

/* The last message: calls here are made by one thread. */
static char said[256];

static void keep_message(bc_log_level level, const char *message, void *user_data) {
  (void)level, (void)user_data;
  snprintf(said, sizeof said, "%s", message);
}

static int callback(int fd, int events, void *data) {
  (void)fd;
  (void)events;
  (void)data;
  return 1;
}

static void answers(void) {
  struct ALooper *none = NULL;
  for (int i = 0; i < 2; i++) {
    CHECK(bc_looper_poll_once(0, NULL, NULL, NULL) == -4, "poll_once");
    CHECK(bc_looper_poll_all(0, NULL, NULL, NULL) == -4, "poll_all");
    CHECK(bc_looper_add_fd(none, 0, 0, 1, callback, NULL) == -1, "add_fd");
    CHECK(bc_looper_remove_fd(none, 0) == -1, "remove_fd");
    if (i == 0) {
      bc_config config = config_of(100);
      install_and_start(&config);
    }
  }
  bc_loop *loop = (bc_loop *)1;
  CHECK_OK(bc_set_log_handler(keep_message, NULL));
  CHECK_STATUS(bc_frames_watch("frames", &loop), BC_ERROR_UNSUPPORTED);
  CHECK(loop == NULL, "a token after a failure");
  CHECK(strcmp(said, "bc_frames_watch: the system has no AChoreographer") == 0, "%s", said);
  loop = (bc_loop *)1;
  CHECK_STATUS(bc_looper_probe((struct ALooper *)(void *)&loop, "main", &loop), BC_ERROR_UNSUPPORTED);
  CHECK(loop == NULL, "a token after a failure");
  CHECK(strcmp(said, "bc_looper_probe: the system has no ALooper") == 0, "%s", said);
  CHECK_OK(bc_uninstall());
}

/* Nor is there a Java VM, and the archive has nothing that could ask one. */
static void no_java(void) {
  int vm = 0;
  bc_loop *const some = (bc_loop *)(void *)&vm;
  bc_loop *loop = some;
  CHECK_STATUS(bc_java_watch(&vm, NULL, &loop), BC_ERROR_INVALID_STATE);
  CHECK(loop == NULL, "a token after a failure");
  bc_config config = config_of(100);
  install_and_start(&config);
  loop = some;
  CHECK_OK(bc_set_log_handler(keep_message, NULL));
  CHECK_STATUS(bc_java_watch(&vm, "main", &loop), BC_ERROR_UNSUPPORTED);
  CHECK(loop == NULL, "a token after a failure");
  CHECK(strcmp(said, "bc_java_watch: this library is built without the feature `jni`") == 0, "%s", said);
  loop = some;
  CHECK_STATUS(bc_java_watch(NULL, NULL, &loop), BC_ERROR_INVALID_ARGUMENT);
  CHECK(loop == NULL, "a token after a failure");
  CHECK_STATUS(bc_java_watch(&vm, NULL, NULL), BC_ERROR_INVALID_ARGUMENT);
  CHECK(health().loops_watched == 0, "watched");
  CHECK_OK(bc_uninstall());
}

CASES({"answers", answers}, {"no_java", no_java})
