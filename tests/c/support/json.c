#include "json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Each of these gives the place behind what it has read, or NULL. */
static const char *value(const char *at, int depth);

static const char *space(const char *at) {
  return at + strspn(at, " \t\r\n");
}

static const char *string(const char *at) {
  if (*at != '"') {
    return NULL;
  }
  for (at++; *at != '"'; at++) {
    if ((unsigned char)*at < 0x20) {
      return NULL;
    }
    if (*at == '\\') {
      at++;
      if (*at == 'u') {
        for (int i = 0; i < 4; i++) {
          if (!isxdigit((unsigned char)*++at)) {
            return NULL;
          }
        }
      } else if (*at == 0 || strchr("\"\\/bfnrt", *at) == NULL) {
        return NULL;
      }
    }
  }
  return at + 1;
}

static const char *digits(const char *at) {
  return isdigit((unsigned char)*at) ? at + strspn(at, "0123456789") : NULL;
}

static const char *number(const char *at) {
  at += *at == '-';
  at = *at == '0' ? at + 1 : digits(at);
  if (at != NULL && *at == '.') {
    at = digits(at + 1);
  }
  if (at != NULL && (*at == 'e' || *at == 'E')) {
    at++;
    at = digits(at + (*at == '+' || *at == '-'));
  }
  return at;
}

static const char *members(const char *at, char end, int depth) {
  at = space(at + 1);
  if (*at == end) {
    return at + 1;
  }
  while (at != NULL) {
    if (end == '}') {
      at = string(space(at));
      if (at == NULL || *(at = space(at)) != ':') {
        return NULL;
      }
      at++;
    }
    at = value(space(at), depth + 1);
    if (at == NULL) {
      return NULL;
    }
    at = space(at);
    if (*at == end) {
      return at + 1;
    }
    if (*at++ != ',') {
      return NULL;
    }
  }
  return NULL;
}

static const char *value(const char *at, int depth) {
  static const char *const words[] = {"true", "false", "null"};
  for (int i = 0; i < 3; i++) {
    if (strncmp(at, words[i], strlen(words[i])) == 0) {
      return at + strlen(words[i]);
    }
  }
  if (depth > 64) {
    return NULL;
  }
  switch (*at) {
    case '{':
      return members(at, '}', depth);
    case '[':
      return members(at, ']', depth);
    case '"':
      return string(at);
    default:
      return number(at);
  }
}

bool json_valid(const char *text) {
  const char *end = value(space(text), 0);
  return end != NULL && *space(end) == 0;
}

const char *json_member(const char *text, const char *name) {
  char quoted[128];
  snprintf(quoted, sizeof quoted, "\"%s\"", name);
  for (const char *at = text; (at = strstr(at, quoted)) != NULL; at++) {
    const char *behind = space(at + strlen(quoted));
    if (*behind == ':') {
      return space(behind + 1);
    }
  }
  return NULL;
}

bool json_is(const char *text, const char *name, const char *expected) {
  const char *found = json_member(text, name);
  return found != NULL && strncmp(found, expected, strlen(expected)) == 0;
}
