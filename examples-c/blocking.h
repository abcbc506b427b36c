/* The four ways in which the example engine blocks. Each function makes the blocking call itself, so that its name is
 * what a report must give. */
#ifndef BLOCKING_H
#define BLOCKING_H

#ifdef __cplusplus
extern "C" {
#endif

/* Starts and ends the threads that hold the lock and feed the pipe. */
void blocking_init(void);
void blocking_end(void);

void engine_spin(unsigned ms);
void engine_sleep(unsigned ms);
void engine_wait_for_lock(unsigned ms);
void engine_slow_read(unsigned ms);

#ifdef __cplusplus
}
#endif

#endif
