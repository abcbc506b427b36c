//! An installation: its memory, its threads, its life from install to uninstall.

#[cfg(feature = "jni")]
pub mod companion;
pub mod dump;
pub mod facts;
pub mod format;
pub mod health;
pub mod install;
pub mod life;
pub mod memory;
pub mod reports;
pub mod settings;
pub mod threads;
