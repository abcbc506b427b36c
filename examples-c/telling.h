/* One line of a block: in which loop and what, how long, why, and the innermost functions of its first stack. */
#ifndef TELLING_H
#define TELLING_H

#include <blockcanary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A listener. Tells of blocks that have ended. */
void telling_listener(const bc_block *block, void *user_data);

#ifdef __cplusplus
}
#endif
#endif
