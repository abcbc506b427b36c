/* A library that is not loaded before somebody writes to the FIFO: until then, whoever loads it holds the loader's lock. */
#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) void constructor_waits(void) {
  char byte;
  int fd = open(FIFO, O_RDONLY);
  while (read(fd, &byte, 1) < 0) {
  }
  close(fd);
}
