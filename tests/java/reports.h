/* What stored reports say of Java. */
#ifndef REPORTS_H
#define REPORTS_H

/* The innermost element of a message that blocks, but for its line. */
constexpr const char *ELEMENT = "dev.blockcanary.test.Messages.block(Messages.java:";

/* A report's text, until the next one's is asked for. */
const char *report_at(const char *path);
/* The Java stack in the JSON beside a log, if it has one, up to the next key. */
const char *java_stack(const char *log_path);

#endif
