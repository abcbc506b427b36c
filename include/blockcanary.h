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
   * The process died inside it; recovered by a later start. Its durations are those that were known last, lower bounds;
   * thread id and times on CLOCK_MONOTONIC are those of the dead process, perhaps of an earlier boot.
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
   * What goes as it should: a block that goes on (its end is a warning), an upload, watching that has ended by itself.
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
   * Distance from the begin of the symbol; without a symbol from that of the function, 0 where that is not known either.
   * Bytes.
   */
  uint64_t symbol_offset;
  /**
   * Full path of the module; its base name with `redact_paths`.
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
   * Take the stacks of all threads when a loop is blocked, and put them into its report: 256 at most, what there is
   * beyond is counted. The report of a block that goes on waits 60 ms for them, that of its end 420 ms. Default off.
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
   * Keep only the base names of paths, in reports and blocks; see `docs/privacy.md`. Default off.
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
   * Stop watching by itself so long after `bc_start`, which begins it again. Seconds; 0: never.
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
   * Age from which reports are removed, when watching begins and with each report. Seconds; default two days.
   */
  uint32_t report_max_age_s;
  /**
   * A block of the same loop with the same leading stack as a report that was stored within this time has no report of
   * its own: that one tells how often it came again. Seconds; default 60; `BC_MERGE_OFF`: never.
   */
  uint32_t merge_window_s;
  /**
   * Bytes that all reports together may take, at least 65,536; default 32 MiB. The flight recorder is not counted.
   */
  uint64_t max_report_bytes;
  /**
   * Where reports are stored; made if missing. While a block goes on, the flight recorder is there, too, a file
   * `recorder-….bcr` (128 KiB for each loop, what was never written takes no room). NULL: no files.
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
   * Base names of modules, comma-separated: stacks that touch them lead the text report.
   */
  const char *concern_modules;
  /**
   * Base names of modules, comma-separated: a block all of whose samples lie in them is filtered. A sample lies where its
   * innermost frame does that is not in the C or C++ library.
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
   * Blocks that have ended, each once; and those recovered from processes that were killed in them.
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
 * Takes a log message. May run on any thread that calls the library and on the library's own.
 */
typedef void (*bc_log_handler)(bc_log_level level, const char *message, void *user_data);

/**
 * A looper's callback for a descriptor, as `ALooper_callbackFunc`: 1 keeps it, 0 removes it.
 */
typedef int (*bc_looper_callback)(int fd, int events, void *data);

/**
 * Takes the path of a stored report; `false` ends the visit.
 */
typedef bool (*bc_report_visitor)(const char *path, void *user_data);

/**
 * Takes a zip of reports; `true` when it has been handed on.
 */
typedef bool (*bc_uploader)(const char *zip_path, void *user_data);

/**
 * What a loop's dispatches took, from `bc_loop_stats_get` and `bc_loop_stats_take`.
 *
 * Dispatches are what `bc_dispatch_begin` and `bc_dispatch_end` enclose, a looper's callbacks, the time from one poll to
 * the next, and the gap between two beats. Each counts when it ends, by its own time from begin to end, nested ones too,
 * less what the loop waited in polls meanwhile. One that was cut by a pause or a stop, or was nested more than 32 deep,
 * counts in `dispatches` only.
 *
 * Of a loop of `bc_frames_watch` each time from one frame to the next, by the display's clock, counts as a dispatch. One
 * in which the display had no frame for a thread that waited, because it was off, counts in `dispatches` only.
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
   * Periods of the display that went by between two frames, of a loop of `bc_frames_watch`; 0 of others.
   */
  uint64_t missed_frames;
  /**
   * Time spent in outermost dispatches that have ended, less waiting, and without gaps between beats, of which nobody
   * knows how much was work. Nanoseconds.
   */
  uint64_t busy_ns;
  /**
   * Time watched, without pauses and stops. Nanoseconds.
   */
  uint64_t observed_ns;
  /**
   * The longest dispatch. Nanoseconds.
   */
  uint64_t max_ns;
  /**
   * Half of the dispatches took no longer. From the histogram, so within 6 %. Nanoseconds.
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
   * Dispatches by duration. Bucket 0 counts those below 256 ns. Above, each power of two has seven buckets: bucket
   * 1 + 7 q + r, for r from 0 to 6, begins at 256 ns times 2^q times 8, 9, 10, 11, 12, 13.5 or 15 eighths and ends where
   * the next one begins; the last, 255, begins at 6.1 hours and has no end. The harmonic mean of a bucket's two ends is
   * at most 5.9 % from any duration in it.
   */
  uint64_t histogram[BC_HISTOGRAM_BUCKETS];
} bc_loop_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Sets the listener for blocks, in the place of the one that was set before; NULL: none. Those that `bc_add_listener`
 * has added stay, and are told after it. When this returns, the one before is not running (unless this is called from
 * it) and will not run again. `bc_uninstall` resets it.
 *
 * For each block the listener gets at most one BC_BLOCK_ONGOING, at most one BC_BLOCK_HANG and exactly one
 * BC_BLOCK_ENDED, in this order; or, after a kill, one BC_BLOCK_KILLED in the next process that starts with the same
 * `report_dir`. Those are told as soon as `bc_start` has been called, so set the listener before that. It runs on a thread
 * that does nothing else, one at a time, in which all signals are blocked, also for programs that it starts.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: `user_data` is handed back only. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_set_listener(bc_block_listener listener,
                          void *user_data);

/**
 * Adds a listener beside the one that is set; it is told what that one is, after those that were added before it, on the
 * same thread. Added again with the same `user_data`, it is still told once. `bc_uninstall` removes it.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL), BC_ERROR_LIMIT_REACHED (eight are there), BC_ERROR_INVALID_STATE (not
 * installed), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: `user_data` is handed back only. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_add_listener(bc_block_listener listener,
                          void *user_data);

/**
 * Removes the listener that was added, or set, with this `user_data`. When this returns, it is not running (unless this
 * is called from it) and will not run again.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL, or it is not there), BC_ERROR_INVALID_STATE (not installed),
 * BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: `user_data` is the caller's again. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_remove_listener(bc_block_listener listener, void *user_data);

/**
 * Sets the filter, in the place of the one before; NULL: every block is wanted. It is asked once for each block, when
 * that passes its limit or when it is first told of, before anything of it is on disk. `false`: the block is neither
 * stored nor delivered, and is counted in `blocks_filtered` at its end. When this returns, the filter before is not
 * running (unless this is called from it) and will not run again. `bc_uninstall` resets it.
 *
 * The filter runs on the library's `bc-writer` thread. While it does not return, nothing is stored or delivered; watching
 * goes on, and blocks for which there is no room any more are counted in `blocks_dropped`. What may be called from it is
 * what may be called from a listener.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: `user_data` is handed back only. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_set_filter(bc_block_filter filter,
                        void *user_data);

/**
 * Writes a block as BlockCanary's log into `buffer`, as `snprintf` does: as much as fits, and a NUL behind it unless
 * `size` is 0, when `buffer` may be NULL. Returns the length of the whole, without the NUL.
 *
 * Of a block that a listener or the filter is being given, this is what the stored report says, and the length is the
 * same each time. A copy that was kept says what `bc_block` has, and its length may differ by some bytes from call to
 * call, because the report also tells the state of library and device.
 *
 * Returns 0, and leaves `buffer` empty, if `block` is NULL or its size, state or cause is none that there is, and while
 * the library is not installed.
 *
 * Units: bytes. Ownership: both are the caller's. Threads: any. Async-signal-safe: no.
 */
size_t bc_block_format_text(const struct bc_block *block, char *buffer, size_t size);

/**
 * Writes a block as one JSON object, as `docs/report.schema.json` has it. Else as `bc_block_format_text`.
 *
 * Returns the length of the whole, without the NUL; 0 where that gives 0.
 *
 * Units: bytes. Ownership: both are the caller's. Threads: any. Async-signal-safe: no.
 */
size_t bc_block_format_json(const struct bc_block *block, char *buffer, size_t size);

/**
 * Clears exactly `struct_size` bytes of `config` and sets its `struct_size`: every field then means its default. Pass
 * `sizeof(bc_config)`. Nothing if `config` is NULL or `struct_size` has no room for the size itself.
 *
 * Units: bytes. Ownership: the caller's memory. Threads: any, before install too.
 * Async-signal-safe: yes.
 */
void bc_config_init(struct bc_config *config, size_t struct_size);

/**
 * Watches the calling thread by frame callbacks of its `AChoreographer`, as a loop of its own beside any other of this
 * thread. The time from one callback to the next is a stretch: a longer one than the threshold is a block ("frame", its
 * tag is the display's time of the frame before), whatever kept the thread. `bc_loop_stats_get` counts each time from
 * frame to frame by the display's clock, and in `missed_frames` the periods of the display that went by without one, at
 * whatever rate it has. A second call renames the loop and gives the same token. `name` is copied; NULL: "frames". What
 * keeps the thread while another loop of it is watched is a block of each: the dispatch says what it was, this one that
 * frames were missed for it.
 *
 * A callback asks for the next one, so the thread is woken with each frame of the display while watching is on, and not
 * while it is off or paused: pause when the program leaves the foreground. While no frame comes, the thread is asked each
 * quarter of the threshold to show that it is alive. What has been asked for cannot be taken back: one more callback may
 * come after the watch has ended, and does nothing. A library that contains this one stays loaded until `bc_uninstall` has
 * seen the last one come, for which it waits 200 ms at most; if it then has not, for ever. It cannot come where
 * `bc_uninstall` is called on the watched thread, unless that has polled since `bc_stop`.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL), BC_ERROR_UNSUPPORTED (the system has no AChoreographer, as
 * before Android 7 and elsewhere, or the library cannot be kept loaded), BC_ERROR_INVALID_STATE (not installed),
 * BC_ERROR_LIMIT_REACHED, BC_ERROR_WRONG_THREAD (the thread has no looper, or from a callback), BC_ERROR_INTERNAL.
 * `*loop` is NULL unless BC_OK.
 *
 * Units: none. Ownership: the thread's looper is acquired until the watch ends. Threads: the one to be watched, which has a
 * looper, but not in callbacks of this library.
 * Async-signal-safe: no.
 */
bc_status bc_frames_watch(const char *name,
                          struct bc_loop **loop);

/**
 * Tells what was done, lost, or could not be done. The caller sets `health->struct_size`; at most so many bytes are
 * written, and none unless BC_OK.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL, or a size below the first version's), BC_ERROR_INVALID_STATE (not
 * installed), BC_ERROR_INTERNAL.
 *
 * Units: counts and bytes. Ownership: the caller's memory. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_health_get(struct bc_health *health);

/**
 * Watches the main thread of a Java app: the one whose Looper is `Looper.getMainLooper()`. It is watched as
 * `bc_looper_probe` does it, by a heartbeat on its ALooper, and reports have its Java stack beside the native one. With
 * the class `dev.blockcanary.Hook` in the app and its field `precise` set, a Printer of the main Looper marks each message
 * instead, and a block is called by its message; a Printer that was there before is called by it, and one that replaces
 * it too, when that is noticed (within some seconds, counted in `calls_misused`). It goes within a second of
 * `bc_loop_unwatch`. From another thread than the main one, which may be attached to the VM or not, the main thread is
 * sent a message and waited for 2 s; before Android 8 (API 26) that class is needed for it.
 * A second call renames the loop, which stays watched the way that it is. `name` is copied; NULL: "main". There is a
 * thread "bc-java" afterwards, attached to the VM as a daemon, until uninstall.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`java_vm` or `loop` is NULL), BC_ERROR_UNSUPPORTED (built without the
 * feature `jni`, no ALooper, no main Looper, or the class is needed and not there), BC_ERROR_INVALID_STATE (not
 * installed), BC_ERROR_LIMIT_REACHED, BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_NO_MEMORY (no thread),
 * BC_ERROR_TIMEOUT (the main thread did not run the message; nothing is watched), BC_ERROR_INTERNAL. `*loop` is NULL
 * unless BC_OK.
 *
 * Units: none. Ownership: `java_vm` is the process's JavaVM, which stays. Threads: any but in callbacks. A Java exception
 * that is pending stays so. Async-signal-safe: no.
 */
bc_status bc_java_watch(void *java_vm,
                        const char *name,
                        struct bc_loop **loop);

/**
 * Reserves all memory, makes the library's threads and opens what must be open. Watching begins with `bc_start`.
 * `config` may be NULL for the defaults; it and its strings are copied. The report directory is made if it is missing. It
 * takes at most 64 KiB of the caller's stack.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (a value out of range), BC_ERROR_UNSUPPORTED (a feature that is not there),
 * BC_ERROR_INVALID_STATE (installed already: nothing changed), BC_ERROR_IO (the report directory cannot be used: nothing
 * installed), BC_ERROR_NO_MEMORY.
 *
 * Units: as in `bc_config`. Ownership: nothing is kept of the caller's memory. Threads: any, one at a time.
 * Async-signal-safe: no.
 */
bc_status bc_install(const struct bc_config *config);

/**
 * Begins watching. Does nothing if it has begun. Dispatches that are open count from now. Blocks in `report_dir` in which
 * an earlier process was killed are told to the listeners that are set now, and are not told again. A report of one that
 * could not be stored is stored by a later start.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any, listeners included.
 * Async-signal-safe: no.
 */
bc_status bc_start(void);

/**
 * Ends watching, within 200 ms even if a listener is stuck. Blocks that are open end with it, and are stored and
 * delivered. Does nothing if it has ended.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any, listeners included.
 * Async-signal-safe: no.
 */
bc_status bc_stop(void);

/**
 * Stops, waits up to two seconds for a running callback, and gives back threads, descriptors, memory and signal.
 * Afterwards nothing of the library runs any more, all tokens are stale, and `bc_install` works again.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_TIMEOUT (a
 * callback is still running: stopped, still installed, may be called again), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any but in callbacks.
 * Async-signal-safe: no.
 */
bc_status bc_uninstall(void);

/**
 * Is watching on: started and not stopped? A pause does not matter. `false` in a child of fork.
 *
 * Units: none. Ownership: none. Threads: any, before install too.
 * Async-signal-safe: yes.
 */
bool bc_is_running(void);

/**
 * Time counts no more until as many `bc_resume` have followed: for the background, or while a dialog of the system's is
 * shown. Blocks that are open end. Outlasts stop and start; an install clears it.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_pause(void);

/**
 * Takes one `bc_pause` back. Dispatches that are open count from the last one on.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed, or one too many: no effect), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_resume(void);

/**
 * Waits until every block that has ended by now is stored and has been handed to the listeners, and every one in which an
 * earlier process was killed, too, if watching has begun.
 *
 * Returns BC_OK, BC_ERROR_TIMEOUT, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_WRONG_THREAD (from a callback),
 * BC_ERROR_INTERNAL.
 *
 * Units: milliseconds. Ownership: none. Threads: any but in callbacks.
 * Async-signal-safe: no.
 */
bc_status bc_flush(uint32_t timeout_ms);

/**
 * Hands the library's messages to `handler`. NULL, as at first: they go to Android's log with the tag "blockcanary", which
 * is found at run time, and elsewhere to nobody. When this returns, the handler before is not running on another thread and
 * will not run again. Outlasts `bc_uninstall`.
 *
 * Returns BC_OK.
 *
 * Units: none. Ownership: `user_data` is handed back only. Threads: any, before install too; the handler may run on any
 * thread that calls the library and on the library's own.
 * Async-signal-safe: no.
 */
bc_status bc_set_log_handler(bc_log_handler handler,
                             void *user_data);

/**
 * `ALooper_addFd`, and each call of `callback` is a dispatch of the thread that polls. Parameters and results are
 * `ALooper_addFd`'s. -1 where the system has no ALooper.
 *
 * Units: none. Ownership: `data` is handed back only. Threads: any, before install too (then straight through).
 * Async-signal-safe: no.
 */
int bc_looper_add_fd(struct ALooper *looper, int fd, int ident, int events, bc_looper_callback callback, void *data);

/**
 * `ALooper_removeFd`. -1 where the system has no ALooper.
 *
 * Units: none. Ownership: none. Threads: any, before install too.
 * Async-signal-safe: no.
 */
int bc_looper_remove_fd(struct ALooper *looper, int fd);

/**
 * `ALooper_pollOnce`, and the time from its return to the thread's next poll is a dispatch. A thread that polls this way
 * while watching is on is watched from its first poll, under its own name. Parameters and results are
 * `ALooper_pollOnce`'s. `ALOOPER_POLL_ERROR` (-4) where the system has no ALooper.
 *
 * Units: milliseconds, -1 for no limit. Ownership: the out-pointers may be NULL. Threads: the looper's own, before
 * install too. Async-signal-safe: no.
 */
int bc_looper_poll_once(int timeout_ms,
                        int *out_fd,
                        int *out_events,
                        void **out_data);

/**
 * `ALooper_pollAll`, as `bc_looper_poll_once`.
 *
 * Units: milliseconds, -1 for no limit. Ownership: the out-pointers may be NULL. Threads: the looper's own, before
 * install too. Async-signal-safe: no.
 */
int bc_looper_poll_all(int timeout_ms, int *out_fd, int *out_events, void **out_data);

/**
 * Watches the thread that owns `looper` by a heartbeat: a descriptor of its own in that looper, pinged every quarter of
 * the threshold; the thread has to answer in time. Finds what marks cannot see, such as work on Java's main thread, whose
 * looper it is meant for. A thread that waits in its poll, or has not run since its last answer, is not woken. A ping can
 * make a native poll of that thread return `ALOOPER_POLL_CALLBACK`. A block that is longer than the threshold and one
 * period is found, one below the threshold never is. A second call renames the loop and gives the same token. `name` is
 * copied; NULL: "looper".
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`looper` or `loop` is NULL), BC_ERROR_UNSUPPORTED (the system has no ALooper,
 * or the looper does not take the descriptor), BC_ERROR_INVALID_STATE (not installed), BC_ERROR_LIMIT_REACHED,
 * BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_INTERNAL. `*loop` is NULL unless BC_OK.
 *
 * Units: none. Ownership: the looper is acquired until the watch ends. Threads: any but in callbacks.
 * Async-signal-safe: no.
 */
bc_status bc_looper_probe(struct ALooper *looper,
                          const char *name,
                          struct bc_loop **loop);

/**
 * Watches the calling thread. A second call renames its loop and gives the same token. `name` is copied, at most 63
 * bytes of it; NULL: the thread's name. The watch ends with `bc_loop_unwatch`, with the thread, or with `bc_uninstall`.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL), BC_ERROR_INVALID_STATE (not installed),
 * BC_ERROR_LIMIT_REACHED (`max_loops` are watched), BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_INTERNAL. `*loop`
 * is NULL unless BC_OK.
 *
 * Units: none. Ownership: the token is a value, there is nothing to free. Threads: any but in callbacks.
 * Async-signal-safe: no.
 */
bc_status bc_loop_watch(const char *name, struct bc_loop **loop);

/**
 * Ends a loop's watch; a block that is open ends with it. Afterwards only `bc_loop_watch` watches that thread again.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale), BC_ERROR_INVALID_STATE (not installed),
 * BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: the token is stale from now on. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_loop_unwatch(struct bc_loop *loop);

/**
 * Sets a loop's limit, from its next stretch on. 0: the configuration's `block_threshold_ms` again.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale, or more than 60,000), BC_ERROR_INVALID_STATE (not
 * installed), BC_ERROR_INTERNAL.
 *
 * Units: milliseconds. Ownership: none. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_loop_set_threshold(struct bc_loop *loop, uint32_t threshold_ms);

/**
 * A dispatch begins: one unit of work of the loop. Dispatches nest; an inner one tells that the outer one makes progress.
 * `what` names it in reports, at most 127 bytes are kept; NULL: no name. Anything but a valid token of the calling
 * thread's is counted in `calls_misused` and ignored.
 *
 * Takes no lock, allocates nothing, makes no system call (but one, if nothing was dispatched for a second).
 *
 * Units: none. Ownership: `what` stays the caller's and must stay valid until the matching `bc_dispatch_end` has
 * returned. Threads: the loop's own. Async-signal-safe: no.
 */
void bc_dispatch_begin(struct bc_loop *loop,
                       const char *what,
                       uint64_t tag);

/**
 * The innermost open dispatch of the loop ends.
 *
 * Units: none. Ownership: none. Threads: the loop's own.
 * Async-signal-safe: no.
 */
void bc_dispatch_end(struct bc_loop *loop);

/**
 * Sends the `ALooper_addFd`, `ALooper_removeFd`, `ALooper_pollOnce` and `ALooper_pollAll` calls of a shared library that is
 * built already through `bc_looper_*`, while watching is on. The words with which it imports them are made to lead to us,
 * that is verified, and they hold again what they held when watching ends, each but for what somebody else has written
 * there since. `module` is the library's file name ("libgame.so") or its whole path; inside an APK the loader has a path
 * for it, too. Addresses from `dlsym` are not found. What the library called before, another one's hook perhaps, is
 * called on.
 *
 * The name stays wanted until `bc_module_restore` or an uninstall: such a library is interposed within a second or two of
 * being loaded, also when it is loaded again, for which a thread wakes once a second while watching is on. The log says
 * what was done or refused, when calls have come through, and in the end if none have. With watching off, only the name is
 * kept.
 *
 * A thread may wait in a poll of ours for ever. So the library that we are linked into, if it is not the program itself,
 * stays loaded from the first such call on: unloading it then does nothing, so uninstall before.
 *
 * Returns BC_OK (in place; or watching is off), BC_ERROR_INVALID_ARGUMENT (NULL, empty, or longer than 255 bytes),
 * BC_ERROR_INVALID_STATE (not installed; or no such library is loaded: it is wanted all the same), BC_ERROR_TIMEOUT (it is
 * being loaded: wanted all the same), BC_ERROR_UNSUPPORTED (it imports none of the functions, or they cannot be replaced:
 * not wanted any more; or Android before 6, whose loader does not hold still), BC_ERROR_LIMIT_REACHED (more than 8
 * libraries, or 32 words of one), BC_ERROR_NO_MEMORY (no thread to look after it), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: the name is copied. Threads: any; takes the loader's lock, as `dlopen` does.
 * Async-signal-safe: no.
 */
bc_status bc_module_interpose(const char *module);

/**
 * Ends what `bc_module_interpose` began with this name: the words hold again what they held, but for those that somebody
 * else has written to since, and the name is not wanted any more. A library that is wanted by its path and by its file's
 * name stays interposed until both are given back.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL, empty, or longer than 255 bytes), BC_ERROR_INVALID_STATE (not installed,
 * or the name was not wanted), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any; takes the loader's lock, as `dlopen` does.
 * Async-signal-safe: no.
 */
bc_status bc_module_restore(const char *module);

/**
 * The loop beats: from the first beat on, the time from one beat to the next is a stretch and may be a block. For loops
 * without dispatches, such as one that renders frames. Anything but a valid token of the calling thread's is counted in
 * `calls_misused` and ignored.
 *
 * Units: none. Ownership: none. Threads: the loop's own.
 * Async-signal-safe: no.
 */
void bc_loop_beat(struct bc_loop *loop);

/**
 * The loop has nothing to do: its open dispatches are closed, and it neither beats nor is judged from poll to poll until
 * its next begin, beat or poll.
 *
 * Units: none. Ownership: none. Threads: the loop's own.
 * Async-signal-safe: no.
 */
void bc_loop_idle(struct bc_loop *loop);

/**
 * An operation begins that may take `allowance_ms`, for example loading a level. While allowances are open, marks do not
 * restart the time: it is judged against the latest of their ends, and never more strictly than by the loop's own limit.
 * One that is exceeded is one block, from its begin to its `bc_allow_end`, named `why`. `UINT32_MAX`: no limit.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (0, or `loop` is NULL or stale), BC_ERROR_LIMIT_REACHED (eight are open),
 * BC_ERROR_WRONG_THREAD, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: milliseconds. Ownership: `why` stays the caller's and must stay valid until the matching `bc_allow_end` has
 * returned; NULL: no name. Threads: the loop's own. Async-signal-safe: no.
 */
bc_status bc_allow_begin(struct bc_loop *loop,
                         uint32_t allowance_ms,
                         const char *why);

/**
 * The innermost open allowance of the loop ends.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (none is open, or not installed), BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or
 * stale), BC_ERROR_WRONG_THREAD, BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: the loop's own.
 * Async-signal-safe: no.
 */
bc_status bc_allow_end(struct bc_loop *loop);

/**
 * Visits every file of a report below `report_dir`, of other processes too, in no order; `visitor` returns false to stop.
 * Files that come or go meanwhile may be visited or not, and none is ever half written. The visitor may remove the file
 * it is given, and call whatever the caller may. It takes 16 KiB of the caller's stack.
 *
 * Returns BC_OK (also if there is no report, or the directory is gone), BC_ERROR_INVALID_ARGUMENT (NULL),
 * BC_ERROR_INVALID_STATE (not installed, or without `report_dir`), BC_ERROR_IO (the log says what), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: the path is valid until the visitor returns; `user_data` is handed back only. Threads: any; the
 * visitor runs on the calling one. Async-signal-safe: no.
 */
bc_status bc_reports_each(bc_report_visitor visitor,
                          void *user_data);

/**
 * Removes all reports below `report_dir` but those of blocks that go on and those of other processes that live. Other
 * files stay.
 *
 * Returns BC_OK (also if there is nothing to remove), BC_ERROR_INVALID_STATE (not installed, or without `report_dir`),
 * BC_ERROR_IO (some could not be removed; the log handler is told why), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any. Async-signal-safe: no.
 */
bc_status bc_reports_delete_all(void);

/**
 * Puts all reports below `report_dir` into a zip archive at `path`, in place of what is there. Written under another name
 * beside it and renamed when it is whole; its mode is 0600, and a link at `path` is replaced, not followed. Without
 * reports it has no entries. Nothing is compressed. A report that cannot be read is left out; the log handler is told which. It takes
 * 24 KiB of the caller's stack.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL), BC_ERROR_INVALID_STATE (not installed, or without `report_dir`),
 * BC_ERROR_LIMIT_REACHED (more than 65,534 files or 4 GiB: no archive), BC_ERROR_IO (no archive; the log handler is
 * told why), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: `path` is the caller's. Threads: any. Async-signal-safe: no.
 */
bc_status bc_reports_zip(const char *path);

/**
 * Sets the uploader, in the place of the one before; NULL: none. When this returns, the one before is not running (unless
 * this is called from it) and will not run again. `bc_uninstall` resets it.
 *
 * It runs on the listeners' thread, and no listener runs meanwhile. What may be called from it is what may be called from
 * a listener.
 *
 * Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: `user_data` is handed back only; the zip is the library's and goes when the uploader returns: to
 * keep it, open it or move it away. Threads: any. Async-signal-safe: no.
 */
bc_status bc_set_uploader(bc_uploader uploader,
                          void *user_data);

/**
 * Has the reports uploaded: soon, on the listeners' thread, they are put into a zip, which is handed to the uploader. Those
 * that were in it are removed when it has returned true, and no others; after false, or when the process or the
 * installation ends before, they are sent again with the next upload. Reports of blocks that go on and of other processes
 * that live are left for later. Without reports the uploader is not called; more than one zip can hold are sent in several.
 *
 * Returns BC_OK (it will be done), BC_ERROR_INVALID_STATE (not installed, without `report_dir`, or no uploader is set),
 * BC_ERROR_INTERNAL.
 *
 * Units: none. Ownership: none. Threads: any. Async-signal-safe: no.
 */
bc_status bc_reports_upload(void);

/**
 * Reads what a loop's dispatches took since it was watched or since `bc_loop_stats_take`, while they go on. The caller
 * sets `stats->struct_size`; at most so many bytes are written, and none unless BC_OK. `bc_loop_stats` says what counts.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale, `stats` is NULL, or a size below the first
 * version's), BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: counts and nanoseconds. Ownership: the caller's memory. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_loop_stats_get(struct bc_loop *loop,
                            struct bc_loop_stats *stats);

/**
 * The same, and begins anew. Each dispatch is told by exactly one take, also if it ends at the same time; its `max_ns` is
 * then as exact as its bucket.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale, `stats` is NULL, or a size below the first
 * version's), BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
 *
 * Units: counts and nanoseconds. Ownership: the caller's memory. Threads: any.
 * Async-signal-safe: no.
 */
bc_status bc_loop_stats_take(struct bc_loop *loop,
                             struct bc_loop_stats *stats);

/**
 * Writes every thread of the process with name, state and stack to a descriptor: first the threads of watched loops, last
 * the library's own. Works from install on, also while watching is stopped or paused. The text is that of tombstones: a
 * line a frame with its pc relative to the ELF file, as `ndk-stack` reads it.
 *
 * A thread that waits is left alone; one that runs gets the sampling signal, if `sampling_method` allows it, and has 20
 * ms to answer. The calling thread waits meanwhile, and is in the text, too; `bc-monitor`, which takes the stacks, has
 * none. Of more than 1024 threads the rest is counted. A second call waits for the first. `fd` may be anything that can
 * be written to; a pipe without a reader raises no signal.
 *
 * Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`fd` is negative), BC_ERROR_IO (it is not open for writing, or writing to it
 * fails), BC_ERROR_TIMEOUT (nothing was taken for five seconds, or another dump has gone on for thirty),
 * BC_ERROR_INVALID_STATE (not installed, or no more), BC_ERROR_INTERNAL. What has been written by then stays.
 *
 * Units: none. Ownership: `fd` stays the caller's. Threads: any, listeners included; some 32 KiB of stack.
 * Async-signal-safe: no.
 */
bc_status bc_threads_dump(int32_t fd);

/**
 * The library's version, for example "0.1.0".
 *
 * Units: none. Ownership: a constant of the library's. Threads: any, before install too.
 * Async-signal-safe: yes.
 */
const char *bc_version(void);

/**
 * A code in English words. Any value is safe to pass.
 *
 * Units: none. Ownership: a constant of the library's. Threads: any, before install too.
 * Async-signal-safe: yes.
 */
const char *bc_status_str(bc_status status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BLOCKCANARY_H */
