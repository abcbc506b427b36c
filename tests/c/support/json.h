/* Is this JSON? And what does a member say? Enough to judge reports, no more. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

/* Exactly one value, correct by RFC 8259, and nothing after it but white space. */
bool json_valid(const char *text);
/* The first member of this name at any depth: its value as it stands, or NULL. */
const char *json_member(const char *text, const char *name);
bool json_is(const char *text, const char *name, const char *value);

#endif
