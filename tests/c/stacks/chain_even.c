#include "chain.h"

CHAIN(2, 1)
CHAIN(4, 3)
CHAIN(6, 5)
CHAIN(8, 7)
CHAIN(10, 9)
