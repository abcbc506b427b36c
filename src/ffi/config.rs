//! `bc_config`, from the caller's bytes to checked settings.

use crate::abi::bc_status::{self, *};
use crate::abi::{BC_FORMAT_JSON, BC_FORMAT_TEXT, BC_MERGE_OFF, bc_config};
use crate::engine::settings::Settings;
use crate::log_error;
use crate::sample::sampler::Method;
use crate::sys::signal;
use core::ffi::{CStr, c_char};
use core::mem::{MaybeUninit, offset_of};
use core::ops::RangeInclusive;
use core::ptr;

/// Clears exactly `struct_size` bytes of `config` and sets its `struct_size`: every field then means its default. Pass
/// `sizeof(bc_config)`. Nothing if `config` is NULL or `struct_size` has no room for the size itself.
///
/// Units: bytes. Ownership: the caller's memory. Threads: any, before install too.
/// Async-signal-safe: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_config_init(config: *mut bc_config, struct_size: usize) {
    if config.is_null() || struct_size < size_of::<usize>() {
        return;
    }
    // SAFETY: the caller says that so many bytes are its own.
    unsafe {
        ptr::write_bytes(config.cast::<u8>(), 0, struct_size);
        config.cast::<usize>().write_unaligned(struct_size);
    }
}

/// `bc_config` with integers in the place of enumerations, which a caller may have filled with anything.
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    struct_size: usize,
    block_threshold_ms: u32,
    sample_interval_ms: u32,
    hang_threshold_ms: u32,
    max_loops: u32,
    max_stack_depth: u32,
    sample_capacity: u32,
    stack_sampling: u32,
    cpu_sampling: u32,
    all_threads_on_block: u32,
    report_ongoing: u32,
    while_debugging: u32,
    dumpable_window: u32,
    redact_paths: u32,
    sampling_method: u32,
    signal_number: i32,
    monitor_duration_s: u32,
    report_formats: u32,
    max_reports: u32,
    report_max_age_s: u32,
    merge_window_s: u32,
    max_report_bytes: u64,
    report_dir: *const c_char,
    qualifier: *const c_char,
    version_name: *const c_char,
    version_code: *const c_char,
    user_id: *const c_char,
    network_type: *const c_char,
    concern_modules: *const c_char,
    ignore_modules: *const c_char,
}

const _: () = {
    assert!(size_of::<Raw>() == size_of::<bc_config>());
    assert!(offset_of!(Raw, stack_sampling) == offset_of!(bc_config, stack_sampling));
    assert!(offset_of!(Raw, signal_number) == offset_of!(bc_config, signal_number));
    assert!(offset_of!(Raw, max_report_bytes) == offset_of!(bc_config, max_report_bytes));
    assert!(offset_of!(Raw, ignore_modules) == offset_of!(bc_config, ignore_modules));
};

/// Checks a configuration. The strings are the caller's.
///
/// # Safety
/// `config` is null or points to as many bytes as its first word says, and its strings are null or end in a NUL.
pub unsafe fn read<'a>(config: *const bc_config) -> Result<Settings<'a>, bc_status> {
    if config.is_null() {
        return Ok(Settings::default());
    }
    let mut raw = MaybeUninit::<Raw>::zeroed();
    // SAFETY: the caller vouches for as many bytes as the first word says; no more than we know are taken. All bits are
    // valid for integers and pointers.
    let raw = unsafe {
        let given = config.cast::<usize>().read_unaligned();
        if given < size_of::<Raw>() {
            log_error!("bc_config.struct_size: {given} is less than {}: was bc_config_init called?", size_of::<Raw>());
            return Err(BC_ERROR_INVALID_ARGUMENT);
        }
        ptr::copy_nonoverlapping(config.cast::<u8>(), raw.as_mut_ptr().cast(), size_of::<Raw>());
        raw.assume_init()
    };
    check(&raw)?;
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    let ns = |ms: u32| u64::from(ms) * 1_000_000;
    // SAFETY: the caller vouches for the strings.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    Ok(Settings {
        limit_ns: ns(or(raw.block_threshold_ms, 1000)),
        interval_ns: ns(raw.sample_interval_ms),
        hang_ns: ns(or(raw.hang_threshold_ms, 4000)),
        max_loops: or(raw.max_loops, 16) as usize,
        depth: or(raw.max_stack_depth, 128) as usize,
        samples: or(raw.sample_capacity, 256) as usize,
        method: match raw.sampling_method {
            _ if !is_on(raw.stack_sampling, true) => Method::Off,
            1 => Method::NoSignal,
            2 => Method::Signal,
            METHOD_OFF => Method::Off,
            _ => Method::Auto,
        },
        dumpable_window: is_on(raw.dumpable_window, true),
        cpu: is_on(raw.cpu_sampling, true),
        all_threads: is_on(raw.all_threads_on_block, false),
        report_ongoing: is_on(raw.report_ongoing, true),
        while_debugging: is_on(raw.while_debugging, false),
        redact_paths: is_on(raw.redact_paths, false),
        signal: raw.signal_number,
        formats: or(raw.report_formats, BC_FORMAT_TEXT | BC_FORMAT_JSON),
        max_reports: or(raw.max_reports, 500),
        max_report_bytes: if raw.max_report_bytes == 0 { 32 << 20 } else { raw.max_report_bytes },
        report_max_age_s: or(raw.report_max_age_s, 172_800),
        merge_window_ns: match raw.merge_window_s {
            BC_MERGE_OFF => None,
            seconds => Some(u64::from(or(seconds, 60)) * 1_000_000_000),
        },
        duration_ns: u64::from(raw.monitor_duration_s) * 1_000_000_000,
        report_dir: text(raw.report_dir),
        words: [raw.qualifier, raw.version_name, raw.version_code, raw.user_id, raw.network_type].map(text),
        concern_modules: text(raw.concern_modules),
        ignore_modules: text(raw.ignore_modules),
    })
}

const ON: u32 = 1;
const OFF: u32 = 2;
const METHOD_OFF: u32 = 3;

fn is_on(toggle: u32, default: bool) -> bool {
    match toggle {
        ON => true,
        OFF => false,
        _ => default,
    }
}

/// Every value is one that the contract knows. The log names the one that is not.
fn check(raw: &Raw) -> Result<(), bc_status> {
    let numbers: [(&str, u32, RangeInclusive<u32>); 10] = [
        ("block_threshold_ms", raw.block_threshold_ms, 1..=60_000),
        ("sample_interval_ms", raw.sample_interval_ms, 1..=60_000),
        ("hang_threshold_ms", raw.hang_threshold_ms, 1..=600_000),
        ("max_loops", raw.max_loops, 1..=256),
        ("max_stack_depth", raw.max_stack_depth, 8..=1024),
        ("sample_capacity", raw.sample_capacity, 16..=65_536),
        ("stack_sampling", raw.stack_sampling, 1..=OFF),
        ("sampling_method", raw.sampling_method, 1..=METHOD_OFF),
        ("report_formats", raw.report_formats, 1..=BC_FORMAT_TEXT | BC_FORMAT_JSON),
        ("max_reports", raw.max_reports, 1..=100_000),
    ];
    let toggles = [
        ("cpu_sampling", raw.cpu_sampling),
        ("all_threads_on_block", raw.all_threads_on_block),
        ("report_ongoing", raw.report_ongoing),
        ("while_debugging", raw.while_debugging),
        ("dumpable_window", raw.dumpable_window),
        ("redact_paths", raw.redact_paths),
    ];
    let numbers = numbers.into_iter().chain(toggles.map(|(name, toggle)| (name, toggle, 1..=OFF)));
    for (name, value, range) in numbers {
        if value != 0 && !range.contains(&value) {
            let (least, most) = (range.start(), range.end());
            log_error!("bc_config.{name}: {value} is not in {least} to {most}");
            return Err(BC_ERROR_INVALID_ARGUMENT);
        }
    }
    if raw.signal_number != 0 && !signal::is_real_time(raw.signal_number) {
        log_error!("bc_config.signal_number: {} is not in SIGRTMIN to SIGRTMAX", raw.signal_number);
        return Err(BC_ERROR_INVALID_ARGUMENT);
    }
    if raw.max_report_bytes != 0 && raw.max_report_bytes < 65_536 {
        log_error!("bc_config.max_report_bytes: {} is less than 65536", raw.max_report_bytes);
        return Err(BC_ERROR_INVALID_ARGUMENT);
    }
    Ok(())
}
