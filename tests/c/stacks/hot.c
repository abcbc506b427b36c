/* The stacks that a block was seen in most often lead its report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/json.h"
#include "../support/procfs.h"

static char text[4 * 1024 * 1024];

#define PART(name, call)                                                         \
  void name(unsigned ms);                                                        \
  STAYS void name(unsigned ms) {                             \
    call(ms);                                                                    \
    __asm__ volatile("");                                                        \
  }

/* Counts on its own: what it spends in clock reads would be stacks of their own. */
static void count_ms(unsigned ms) {
  uint64_t until = now_ns() + ms * 1000000ull;
  while (now_ns() < until) {
    for (volatile int i = 0; i < 20000; i++) {
    }
  }
}

PART(part_a, count_ms)
PART(part_b, pause_ms)
PART(part_c, count_ms)

static void share(void) {
  const char *directory = fresh_directory("hot");
  bc_config config = config_of(50);
  config.sample_interval_ms = 10;
  config.report_formats = BC_FORMAT_JSON;
  config.report_dir = directory;
  install_and_start(&config);
  bc_loop *loop = watched("hot");
  bc_dispatch_begin(loop, "three parts", 1);
  part_a(400);
  part_b(80);
  part_c(30);
  bc_dispatch_end(loop);
  flush();
  read_whole(blocks_get(BC_BLOCK_ENDED, 1)->path, text, sizeof text);
  CHECK(json_valid(text), "no JSON");
  const char *hot = json_member(text, "hot_stacks");
  CHECK(hot != NULL && *hot == '[', "no hot_stacks");
  const char *first = strchr(hot, '{');
  CHECK(first != NULL, "hot_stacks is empty");
  const char *second = strstr(first + 1, "\"share\"") == NULL ? first + strlen(first) : strstr(first + 1, "\"share\"") + 1;
  const char *next = strstr(second, "\"share\"");
  size_t length = next == NULL ? strlen(first) : (size_t)(next - first);
  printf("%.*s\n", (int)(length < 1500 ? length : 1500), first);
  const char *share_text = json_member(first, "share");
  CHECK(share_text != NULL, "no share");
  double share_of_a = atof(share_text);
  const char *in_a = strstr(first, "\"part_a\"");
  CHECK(in_a != NULL && in_a < first + length, "the first is not part_a's");
  CHECK(share_of_a >= 0.6 && share_of_a <= 1, "share %f", share_of_a);
  CHECK_OK(bc_uninstall());
}

CASES({"share", share})
