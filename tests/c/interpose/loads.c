/* Loads a module as Java loads a game: what it brings along is nobody else's. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *module = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*run)(void) = NULL;
  if (module) {
    *(void **)&run = dlsym(module, "run_watched");
  }
  if (!run) {
    fprintf(stderr, "%s\n", module || argc == 2 ? dlerror() : "usage: loads MODULE");
    return 1;
  }
  return run();
}
