//! Walking a stack, given registers and a memory that can be read without faulting; and which module a pc lies in.
//!
//! Nothing here takes the loader's lock, opens a module's file or dereferences an address that it was told.

pub mod arch;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
mod bare;
pub mod cache;
pub mod call;
#[cfg(any(test, target_arch = "arm"))]
mod call_arm;
pub mod cfi;
pub mod dynamic;
pub mod eh_frame;
pub mod elf;
#[cfg(any(test, target_arch = "arm"))]
mod exidx;
mod expression;
pub mod file;
pub mod fp;
mod heads;
#[cfg(target_arch = "x86_64")]
pub mod instruction;
#[cfg(any(all(test, target_pointer_width = "64"), target_arch = "riscv64"))]
mod instruction_riscv64;
#[cfg(any(test, target_arch = "aarch64", target_arch = "riscv64"))]
mod kept;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
mod link;
#[cfg(any(test, target_arch = "aarch64"))]
mod link_arm64;
#[cfg(any(all(test, target_pointer_width = "64"), target_arch = "riscv64"))]
mod link_riscv64;
pub mod memory;
pub mod modules;
#[cfg(target_arch = "x86_64")]
pub mod prologue;
#[cfg(any(test, target_arch = "aarch64"))]
mod prologue_arm64;
#[cfg(any(all(test, target_pointer_width = "64"), target_arch = "riscv64"))]
mod prologue_riscv64;
mod proof;
pub mod registers;
pub mod rules;
pub mod search;
#[cfg(any(test, target_arch = "aarch64"))]
mod sigreturn_arm64;
#[cfg(target_arch = "riscv64")]
mod sigreturn_riscv64;
pub mod symbols;
pub mod walk;
