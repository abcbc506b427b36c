/* A stand-in for Android's liblog.so, by its name and its one function: keeps what is written to it. */
#ifndef LIBLOG_H
#define LIBLOG_H

struct log_line {
  int priority;
  char tag[32], text[512];
};

int __android_log_write(int priority, const char *tag, const char *text);
unsigned log_count(void);
const struct log_line *log_line(unsigned n);

#endif
