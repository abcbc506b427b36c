/* A library that imports nothing of a looper. */
int still_here(void);
int still_here(void) {
  return 1;
}
