/* A library that polls, and knows nothing of being watched. With FIFO, its constructor waits for somebody to write there. */
#include <android/looper.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) int polls_once(int timeout_ms);
int polls_once(int timeout_ms) {
  return ALooper_pollOnce(timeout_ms, NULL, NULL, NULL);
}

#ifdef FIFO
__attribute__((constructor)) static void wait_for_writer(void) {
  char byte;
  int fifo = open(getenv(FIFO), O_RDONLY | O_CLOEXEC);
  while (fifo >= 0 && read(fifo, &byte, 1) > 0) {
  }
  close(fifo);
}
#endif
