/* blockcanary finds out why a game froze: it watches native looper threads and names the cause of every block.
 *
 * Written by "cargo xtask header" from the Rust source; edit that. SPDX-License-Identifier: Apache-2.0 */

#ifndef BLOCKCANARY_H
#define BLOCKCANARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Text reports are stored (`report_formats`).
 */
#define BC_FORMAT_TEXT 1u

/**
 * JSON reports are stored (`report_formats`).
 */
#define BC_FORMAT_JSON 2u

/**
 * Blocks with equal stacks are not merged (`merge_window_s`).
 */
#define BC_MERGE_OFF UINT32_MAX

/**
 * Buckets of a histogram of `bc_loop_stats`.
 */
#define BC_HISTOGRAM_BUCKETS 256u

/**
 * What a call that can fail returns.
 */
enum bc_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The call did what it says.
   */
  BC_OK = 0,
  /**
   * A required pointer was NULL, a value out of its range, or a `struct_size` below the first version's.
   */
  BC_ERROR_INVALID_ARGUMENT = 1,
  /**
   * Not installed, already installed, or a call that does not fit the present state.
   */
  BC_ERROR_INVALID_STATE = 2,
  /**
   * A fixed capacity is used up.
   */
  BC_ERROR_LIMIT_REACHED = 3,
  /**
   * Not available on this system, or not yet in this version.
   */
  BC_ERROR_UNSUPPORTED = 4,
  /**
   * The call is not allowed on this thread.
   */
  BC_ERROR_WRONG_THREAD = 5,
  /**
   * A file or directory could not be used.
   */
  BC_ERROR_IO = 6,
  /**
   * Memory or a thread could not be had.
   */
  BC_ERROR_NO_MEMORY = 7,
  /**
   * A fault of the library's own, which has switched itself off.
   */
  BC_ERROR_INTERNAL = 8,
  /**
   * What was waited for did not come in time.
   */
  BC_ERROR_TIMEOUT = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bc_status bc_status;
#else
typedef uint32_t bc_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A switch of the configuration.
 */
enum bc_toggle
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * As the library is shipped.
   */
  BC_DEFAULT = 0,
  /**
   * On.
   */
  BC_ON = 1,
  /**
   * Off.
   */
  BC_OFF = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bc_toggle bc_toggle;
#else
typedef uint32_t bc_toggle;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How stacks of a late thread are taken.
 */
enum bc_sampling_method
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The best way there is: a waiting thread is left alone wherever the kernel allows it.
   */
  BC_SAMPLING_AUTO = 0,
  /**
   * Never send a signal.
   */
  BC_SAMPLING_NO_SIGNAL = 1,
  /**
   * Always send a signal.
   */
  BC_SAMPLING_SIGNAL = 2,
  /**
   * Take no stacks at all.
   */
  BC_SAMPLING_OFF = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bc_sampling_method bc_sampling_method;
#else
typedef uint32_t bc_sampling_method;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What has become of a block.
 */
enum bc_block_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It has passed its limit and goes on.
   */
  BC_BLOCK_ONGOING = 1,
  /**
   * It has passed the hang threshold and goes on.
   */
  BC_BLOCK_HANG = 2,
  /**
   * It has ended.
   */
  BC_BLOCK_ENDED = 3,
  /**
   * The process died inside it; recovered by a later start.
   */
  BC_BLOCK_KILLED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bc_block_state bc_block_state;
#else
typedef uint32_t bc_block_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why a loop was blocked.
 */
enum bc_cause
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Not known.
   */
  BC_CAUSE_UNKNOWN = 0,
  /**
   * It was running on a processor.
   */
  BC_CAUSE_RUNNING = 1,
  /**
   * It was ready to run and other threads had the processors.
   */
  BC_CAUSE_STARVED = 2,
  /**
   * It waited for a lock.
   */
  BC_CAUSE_LOCK = 3,
  /**
   * It waited for a file or a page of memory.
   */
  BC_CAUSE_IO = 4,
  /**
   * It waited for another process or thread: socket, pipe, binder.
   */
  BC_CAUSE_IPC = 5,
  /**
   * It slept.
   */
  BC_CAUSE_SLEEP = 6,
  /**
   * The process was stopped, frozen, or the device suspended.
   */
  BC_CAUSE_SUSPENDED = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bc_cause bc_cause;
#else
typedef uint32_t bc_cause;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How one sample was taken.
 */
enum bc_sample_method
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * No stack could be had; time and thread state are valid.
   */
  BC_SAMPLE_NO_STACK = 0,
  /**
   * From the kernel's account of a waiting thread, without a signal.
   */
  BC_SAMPLE_KERNEL_STATE = 1,
  /**
   * By a signal to a running thread.
   */
  BC_SAMPLE_SIGNAL = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bc_sample_method bc_sample_method;
#else
typedef uint32_t bc_sample_method;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How important a log message is.
 */
enum bc_log_level
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Something that was asked for could not be done.
   */
  BC_LOG_ERROR = 1,
  /**
   * Something was lost or done in a lesser way.
   */
  BC_LOG_WARN = 2,
  /**
   * A block, a start, a stop.
   */
  BC_LOG_INFO = 3,
  /**
   * Details for those who look into the library itself.
   */
  BC_LOG_DEBUG = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bc_log_level bc_log_level;
#else
typedef uint32_t bc_log_level;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Android's looper, as in `<android/looper.h>`.
 */
typedef struct ALooper ALooper;

/**
 * A watched loop. A token, never dereferenced: any value is safe to pass, a stale one is counted and ignored.
 */
typedef struct bc_loop bc_loop;

/**
 * What `bc_install` is told. Clear it with `bc_config_init`: 0 and NULL mean the default everywhere.
 *
 * A value out of its range, or a field whose feature this version lacks set to something else than its default, makes
 * `bc_install` fail with the code that says so; nothing is silently changed. Strings are copied by `bc_install`.
 */
typedef struct bc_config {
  /**
   * Size of this structure as the caller knows it, in bytes; set by `bc_config_init`.
   */
  size_t struct_size;
  /**
   * A stretch longer than this is a block. Milliseconds, 1 to 60,000; default 1000.
   */
  uint32_t block_threshold_ms;
  /**
   * Time between two samples of a late stretch. Milliseconds, 1 to 60,000; default a quarter of the limit in force for
   * the loop, at least 10.
   */
  uint32_t sample_interval_ms;
  /**
   * An open block longer than this is told as a hang. Milliseconds, 1 to 600,000; default 4000.
   */
  uint32_t hang_threshold_ms;
  /**
   * Loops watched at a time. 1 to 256; default 16.
   */
  uint32_t max_loops;
  /**
   * Frames kept of one stack. 8 to 1024; default 128.
   */
  uint32_t max_stack_depth;
  /**
   * Samples kept, shared by all open blocks. 16 to 65,536; default 256.
   */
  uint32_t sample_capacity;
  /**
   * Take stacks. Default on.
   */
  bc_toggle stack_sampling;
  /**
   * Measure the CPU load of process and system with each sample. Default on.
   */
  bc_toggle cpu_sampling;
  /**
   * Take the stacks of all threads when a loop is blocked. Default off.
   */
  bc_toggle all_threads_on_block;
  /**
   * Deliver and store a block while it goes on. Default on.
   */
  bc_toggle report_ongoing;
  /**
   * Report although a debugger is attached. Default off.
   */
  bc_toggle while_debugging;
  /**
   * Make the process dumpable for the moment in which a watched thread's files are opened, where nothing else helps.
   * Default on.
   */
  bc_toggle dumpable_window;
  /**
   * Keep only the base names of modules in reports. Default off.
   */
  bc_toggle redact_paths;
  /**
   * How stacks are taken.
   */
  bc_sampling_method sampling_method;
  /**
   * The signal to use, SIGRTMIN to SIGRTMAX; 0: a free one is chosen at each start.
   */
  int32_t signal_number;
  /**
   * Stop watching after this long. Seconds; 0: never.
   */
  uint32_t monitor_duration_s;
  /**
   * `BC_FORMAT_TEXT` and `BC_FORMAT_JSON`, or-ed; 0: both.
   */
  uint32_t report_formats;
  /**
   * Blocks kept in the report directory, the newest. 1 to 100,000; default 500.
   */
  uint32_t max_reports;
  /**
   * Age from which reports are removed. Seconds; default two days.
   */
  uint32_t report_max_age_s;
  /**
   * Blocks of a loop with the same stack within this time share a report. Seconds; default 60; `BC_MERGE_OFF`: never.
   */
  uint32_t merge_window_s;
  /**
   * Bytes that all reports together may take, at least 65,536; default 32 MiB.
   */
  uint64_t max_report_bytes;
  /**
   * Where reports are stored; made if missing. NULL: no files.
   */
  const char *report_dir;
  /**
   * A name for the build or channel, for the reports.
   */
  const char *qualifier;
  /**
   * The program's version, for the reports.
   */
  const char *version_name;
  /**
   * The program's version number, for the reports.
   */
  const char *version_code;
  /**
   * Whatever the program calls its user, for the reports.
   */
  const char *user_id;
  /**
   * The kind of network, for the reports.
   */
  const char *network_type;
  /**
   * Base names of modules that lead a report, comma-separated.
   */
  const char *concern_modules;
  /**
   * Base names of modules whose blocks are filtered, comma-separated.
   */
  const char *ignore_modules;
} bc_config;

/**
 * The library's account of itself. `loops_watched` and the flags are of now, the rest counts since install.
 */
typedef struct bc_health {
  /**
   * Size of this structure as the caller knows it, in bytes; set by the caller.
   */
  size_t struct_size;
  /**
   * Loops watched now.
   */
  uint64_t loops_watched;
  /**
   * Loops and looper callbacks that were not watched because a table was full.
   */
  uint64_t loops_refused;
  /**
   * Calls with a stale token, on the wrong thread, an end without a begin, names lost beyond depth 16.
   */
  uint64_t calls_misused;
  /**
   * Blocks that have ended, each once.
   */
  uint64_t blocks_seen;
  /**
   * Of these, those handed to the listeners.
   */
  uint64_t blocks_delivered;
  /**
   * Of these, those lost on their way to the listeners; their reports were written all the same.
   */
  uint64_t blocks_dropped;
  /**
   * Of these, those that the filter or `ignore_modules` refused.
   */
  uint64_t blocks_filtered;
  /**
   * Samples taken.
   */
  uint64_t samples_taken;
  /**
   * Samples thinned out or not kept because the capacity was used up.
   */
  uint64_t samples_lost;
  /**
   * Samples that the thread did not answer in time.
   */
  uint64_t samples_unanswered;
  /**
   * Signals sent.
   */
  uint64_t signals_sent;
  /**
   * Waits of the watched program that a signal of ours cut short.
   */
  uint64_t waits_cut;
  /**
   * Report files written, each state of a block and each format.
   */
  uint64_t reports_written;
  /**
   * Report files that could not be written.
   */
  uint64_t reports_failed;
  /**
   * Blocks that share an earlier report.
   */
  uint64_t reports_merged;
  /**
   * Deliveries that found the queue to the listeners full.
   */
  uint64_t listener_overruns;
  /**
   * Times the monitor itself came late by more than it can excuse.
   */
  uint64_t monitor_late;
  /**
   * Times the process was made dumpable for a moment.
   */
  uint64_t dumpable_windows;
  /**
   * Memory reserved by the library, bytes of address space.
   */
  uint64_t memory_bytes;
  /**
   * Waiting threads can be sampled without a signal.
   */
  bool signal_free_available;
  /**
   * A signal is there to sample with.
   */
  bool signal_available;
  /**
   * Somebody else has taken our signal; none is sent any more.
   */
  bool signal_taken_over;
  /**
   * The system's CPU load can be read.
   */
  bool system_cpu_available;
} bc_health;

/**
 * What a loop's dispatches took.
 */
typedef struct bc_loop_stats {
  /**
   * Size of this structure as the caller knows it, in bytes; set by the caller.
   */
  size_t struct_size;
  /**
   * Dispatches ended.
   */
  uint64_t dispatches;
  /**
   * Blocks seen.
   */
  uint64_t blocks;
  /**
   * Dispatches above 16.7 ms.
   */
  uint64_t slow_count;
  /**
   * Dispatches above 700 ms.
   */
  uint64_t frozen_count;
  /**
   * Frames missed, of a loop of frame callbacks.
   */
  uint64_t missed_frames;
  /**
   * Time spent in outermost dispatches. Nanoseconds.
   */
  uint64_t busy_ns;
  /**
   * Time watched. Nanoseconds.
   */
  uint64_t observed_ns;
  /**
   * The longest dispatch. Nanoseconds.
   */
  uint64_t max_ns;
  /**
   * Half of the dispatches took no longer. Nanoseconds.
   */
  uint64_t p50_ns;
  /**
   * Nine of ten dispatches took no longer. Nanoseconds.
   */
  uint64_t p90_ns;
  /**
   * 99 of 100 dispatches took no longer. Nanoseconds.
   */
  uint64_t p99_ns;
  /**
   * Dispatches by duration, log-scaled.
   */
  uint64_t histogram[BC_HISTOGRAM_BUCKETS];
} bc_loop_stats;

/**
 * One frame of a stack. Strings are NULL where unknown.
 */
typedef struct bc_frame {
  /**
   * Address as found: the interrupted instruction of the innermost frame, return addresses of the outer ones.
   */
  uint64_t pc;
  /**
   * The same address relative to the module, as `addr2line -e module` takes it.
   */
  uint64_t module_offset;
  /**
   * Distance from the begin of the symbol. Bytes.
   */
  uint64_t symbol_offset;
  /**
   * Full path of the module.
   */
  const char *module;
  /**
   * GNU build id of the module, lower-case hexadecimal.
   */
  const char *build_id;
  /**
   * Name from the module's own symbol table, as it stands there (C++ names mangled).
   */
  const char *symbol;
} bc_frame;

/**
 * One look at the blocked thread.
 */
typedef struct bc_sample {
  /**
   * When. Nanoseconds of CLOCK_MONOTONIC.
   */
  uint64_t time_ns;
  /**
   * How it was taken.
   */
  bc_sample_method method;
  /**
   * Frames left out because of `max_stack_depth`.
   */
  uint32_t frames_cut;
  /**
   * Frames in `frames`.
   */
  size_t frame_count;
  /**
   * Innermost first; the distance between two is `bc_block.frame_size`.
   */
  const struct bc_frame *frames;
  /**
   * State letter as in `/proc`: R running, S sleeping, D waiting for a device; 0 unknown.
   */
  char thread_state;
  /**
   * The root of the thread was not reached, or frames were cut.
   */
  bool truncated;
  /**
   * Some step of the walk could not be verified.
   */
  bool approximate;
} bc_sample;

/**
 * One block, as listeners get it. All memory belongs to the library and is valid until the listener returns.
 */
typedef struct bc_block {
  /**
   * Size of this structure as the library knows it, in bytes.
   */
  size_t struct_size;
  /**
   * Names the block in all its states; random start per install, below 2^53.
   */
  uint64_t id;
  /**
   * What has become of it.
   */
  bc_block_state state;
  /**
   * Why.
   */
  bc_cause cause;
  /**
   * The blocked thread.
   */
  int32_t tid;
  /**
   * How often it came again, where reports are merged.
   */
  uint32_t repeats;
  /**
   * The `tag` of the innermost open dispatch.
   */
  uint64_t tag;
  /**
   * Begin. Milliseconds since 1970.
   */
  int64_t start_unix_ms;
  /**
   * Begin. Nanoseconds of CLOCK_MONOTONIC.
   */
  uint64_t start_ns;
  /**
   * Duration; so far, while it goes on. Nanoseconds.
   */
  uint64_t wall_ns;
  /**
   * CPU time of the thread in it. Nanoseconds.
   */
  uint64_t cpu_ns;
  /**
   * The limit it has passed. Nanoseconds.
   */
  uint64_t threshold_ns;
  /**
   * Name of the loop.
   */
  const char *loop_name;
  /**
   * The `what` of the innermost open dispatch, or NULL.
   */
  const char *what;
  /**
   * The cause in words, or NULL.
   */
  const char *cause_detail;
  /**
   * The stored report (text, if both are stored), or NULL.
   */
  const char *report_path;
  /**
   * Samples in `samples`.
   */
  size_t sample_count;
  /**
   * Distance between two samples. Bytes.
   */
  size_t sample_size;
  /**
   * Distance between two frames of a sample. Bytes.
   */
  size_t frame_size;
  /**
   * Oldest first.
   */
  const struct bc_sample *samples;
} bc_block;

/**
 * Takes a block. Runs on the library's own `bc-reporter` thread, one at a time; must not throw or `longjmp`.
 */
typedef void (*bc_block_listener)(const struct bc_block *block, void *user_data);

/**
 * Says whether a block is wanted.
 */
typedef bool (*bc_block_filter)(const struct bc_block *block, void *user_data);

/**
 * Takes the path of a stored report; `false` ends the visit.
 */
typedef bool (*bc_report_visitor)(const char *path, void *user_data);

/**
 * Takes a zip of reports; `true` when it has been handed on.
 */
typedef bool (*bc_uploader)(const char *zip_path, void *user_data);

/**
 * Takes a log message. May run on any thread that calls the library and on the library's own.
 */
typedef void (*bc_log_handler)(bc_log_level level, const char *message, void *user_data);

/**
 * A looper's callback for a descriptor, as `ALooper_callbackFunc`: 1 keeps it, 0 removes it.
 */
typedef int (*bc_looper_callback)(int fd, int events, void *data);

#endif  /* BLOCKCANARY_H */
