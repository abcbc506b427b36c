//! What interrupted code still has of its caller's, where calls leave the return address in a register (aarch64, riscv64).

/// The return address is still in that register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The caller's stack pointer, where that can be told.
    pub sp: Option<u64>,
    /// All registers that calls preserve have the caller's values, not only the frame pointer.
    pub preserved: bool,
    /// Where the caller's frame pointer lies, if the register has the function's own.
    pub frame_pointer: Option<u64>,
}
