//! The Java class of the library's, for an app that has none of it: defined from the bytes that D8 makes of `java/src`, by
//! a loader that Android has from version 8 on.
#![allow(unsafe_code)]

use super::env::{Env, Object};
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// Kept up to date by `cargo xtask java --dex`.
static DEX: &[u8] = include_bytes!("hook.dex");

/// A reference for the class that lasts until it is given up.
static CLASS: AtomicPtr<jni_sys::_jobject> = AtomicPtr::new(ptr::null_mut());

/// The class, defined at first use. One thread calls this.
pub fn class(env: Env, name: &CStr) -> Option<Object> {
    let known = CLASS.load(Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let loader = env.class(c"dalvik/system/InMemoryDexClassLoader")?;
    let buffer = env.buffer_of(DEX)?;
    // Without a parent, it finds Android's classes and no app's.
    let loader =
        env.construct(loader, c"(Ljava/nio/ByteBuffer;Ljava/lang/ClassLoader;)V", &[buffer, ptr::null_mut()])?;
    let class = env.get(loader, c"loadClass", c"(Ljava/lang/String;)Ljava/lang/Class;", &[env.string(name)?])?;
    let class = env.keep(class)?;
    CLASS.store(class, Release);
    Some(class)
}

/// Gives it up. A message that is still to be run has it as long as it needs.
pub fn forget(env: Env) {
    let class = CLASS.swap(ptr::null_mut(), AcqRel);
    if !class.is_null() {
        env.let_go(class);
    }
}
