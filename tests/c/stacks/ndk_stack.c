/* The part of the text report that ndk-stack reads. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"
#include "../support/blocks.h"
#include "../support/procfs.h"
#include "chain.h"

static char text[4 * 1024 * 1024];

struct outcome ndk_wait(void);
STAYS struct outcome ndk_wait(void) {
  sleep_ms(200);
  return (struct outcome){0, 0};
}

static bool matches(const char *pattern, const char *line, regmatch_t *groups, size_t count) {
  regex_t compiled;
  CHECK(regcomp(&compiled, pattern, REG_EXTENDED) == 0, "%s", pattern);
  bool does = regexec(&compiled, line, count, groups, 0) == 0;
  regfree(&compiled);
  return does;
}

static void section(void) {
  const char *directory = fresh_directory("ndk_stack");
  bc_config config = config_of(50);
  config.report_formats = BC_FORMAT_TEXT;
  config.report_dir = directory;
  install_and_start(&config);
  bc_loop *loop = watched("engine");
  bc_dispatch_begin(loop, "chain", 1);
  chain_10(ndk_wait);
  bc_dispatch_end(loop);
  flush();
  read_whole(blocks_get(BC_BLOCK_ENDED, 1)->path, text, sizeof text);

  /* ndk-stack begins behind the banner, and needs it as it stands. */
  static const char banner[] = "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\n";
  char *at = strstr(text, banner);
  CHECK(at != NULL && (at == text || at[-1] == '\n'), "no banner");
  CHECK(strstr(at + 1, banner) == NULL, "two banners");
  char *line = strtok(at + strlen(banner), "\n");
  char expected[256];
  snprintf(expected, sizeof expected, "pid: %d, tid: %d, name: engine  >>> test_ndk_stack <<<", (int)getpid(),
           (int)syscall(SYS_gettid));
  CHECK(line != NULL && strcmp(line, expected) == 0, "%s", line);

  static const char *const names[] = {CHAIN_NAMES};
  unsigned frames = 0, found = 0;
  while ((line = strtok(NULL, "\n")) != NULL) {
    regmatch_t groups[8];
    /* What the tool looks for, and what every frame with a symbol and a build id looks like. */
    if (!matches("^.* +(#[0-9]+) +pc ([0-9a-f]+) +(([^ ]+).*)", line, NULL, 0)) {
      break;
    }
    CHECK(matches("^    #([0-9]{2,}) pc ([0-9a-f]{16})  ([^ ]+)( \\(([^ ()]+)\\+([0-9]+)\\))?( \\(BuildId: [0-9a-f]+\\))?$",
                  line, groups, 8),
          "%s", line);
    CHECK((unsigned)atoi(line + groups[1].rm_so) == frames, "frame %u: %s", frames, line);
    if (groups[5].rm_so >= 0 && found < 10) {
      size_t length = (size_t)(groups[5].rm_eo - groups[5].rm_so);
      bool is_next = length == strlen(names[found]) && memcmp(line + groups[5].rm_so, names[found], length) == 0;
      CHECK(found == 0 || is_next, "%s instead of %s", line, names[found]);
      found += is_next;
    }
    frames++;
  }
  printf("%u frames, %u of the chain\n", frames, found);
  CHECK(found == 10 && frames >= 13, "%u frames, %u of the chain", frames, found);
  CHECK_OK(bc_uninstall());
}

CASES({"section", section})
