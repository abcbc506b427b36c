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

/// See above.
///
/// # Safety
/// `context` is the third argument of a signal handler that is running.
#[cfg(target_arch = "x86")]
#[inline]
pub unsafe fn interrupted(context: *const c_void, mut each: impl FnMut(u16, u64)) -> (u64, u64) {
    use libc::*;
    // DWARF numbers 0 to 7, as the System V ABI for the Intel386 lists them.
    const ORDER: [i32; 8] = [REG_EAX, REG_ECX, REG_EDX, REG_EBX, REG_ESP, REG_EBP, REG_ESI, REG_EDI];
    // SAFETY: the caller vouches for it.
    let registers = unsafe { &(*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    let value = |place: i32| registers.get(place as usize).map_or(0, |v| u64::from(*v as u32));
    for (number, place) in ORDER.iter().enumerate() {
        each(number as u16, value(*place));
    }
    (value(REG_EIP), value(REG_ESP))
}

/// See above.
///
/// # Safety
/// `context` is the third argument of a signal handler that is running.
#[cfg(target_arch = "arm")]
#[inline]
pub unsafe fn interrupted(context: *const c_void, mut each: impl FnMut(u16, u64)) -> (u64, u64) {
    // SAFETY: the caller vouches for it.
    let m = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    let all = [
        m.arm_r0, m.arm_r1, m.arm_r2, m.arm_r3, m.arm_r4, m.arm_r5, m.arm_r6, m.arm_r7, m.arm_r8, m.arm_r9, m.arm_r10,
        m.arm_fp, m.arm_ip, m.arm_sp, m.arm_lr, m.arm_pc,
    ];
    for (number, value) in all.into_iter().enumerate() {
        each(number as u16, u64::from(value));
    }
    (u64::from(m.arm_pc), u64::from(m.arm_sp))
}

/// See above.
///
/// # Safety
/// `context` is the third argument of a signal handler that is running.
#[cfg(target_arch = "riscv64")]
#[inline]
pub unsafe fn interrupted(context: *const c_void, mut each: impl FnMut(u16, u64)) -> (u64, u64) {
    // As <asm/ucontext.h> and <asm/ptrace.h> lay it out: pc and then x1 to x31. Not every C library's types are known here.
    const REGISTERS: usize = 176;
    #[cfg(target_env = "gnu")]
    const _: () = assert!(REGISTERS == core::mem::offset_of!(libc::ucontext_t, uc_mcontext));
    // SAFETY: the caller vouches for it.
    let [pc, general @ ..] = unsafe { &*context.byte_add(REGISTERS).cast::<[u64; 32]>() };
    for (number, value) in (1..).zip(general) {
        each(number, *value);
    }
    (*pc, general[1])
}

/// Has the signal cut a wait short? Then a system call has just given -EINTR: a wait that goes on is restarted instead,
/// its instruction still to come.
///
/// `value` gives a register, `before` the instruction before the pc.
pub fn wait_was_cut(value: impl Fn(u16) -> u64, before: impl FnOnce(&mut [u8]) -> bool) -> bool {
    const INTERRUPTED: u64 = (-libc::EINTR) as isize as usize as u64;
    // On x86 the kernel's function for system calls goes on behind this one, whichever it has taken.
    #[cfg(target_arch = "x86")]
    const CALLS: [&[u8]; 1] = [&[0xcd, 0x80]];
    #[cfg(target_arch = "x86_64")]
    const CALLS: [&[u8]; 1] = [&[0x0f, 0x05]];
    #[cfg(target_arch = "aarch64")]
    const CALLS: [&[u8]; 1] = [&[0x01, 0x00, 0x00, 0xd4]];
    #[cfg(target_arch = "riscv64")]
    const CALLS: [&[u8]; 1] = [&[0x73, 0x00, 0x00, 0x00]];
    // Of both sets of instructions; a condition other than "always" is not in use.
    #[cfg(target_arch = "arm")]
    const CALLS: [&[u8]; 2] = [&[0x00, 0x00, 0x00, 0xef], &[0x00, 0xdf]];
    let mut code = [0; CALLS[0].len()];
    // Where calls give what they give: a0, which is number 0 everywhere else.
    const RESULT: u16 = if cfg!(target_arch = "riscv64") { 10 } else { 0 };
    value(RESULT) == INTERRUPTED && before(&mut code) && CALLS.iter().any(|call| code.ends_with(call))
}
