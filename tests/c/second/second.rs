//! Another Rust library in the same program, with a standard library and a panic runtime of its own.

/// 1 if a panic is caught here, as this library's build promises.
#[unsafe(no_mangle)]
pub extern "C" fn second_catches(value: i32) -> i32 {
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| assert!(value < 0, "on purpose"));
    i32::from(caught.is_err())
}
