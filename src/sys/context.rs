//! The registers that a signal interrupted, by their DWARF numbers.
#![allow(unsafe_code)]

use core::ffi::c_void;

/// pc, sp, and the other registers handed one by one to `each`.
///
/// # Safety
/// `context` is the third argument of a signal handler that is running.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn interrupted(context: *const c_void, mut each: impl FnMut(u16, u64)) -> (u64, u64) {
    use libc::*;
    // DWARF numbers 0 to 15, as the System V ABI for AMD64 lists them.
    const ORDER: [i32; 16] = [
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11,
        REG_R12, REG_R13, REG_R14, REG_R15,
    ];
    // SAFETY: the caller vouches for it.
    let registers = unsafe { &(*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    let value = |place: i32| registers.get(place as usize).map_or(0, |v| *v as u64);
    for (number, place) in ORDER.iter().enumerate() {
        each(number as u16, value(*place));
    }
    (value(REG_RIP), value(REG_RSP))
}

/// See above.
///
/// # Safety
/// `context` is the third argument of a signal handler that is running.
#[cfg(target_arch = "aarch64")]
#[inline]
pub unsafe fn interrupted(context: *const c_void, mut each: impl FnMut(u16, u64)) -> (u64, u64) {
    // SAFETY: the caller vouches for it.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    for (number, value) in machine.regs.iter().enumerate() {
        each(number as u16, *value);
    }
    each(31, machine.sp);
    (machine.pc, machine.sp)
}

/// Has the signal cut a wait short? Then a system call has just given -EINTR: a wait that goes on is restarted instead,
/// its instruction still to come.
///
/// `value` gives a register, `before` the instruction before the pc.
pub fn wait_was_cut(value: impl Fn(u16) -> u64, before: impl FnOnce(&mut [u8]) -> bool) -> bool {
    const INTERRUPTED: u64 = -(libc::EINTR as i64) as u64;
    #[cfg(target_arch = "x86_64")]
    const CALL: [u8; 2] = [0x0f, 0x05];
    #[cfg(target_arch = "aarch64")]
    const CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];
    // rax and x0 both have number 0.
    let mut code = [0; CALL.len()];
    value(0) == INTERRUPTED && before(&mut code) && code == CALL
}
