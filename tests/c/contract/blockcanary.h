/* What include/blockcanary.h must stay compatible with: every name, type, value and field order that programs rely on.
 * The project's own header comes from the Rust source; "cargo xtask test" compiles both and compares. */
#ifndef BLOCKCANARY_H
#define BLOCKCANARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define BC_ENUM(name) enum name : uint32_t
#define BC_ENUM_TYPE(name)
extern "C" {
#else
#define BC_ENUM(name) enum name
#define BC_ENUM_TYPE(name) typedef uint32_t name;
#endif

BC_ENUM(bc_status) {
  BC_OK = 0, BC_ERROR_INVALID_ARGUMENT = 1, BC_ERROR_INVALID_STATE = 2, BC_ERROR_LIMIT_REACHED = 3, BC_ERROR_UNSUPPORTED = 4,
  BC_ERROR_WRONG_THREAD = 5, BC_ERROR_IO = 6, BC_ERROR_NO_MEMORY = 7, BC_ERROR_INTERNAL = 8, BC_ERROR_TIMEOUT = 9
};
BC_ENUM_TYPE(bc_status)
BC_ENUM(bc_toggle) { BC_DEFAULT = 0, BC_ON = 1, BC_OFF = 2 };
BC_ENUM_TYPE(bc_toggle)
BC_ENUM(bc_sampling_method) { BC_SAMPLING_AUTO = 0, BC_SAMPLING_NO_SIGNAL = 1, BC_SAMPLING_SIGNAL = 2, BC_SAMPLING_OFF = 3 };
BC_ENUM_TYPE(bc_sampling_method)
BC_ENUM(bc_block_state) { BC_BLOCK_ONGOING = 1, BC_BLOCK_HANG = 2, BC_BLOCK_ENDED = 3, BC_BLOCK_KILLED = 4 };
BC_ENUM_TYPE(bc_block_state)
BC_ENUM(bc_cause) {
  BC_CAUSE_UNKNOWN = 0, BC_CAUSE_RUNNING = 1, BC_CAUSE_STARVED = 2, BC_CAUSE_LOCK = 3, BC_CAUSE_IO = 4, BC_CAUSE_IPC = 5,
  BC_CAUSE_SLEEP = 6, BC_CAUSE_SUSPENDED = 7
};
BC_ENUM_TYPE(bc_cause)
BC_ENUM(bc_sample_method) { BC_SAMPLE_NO_STACK = 0, BC_SAMPLE_KERNEL_STATE = 1, BC_SAMPLE_SIGNAL = 2 };
BC_ENUM_TYPE(bc_sample_method)
BC_ENUM(bc_log_level) { BC_LOG_ERROR = 1, BC_LOG_WARN = 2, BC_LOG_INFO = 3, BC_LOG_DEBUG = 4 };
BC_ENUM_TYPE(bc_log_level)

#define BC_FORMAT_TEXT 1u
#define BC_FORMAT_JSON 2u
#define BC_MERGE_OFF UINT32_MAX
#define BC_HISTOGRAM_BUCKETS 256u

typedef struct bc_loop bc_loop; /* a token, never dereferenced */
struct ALooper;

typedef struct bc_config {
  size_t struct_size;
  uint32_t block_threshold_ms;
  uint32_t sample_interval_ms;
  uint32_t hang_threshold_ms;
  uint32_t max_loops;
  uint32_t max_stack_depth;
  uint32_t sample_capacity;
  bc_toggle stack_sampling;
  bc_toggle cpu_sampling;
  bc_toggle all_threads_on_block;
  bc_toggle report_ongoing;
  bc_toggle while_debugging;
  bc_toggle dumpable_window;
  bc_toggle redact_paths;
  bc_sampling_method sampling_method;
  int32_t signal_number;
  uint32_t monitor_duration_s;
  uint32_t report_formats;
  uint32_t max_reports;
  uint32_t report_max_age_s;
  uint32_t merge_window_s;
  uint64_t max_report_bytes;
  const char *report_dir;
  const char *qualifier;
  const char *version_name;
  const char *version_code;
  const char *user_id;
  const char *network_type;
  const char *concern_modules;
  const char *ignore_modules;
} bc_config;

typedef struct bc_health {
  size_t struct_size;
  uint64_t loops_watched, loops_refused, calls_misused;
  uint64_t blocks_seen, blocks_delivered, blocks_dropped, blocks_filtered;
  uint64_t samples_taken, samples_lost, samples_unanswered, signals_sent, waits_cut;
  uint64_t reports_written, reports_failed, reports_merged;
  uint64_t listener_overruns, monitor_late, dumpable_windows;
  uint64_t memory_bytes;
  bool signal_free_available, signal_available, signal_taken_over, system_cpu_available;
} bc_health;

typedef struct bc_loop_stats {
  size_t struct_size;
  uint64_t dispatches, blocks, slow_count, frozen_count, missed_frames;
  uint64_t busy_ns, observed_ns, max_ns, p50_ns, p90_ns, p99_ns;
  uint64_t histogram[BC_HISTOGRAM_BUCKETS];
} bc_loop_stats;

typedef struct bc_frame {
  uint64_t pc;
  uint64_t module_offset;
  uint64_t symbol_offset;
  const char *module;
  const char *build_id;
  const char *symbol;
} bc_frame;

typedef struct bc_sample {
  uint64_t time_ns;
  bc_sample_method method;
  uint32_t frames_cut;
  size_t frame_count;
  const bc_frame *frames;
  char thread_state;
  bool truncated;
  bool approximate;
} bc_sample;

typedef struct bc_block {
  size_t struct_size;
  uint64_t id;
  bc_block_state state;
  bc_cause cause;
  int32_t tid;
  uint32_t repeats;
  uint64_t tag;
  int64_t start_unix_ms;
  uint64_t start_ns, wall_ns, cpu_ns, threshold_ns;
  const char *loop_name;
  const char *what;
  const char *cause_detail;
  const char *report_path;
  size_t sample_count;
  size_t sample_size; /* stride of samples */
  size_t frame_size;  /* stride of each sample's frames */
  const bc_sample *samples;
} bc_block;

typedef void (*bc_block_listener)(const bc_block *block, void *user_data);
typedef bool (*bc_block_filter)(const bc_block *block, void *user_data);
typedef bool (*bc_report_visitor)(const char *path, void *user_data);
typedef bool (*bc_uploader)(const char *zip_path, void *user_data);
typedef void (*bc_log_handler)(bc_log_level level, const char *message, void *user_data);
typedef int (*bc_looper_callback)(int fd, int events, void *data);

const char *bc_version(void);
const char *bc_status_str(bc_status status);

void bc_config_init(bc_config *config, size_t struct_size);
bc_status bc_install(const bc_config *config);
bc_status bc_start(void);
bc_status bc_stop(void);
bc_status bc_uninstall(void);
bool bc_is_running(void);
bc_status bc_pause(void);
bc_status bc_resume(void);
bc_status bc_flush(uint32_t timeout_ms);
bc_status bc_health_get(bc_health *health);

bc_status bc_loop_watch(const char *name, bc_loop **loop);
bc_status bc_loop_unwatch(bc_loop *loop);
bc_status bc_loop_set_threshold(bc_loop *loop, uint32_t threshold_ms);
void bc_dispatch_begin(bc_loop *loop, const char *what, uint64_t tag);
void bc_dispatch_end(bc_loop *loop);
void bc_loop_beat(bc_loop *loop);
void bc_loop_idle(bc_loop *loop);
bc_status bc_allow_begin(bc_loop *loop, uint32_t allowance_ms, const char *why);
bc_status bc_allow_end(bc_loop *loop);
bc_status bc_loop_stats_get(bc_loop *loop, bc_loop_stats *stats);
bc_status bc_loop_stats_take(bc_loop *loop, bc_loop_stats *stats);
bc_status bc_threads_dump(int fd);

int bc_looper_add_fd(struct ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data);
int bc_looper_remove_fd(struct ALooper *looper, int fd);
int bc_looper_poll_once(int timeout_ms, int *out_fd, int *out_events, void **out_data);
int bc_looper_poll_all(int timeout_ms, int *out_fd, int *out_events, void **out_data);
bc_status bc_looper_probe(struct ALooper *looper, const char *name, bc_loop **loop);
bc_status bc_module_interpose(const char *module);
bc_status bc_module_restore(const char *module);
bc_status bc_frames_watch(const char *name, bc_loop **loop);
bc_status bc_java_watch(void *java_vm, const char *name, bc_loop **loop);

bc_status bc_set_listener(bc_block_listener listener, void *user_data);
bc_status bc_add_listener(bc_block_listener listener, void *user_data);
bc_status bc_remove_listener(bc_block_listener listener, void *user_data);
bc_status bc_set_filter(bc_block_filter filter, void *user_data);
bc_status bc_set_log_handler(bc_log_handler handler, void *user_data);
size_t bc_block_format_text(const bc_block *block, char *buffer, size_t size);
size_t bc_block_format_json(const bc_block *block, char *buffer, size_t size);

bc_status bc_reports_each(bc_report_visitor visitor, void *user_data);
bc_status bc_reports_delete_all(void);
bc_status bc_reports_zip(const char *path);
bc_status bc_set_uploader(bc_uploader uploader, void *user_data);
bc_status bc_reports_upload(void);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
