/* The interface without the library behind it: every call succeeds and does nothing. The looper's calls are in looper.c,
 * so that a program without a looper does not take them. */
#include <blockcanary.h>
#include <string.h>

/* Clears what the caller's structure has behind its struct_size, as far as both sides know it. */
static void clear(void *structure, size_t known) {
  size_t size;
  if (structure == NULL) {
    return;
  }
  memcpy(&size, structure, sizeof size);
  size = size < known ? size : known;
  if (size > sizeof size) {
    memset((char *)structure + sizeof size, 0, size - sizeof size);
  }
}

static size_t empty(char *buffer, size_t size) {
  if (buffer != NULL && size > 0) {
    buffer[0] = '\0';
  }
  return 0;
}

bc_status bc_set_listener(bc_block_listener listener, void *user_data) {
  (void)listener, (void)user_data;
  return BC_OK;
}

bc_status bc_add_listener(bc_block_listener listener, void *user_data) {
  (void)listener, (void)user_data;
  return BC_OK;
}

bc_status bc_remove_listener(bc_block_listener listener, void *user_data) {
  (void)listener, (void)user_data;
  return BC_OK;
}

bc_status bc_set_filter(bc_block_filter filter, void *user_data) {
  (void)filter, (void)user_data;
  return BC_OK;
}

size_t bc_block_format_text(const bc_block *block, char *buffer, size_t size) {
  (void)block;
  return empty(buffer, size);
}

size_t bc_block_format_json(const bc_block *block, char *buffer, size_t size) {
  (void)block;
  return empty(buffer, size);
}

/* As the library does: what is read of a configuration must be there, whoever reads it. */
void bc_config_init(bc_config *config, size_t struct_size) {
  if (config != NULL && struct_size >= sizeof struct_size) {
    memset(config, 0, struct_size);
    config->struct_size = struct_size;
  }
}

bc_status bc_module_interpose(const char *module) {
  (void)module;
  return BC_OK;
}

bc_status bc_module_restore(const char *module) {
  (void)module;
  return BC_OK;
}

bc_status bc_health_get(bc_health *health) {
  clear(health, sizeof *health);
  return BC_OK;
}

bc_status bc_install(const bc_config *config) {
  (void)config;
  return BC_OK;
}

bc_status bc_start(void) {
  return BC_OK;
}

bc_status bc_stop(void) {
  return BC_OK;
}

bc_status bc_uninstall(void) {
  return BC_OK;
}

bool bc_is_running(void) {
  return false;
}

bc_status bc_pause(void) {
  return BC_OK;
}

bc_status bc_resume(void) {
  return BC_OK;
}

bc_status bc_flush(uint32_t timeout_ms) {
  (void)timeout_ms;
  return BC_OK;
}

bc_status bc_set_log_handler(bc_log_handler handler, void *user_data) {
  (void)handler, (void)user_data;
  return BC_OK;
}

bc_status bc_loop_watch(const char *name, bc_loop **loop) {
  (void)name;
  if (loop != NULL) {
    *loop = NULL;
  }
  return BC_OK;
}

bc_status bc_loop_unwatch(bc_loop *loop) {
  (void)loop;
  return BC_OK;
}

bc_status bc_loop_set_threshold(bc_loop *loop, uint32_t threshold_ms) {
  (void)loop, (void)threshold_ms;
  return BC_OK;
}

void bc_dispatch_begin(bc_loop *loop, const char *what, uint64_t tag) {
  (void)loop, (void)what, (void)tag;
}

void bc_dispatch_end(bc_loop *loop) {
  (void)loop;
}

void bc_loop_beat(bc_loop *loop) {
  (void)loop;
}

void bc_loop_idle(bc_loop *loop) {
  (void)loop;
}

bc_status bc_allow_begin(bc_loop *loop, uint32_t allowance_ms, const char *why) {
  (void)loop, (void)allowance_ms, (void)why;
  return BC_OK;
}

bc_status bc_allow_end(bc_loop *loop) {
  (void)loop;
  return BC_OK;
}

bc_status bc_reports_each(bc_report_visitor visitor, void *user_data) {
  (void)visitor, (void)user_data;
  return BC_OK;
}

bc_status bc_reports_delete_all(void) {
  return BC_OK;
}

bc_status bc_reports_zip(const char *path) {
  (void)path;
  return BC_OK;
}

bc_status bc_set_uploader(bc_uploader uploader, void *user_data) {
  (void)uploader, (void)user_data;
  return BC_OK;
}

bc_status bc_reports_upload(void) {
  return BC_OK;
}

bc_status bc_loop_stats_get(bc_loop *loop, bc_loop_stats *stats) {
  (void)loop;
  clear(stats, sizeof *stats);
  return BC_OK;
}

bc_status bc_loop_stats_take(bc_loop *loop, bc_loop_stats *stats) {
  (void)loop;
  clear(stats, sizeof *stats);
  return BC_OK;
}

bc_status bc_threads_dump(int32_t fd) {
  (void)fd;
  return BC_OK;
}

const char *bc_version(void) {
  return BLOCKCANARY_VERSION;
}

const char *bc_status_str(bc_status status) {
  switch ((uint32_t)status) {
    case BC_OK: return "ok";
    case BC_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case BC_ERROR_INVALID_STATE: return "invalid state: not installed, installed already, or a call that does not fit now";
    case BC_ERROR_LIMIT_REACHED: return "limit reached";
    case BC_ERROR_UNSUPPORTED: return "not supported here";
    case BC_ERROR_WRONG_THREAD: return "wrong thread";
    case BC_ERROR_IO: return "file or directory cannot be used";
    case BC_ERROR_NO_MEMORY: return "no memory or no thread to be had";
    case BC_ERROR_INTERNAL: return "internal fault: the library has switched itself off";
    case BC_ERROR_TIMEOUT: return "timeout";
    default: return "unknown status";
  }
}
