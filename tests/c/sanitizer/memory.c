/* What newer compilers call for ThreadSanitizer, and the runtime library of older ones lacks: there it is in the functions
   themselves. */
#include <string.h>

void *__tsan_memcpy(void *to, const void *from, size_t count) { return memcpy(to, from, count); }
void *__tsan_memmove(void *to, const void *from, size_t count) { return memmove(to, from, count); }
void *__tsan_memset(void *to, int value, size_t count) { return memset(to, value, count); }
