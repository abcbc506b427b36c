/* A program for Android's C library without the NDK: the entry point, the note by which the loader knows its age, and what
 * headers of this system name otherwise than that library does. */
#include <stdarg.h>
#include <stddef.h>

extern int vsscanf(const char *, const char *, va_list);

#define API_LEVEL 21

typedef void (*function)(void);

/* Lists of functions to be called around main; there are none. */
struct structors {
  function *before, *begin, *end;
};

extern int main(int, char **, char **);
extern void __libc_init(void *arguments, function at_exit, int (*main)(int, char **, char **), const struct structors *);

__attribute__((visibility("hidden"))) void *__dso_handle = NULL;

static const struct structors structors;

__attribute__((used, visibility("hidden"))) void start_main(void *arguments) {
  __libc_init(arguments, NULL, main, &structors);
}

/* The arguments lie on the stack, which is to be aligned; nobody has called. */
__asm__(".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "  .cfi_startproc\n"
        "  .cfi_undefined rip\n"
        "  xor %ebp, %ebp\n"
        "  mov %rsp, %rdi\n"
        "  and $-16, %rsp\n"
        "  call start_main\n"
        "  ud2\n"
        "  .cfi_endproc\n"
        ".size _start, . - _start\n");

__attribute__((used, section(".note.android.ident"), aligned(4))) static const struct {
  int name_size, size, type;
  char name[8];
  int api_level;
} note = {sizeof "Android", sizeof(int), 1, "Android", API_LEVEL};

/* errno of <errno.h>. */
extern int *__errno(void);
int *__errno_location(void) {
  return __errno();
}

/* sscanf of <stdio.h>. */
int __isoc99_sscanf(const char *text, const char *format, ...) {
  va_list places;
  va_start(places, format);
  int count = vsscanf(text, format, places);
  va_end(places);
  return count;
}
