//! The C boundary: each function checks its arguments, calls one function and translates the result.
// What callers must keep to is in each item's text, which C programmers read: the four lines and the argument rules.
#![allow(unsafe_code, clippy::missing_safety_doc)]

mod at_exit;
pub mod blocks;
pub mod config;
pub mod frames;
pub mod health;
pub mod java;
pub mod lifecycle;
pub mod log;
pub mod looper;
pub mod loops;
pub mod modules;
pub mod progress;
pub mod reports;
pub mod statistics;
pub mod threads;
pub mod version;
mod watching;

use crate::abi::bc_status::{self, *};
use crate::engine::install::Failure;
use crate::engine::life::Refusal;
use crate::watch::registry;

fn status(result: Result<(), Refusal>) -> bc_status {
    match result {
        Ok(()) => BC_OK,
        Err(Refusal::State) => BC_ERROR_INVALID_STATE,
        Err(Refusal::Thread) => BC_ERROR_WRONG_THREAD,
        Err(Refusal::Timeout) => BC_ERROR_TIMEOUT,
        Err(Refusal::Fault) => BC_ERROR_INTERNAL,
        Err(Refusal::Io) => BC_ERROR_IO,
        Err(Refusal::Full) => BC_ERROR_LIMIT_REACHED,
        Err(Refusal::Failed(Failure::NoMemory)) => BC_ERROR_NO_MEMORY,
        Err(Refusal::Failed(Failure::Directory(_)) | Refusal::Output(_)) => BC_ERROR_IO,
    }
}

fn of_refusal(refusal: registry::Refusal) -> bc_status {
    match refusal {
        registry::Refusal::NotInstalled => BC_ERROR_INVALID_STATE,
        registry::Refusal::Full => BC_ERROR_LIMIT_REACHED,
    }
}
