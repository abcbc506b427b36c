/* The display that the choreographer of these tests stands for: see choreographer.cpp. */
#ifndef DISPLAY_H
#define DISPLAY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The NDK's, whose header wants a compiler for Android. */
typedef struct AChoreographer AChoreographer;
AChoreographer *AChoreographer_getInstance(void);
void AChoreographer_postFrameCallback(AChoreographer *choreographer, void (*callback)(long time, void *data), void *data);

/* From now on it shows a frame each so many ns. */
void display_set_period(int64_t period_ns);
/* Off, it begins no frame. */
void display_switch(bool on);
/* Frame callbacks of all threads that were asked for and have not been called. */
unsigned display_owes(void);
/* Callbacks of all threads that want to be told the rate. */
unsigned display_tells(void);

#ifdef __cplusplus
}
#endif
#endif
