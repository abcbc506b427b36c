/* What the kernel tells of this process. Nothing here allocates. */
#ifndef PROCFS_H
#define PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Threads; with a name that begins so; and how often those have left the processor of their own accord. */
unsigned threads(void);
unsigned threads_named(const char *prefix);
uint64_t voluntary_switches(const char *prefix);
/* How long threads of a process with such names have been ready to run without a processor, in all. UINT64_MAX: one of them
 * is so just now, or waits for a device, and for how long is not known. */
uint64_t threads_waited_ns(pid_t pid, const char *prefix);
/* Open descriptors. */
unsigned descriptors(void);

/* /proc/self/maps as text, and in figures. */
struct mappings {
  char text[256 * 1024];
  unsigned lines;
  uint64_t bytes;
};
void mappings_read(struct mappings *mappings);
/* Memory in use, all of it. */
long resident_kib(void);

/* Files in a directory whose name ends so; all (but . and ..) with "". -1: no such directory. */
int files_in(const char *directory, const char *suffix);
/* All but those, for example the flight recorder's. */
int files_but(const char *directory, const char *suffix);
/* Reads a whole file; gives its length. The buffer is ended by a 0. */
size_t read_whole(const char *path, char *buffer, size_t size);
/* A new directory for this test, below the current one; empty. */
const char *fresh_directory(const char *name);

#endif
