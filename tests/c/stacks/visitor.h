/* What the visiting libraries offer: a function that calls back, in a frame of its own. */
#ifndef VISITOR_H
#define VISITOR_H

typedef void visitor_function(void (*call)(void));

#endif
