/* What a host needs of a library that contains blockcanary: the address of each function, which the library says. */
#ifndef CANARY_H
#define CANARY_H

#include <blockcanary.h>

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
  bc_status (*set_listener)(bc_block_listener listener, void *user_data);
  bc_status (*frames_watch)(const char *name, bc_loop **loop);
  void (*idle)(bc_loop *loop);
  bc_status (*stats_get)(bc_loop *loop, bc_loop_stats *stats);
  bc_status (*interpose)(const char *module);
};

#endif
