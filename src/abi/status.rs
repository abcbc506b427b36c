//! What calls answer, and the small enumerations of the interface.

/// What a call that can fail returns.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bc_status {
    /// The call did what it says.
    BC_OK = 0,
    /// A required pointer was NULL, a value out of its range, or a `struct_size` below the first version's.
    BC_ERROR_INVALID_ARGUMENT = 1,
    /// Not installed, already installed, or a call that does not fit the present state.
    BC_ERROR_INVALID_STATE = 2,
    /// A fixed capacity is used up.
    BC_ERROR_LIMIT_REACHED = 3,
    /// Not available on this system, or not yet in this version.
    BC_ERROR_UNSUPPORTED = 4,
    /// The call is not allowed on this thread.
    BC_ERROR_WRONG_THREAD = 5,
    /// A file or directory could not be used.
    BC_ERROR_IO = 6,
    /// Memory or a thread could not be had.
    BC_ERROR_NO_MEMORY = 7,
    /// A fault of the library's own, which has switched itself off.
    BC_ERROR_INTERNAL = 8,
    /// What was waited for did not come in time.
    BC_ERROR_TIMEOUT = 9,
}

/// A `bc_status` that a caller passes, who may pass any number.
///
/// cbindgen:ignore
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct bc_status_value(pub u32);

/// A switch of the configuration.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bc_toggle {
    /// As the library is shipped.
    BC_DEFAULT = 0,
    /// On.
    BC_ON = 1,
    /// Off.
    BC_OFF = 2,
}

/// How stacks of a late thread are taken.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bc_sampling_method {
    /// The best way there is: a waiting thread is left alone wherever the kernel allows it.
    BC_SAMPLING_AUTO = 0,
    /// Never send a signal.
    BC_SAMPLING_NO_SIGNAL = 1,
    /// Always send a signal.
    BC_SAMPLING_SIGNAL = 2,
    /// Take no stacks at all.
    BC_SAMPLING_OFF = 3,
}

/// What has become of a block.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bc_block_state {
    /// It has passed its limit and goes on.
    BC_BLOCK_ONGOING = 1,
    /// It has passed the hang threshold and goes on.
    BC_BLOCK_HANG = 2,
    /// It has ended.
    BC_BLOCK_ENDED = 3,
    /// The process died inside it; recovered by a later start. Its durations are those that were known last, lower bounds;
    /// thread id and times on CLOCK_MONOTONIC are those of the dead process, perhaps of an earlier boot.
    BC_BLOCK_KILLED = 4,
}

/// Why a loop was blocked.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bc_cause {
    /// Not known.
    BC_CAUSE_UNKNOWN = 0,
    /// It was running on a processor.
    BC_CAUSE_RUNNING = 1,
    /// It was ready to run and other threads had the processors.
    BC_CAUSE_STARVED = 2,
    /// It waited for a lock.
    BC_CAUSE_LOCK = 3,
    /// It waited for a file or a page of memory.
    BC_CAUSE_IO = 4,
    /// It waited for another process or thread: socket, pipe, binder.
    BC_CAUSE_IPC = 5,
    /// It slept.
    BC_CAUSE_SLEEP = 6,
    /// The process was stopped, frozen, or the device suspended.
    BC_CAUSE_SUSPENDED = 7,
}

/// How one sample was taken.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bc_sample_method {
    /// No stack could be had; time and thread state are valid.
    BC_SAMPLE_NO_STACK = 0,
    /// From the kernel's account of a waiting thread, without a signal.
    BC_SAMPLE_KERNEL_STATE = 1,
    /// By a signal to a running thread.
    BC_SAMPLE_SIGNAL = 2,
}

/// How important a log message is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bc_log_level {
    /// Something that was asked for could not be done.
    BC_LOG_ERROR = 1,
    /// Something was lost or done in a lesser way.
    BC_LOG_WARN = 2,
    /// What goes as it should: a block that goes on (its end is a warning), an upload, watching that has ended by itself.
    BC_LOG_INFO = 3,
    /// Details for those who look into the library itself.
    BC_LOG_DEBUG = 4,
}
