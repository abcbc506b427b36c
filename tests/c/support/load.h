/* Other work on the machine. */
#ifndef LOAD_H
#define LOAD_H

/* Threads that keep every core busy, so many each, until the program ends. */
void load_every_core(unsigned threads_a_core);

#endif
