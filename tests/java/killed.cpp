/* An app that is killed while its main thread is blocked: the next start tells what Java was at. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

extern "C" {
#include "../c/check.h"
#include "../c/support/blocks.h"
#include "../c/support/procfs.h"
}
#include "reports.h"
#include "vm.h"

namespace {

constexpr unsigned PATIENCE_MS = 60000;

[[noreturn]] void app_that_blocks(const char *folder) {
  vm_begin();
  app("precise", "(Z)V", false);
  bc_config config = config_of(200);
  config.report_dir = folder;
  install_and_start(&config);
  bc_loop *loop = nullptr;
  CHECK_OK(bc_java_watch(vm(), nullptr, &loop));
  app("post", "(III)V", 1, 1, 600000);
  app("loop", "()V");
  CHECK(false, "the message has ended");
  abort();
}

/* Does the flight recorder in this folder hold the text? */
bool is_recorded(const char *folder, const char *text) {
  DIR *files = opendir(folder);
  bool is_there = false;
  for (dirent *file; files != nullptr && (file = readdir(files)) != nullptr;) {
    if (strncmp(file->d_name, "recorder-", 9) == 0) {
      FILE *recorder = fopen((std::string(folder) + "/" + file->d_name).c_str(), "r");
      std::string bytes;
      char piece[4096];
      for (size_t count; recorder != nullptr && (count = fread(piece, 1, sizeof piece, recorder)) > 0;) {
        bytes.append(piece, count);
      }
      if (recorder != nullptr) {
        fclose(recorder);
      }
      is_there = is_there || bytes.find(text) != std::string::npos;
    }
  }
  if (files != nullptr) {
    closedir(files);
  }
  return is_there;
}

}  // namespace

void killed() {
  char folder[64];
  snprintf(folder, sizeof folder, "/dev/shm/bc-java-killed-%d", static_cast<int>(getpid()));
  pid_t child = fork();
  CHECK(child >= 0, "no child");
  if (child == 0) {
    app_that_blocks(folder);
  }
  int status;
  WAIT_FOR(is_recorded(folder, ELEMENT) || waitpid(child, &status, WNOHANG) != 0, PATIENCE_MS);
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "the child ended by itself");
  bc_config config = config_of(200);
  config.report_dir = folder;
  install_and_start(&config);
  flush();
  WAIT_FOR(blocks_in(BC_BLOCK_KILLED) == 1, PATIENCE_MS);
  const struct told *block = blocks_get(BC_BLOCK_KILLED, 0);
  CHECK(strstr(java_stack(block->path), ELEMENT) != nullptr, "no Java stack in the JSON of %s", block->path);
  const char *log = strstr(report_at(block->path), "\nstack = ");
  CHECK(log != nullptr && strstr(log, ELEMENT) != nullptr, "no Java stack in %s", block->path);
  CHECK_OK(bc_reports_delete_all());
  CHECK_OK(bc_uninstall());
  std::string remove = std::string("rm -rf ") + folder;
  CHECK(system(remove.c_str()) == 0, "%s", remove.c_str());
}
