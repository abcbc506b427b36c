/* libtest_ads.so: a module that a program would like to hear more of, or nothing. */
#ifndef ADS_H
#define ADS_H

/* Blocks on the processor, in the module. */
void ads_spin(unsigned ms);
/* Calls back into another module. */
void ads_call(void (*callback)(unsigned), unsigned ms);

#endif
