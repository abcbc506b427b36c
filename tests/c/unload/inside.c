/* A library that contains blockcanary, as an engine that is loaded and unloaded would. */
#include "canary.h"

extern const struct canary canary;
const struct canary canary = {bc_config_init, bc_install,        bc_start,        bc_stop,
                              bc_uninstall,   bc_flush,          bc_loop_watch,   bc_health_get,
                              bc_dispatch_begin, bc_dispatch_end, bc_set_listener,
                              bc_frames_watch, bc_loop_idle, bc_loop_stats_get, bc_module_interpose};
