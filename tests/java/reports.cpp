#include "reports.h"

#include <stdio.h>
#include <string.h>

extern "C" {
#include "../c/check.h"
}

const char *report_at(const char *path) {
  static char text[1 << 20];
  FILE *file = fopen(path, "r");
  CHECK(file != nullptr, "%s", path);
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  return text;
}

const char *java_stack(const char *log_path) {
  char path[600];
  snprintf(path, sizeof path, "%s", log_path);
  char *dot = strrchr(path, '.');
  CHECK(dot != nullptr, "%s", path);
  strcpy(dot, ".json");
  const char *text = strstr(report_at(path), "\"java_stack\":");
  CHECK(text != nullptr, "no java_stack in %s", path);
  char *rest = const_cast<char *>(strstr(text, "\"hot_stacks\":"));
  CHECK(rest != nullptr, "no hot_stacks in %s", path);
  *rest = '\0';
  return text;
}
