/* What Android's filter lets an app's process call. */
#ifndef APP_FILTER_H
#define APP_FILTER_H

/* Puts the calling thread and all that it starts under the filter; what an app may not call ends the process with a
 * message. */
void app_filter_install(void);

#endif
