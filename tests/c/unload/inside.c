/* A library that contains blockcanary, as an engine that is loaded and unloaded would. */
#include <blockcanary.h>

/* The host needs the address of each function from the library, which says so by keeping them. */
struct canary {
  void (*config_init)(bc_config *config, size_t size);
  bc_status (*install)(const bc_config *config);
  bc_status (*start)(void);
  bc_status (*stop)(void);
  bc_status (*uninstall)(void);
  bc_status (*flush)(uint32_t timeout_ms);
  bc_status (*watch)(const char *name, bc_loop **loop);
  bc_status (*health_get)(bc_health *health);
  void (*begin)(bc_loop *loop, const char *what, uint64_t tag);
  void (*end)(bc_loop *loop);
};

extern const struct canary canary;
const struct canary canary = {bc_config_init, bc_install,    bc_start,      bc_stop,           bc_uninstall,
                              bc_flush,       bc_loop_watch, bc_health_get, bc_dispatch_begin, bc_dispatch_end};
