//! What the unwinder must know about each architecture.

/// DWARF number of the stack pointer.
pub const SP: u16 = facts::SP;
/// DWARF number of the frame pointer.
pub const FP: u16 = facts::FP;
/// DWARF number under which CFI can ask for the pc itself, where there is one.
pub const PC: u16 = facts::PC;
/// The link register, on architectures whose calls leave the return address in one.
pub const LINK: Option<u16> = facts::LINK;
/// Registers that a call preserves, one bit a DWARF number: what the caller had is what the callee still has, unless
/// its CFI says where it was saved.
pub const PRESERVED: u64 = facts::PRESERVED;
/// How far below where the frame pointer points its frame record begins.
pub const RECORD: u64 = if cfg!(target_arch = "riscv64") { 16 } else { 0 };
/// Frame records lie at the top of their frames: behind one is where the caller's stack pointer was. On riscv64 functions
/// with variable arguments keep those above it.
pub const RECORDS_END_FRAMES: bool = !cfg!(any(target_arch = "aarch64", target_arch = "riscv64"));
/// Registers that a system call takes its arguments in. They keep them while it waits.
pub const ARGUMENTS: [u16; 6] = facts::ARGUMENTS;

#[cfg(target_arch = "x86_64")]
mod facts {
    pub const SP: u16 = 7;
    pub const FP: u16 = 6;
    pub const PC: u16 = 16;
    pub const LINK: Option<u16> = None;
    /// rbx, rbp, r12 to r15.
    pub const PRESERVED: u64 = 1 << 3 | 1 << 6 | 0xf << 12;
    /// rdi, rsi, rdx, r10, r8, r9.
    pub const ARGUMENTS: [u16; 6] = [5, 4, 1, 10, 8, 9];
}

#[cfg(target_arch = "aarch64")]
mod facts {
    pub const SP: u16 = 31;
    pub const FP: u16 = 29;
    pub const PC: u16 = 32;
    pub const LINK: Option<u16> = Some(30);
    /// x18 (the platform's own: a shadow stack on Android) to x29.
    pub const PRESERVED: u64 = 0xfff << 18;
    /// x0 to x5.
    pub const ARGUMENTS: [u16; 6] = [0, 1, 2, 3, 4, 5];
}

#[cfg(target_arch = "x86")]
mod facts {
    pub const SP: u16 = 4;
    pub const FP: u16 = 5;
    pub const PC: u16 = 8;
    pub const LINK: Option<u16> = None;
    /// ebx, ebp, esi, edi.
    pub const PRESERVED: u64 = 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7;
    /// ebx, ecx, edx, esi, edi, ebp.
    pub const ARGUMENTS: [u16; 6] = [3, 1, 2, 6, 7, 5];
}

#[cfg(target_arch = "arm")]
mod facts {
    pub const SP: u16 = 13;
    /// The Thumb frame pointer; Android's code is Thumb.
    pub const FP: u16 = 7;
    pub const PC: u16 = 15;
    pub const LINK: Option<u16> = Some(14);
    /// r4 to r11.
    pub const PRESERVED: u64 = 0xff << 4;
    /// r0 to r5.
    pub const ARGUMENTS: [u16; 6] = [0, 1, 2, 3, 4, 5];
}

#[cfg(target_arch = "riscv64")]
mod facts {
    pub const SP: u16 = 2;
    pub const FP: u16 = 8;
    /// The compilers' number for where a signal interrupted.
    pub const PC: u16 = 64;
    pub const LINK: Option<u16> = Some(1);
    /// gp (a shadow stack on Android), tp, s0 to s11.
    pub const PRESERVED: u64 = 3 << 3 | 3 << 8 | 0x3ff << 18;
    /// a0 to a5.
    pub const ARGUMENTS: [u16; 6] = [10, 11, 12, 13, 14, 15];
}

/// The plain address in a saved return address, which may be signed.
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
pub fn code_address(saved: u64) -> u64 {
    saved
}

/// The plain address in a saved return address, whose lowest bit tells which instructions the caller is made of.
#[cfg(target_arch = "arm")]
pub fn code_address(saved: u64) -> u64 {
    saved & !1
}

#[cfg(target_arch = "aarch64")]
pub use signed::code_address;

#[cfg(target_arch = "aarch64")]
mod signed {
    #![allow(unsafe_code)]

    /// The plain address in a saved return address, which may be signed (pointer authentication). How many bits the
    /// signature has depends on the kernel; the instruction knows.
    pub fn code_address(saved: u64) -> u64 {
        let plain;
        // SAFETY: `xpaclri` (hint 7) changes x30 only, which is declared; it does nothing on processors without it.
        unsafe {
            core::arch::asm!("mov x30, {value}", "hint #7", "mov {value}, x30", value = inout(reg) saved => plain,
                out("x30") _, options(nomem, nostack, preserves_flags));
        }
        plain
    }
}
