//! What machine and system this is.
#![allow(unsafe_code)]

use arrayvec::ArrayVec;
use core::ffi::c_char;

/// A short string.
pub type Text = ArrayVec<u8, 96>;

/// See above.
pub struct Names {
    /// The model (Android), or the processor's architecture.
    pub machine: Text,
    /// The API level (Android), or the kernel's name.
    pub system: Text,
    /// The release of the system.
    pub release: Text,
}

/// What the system says of itself.
pub fn names() -> Names {
    // SAFETY: arrays of characters.
    let mut names: libc::utsname = unsafe { core::mem::zeroed() };
    // SAFETY: a live place.
    unsafe { libc::uname(&mut names) };
    let kernel = Names { machine: text(&names.machine), system: text(&names.sysname), release: text(&names.release) };
    #[cfg(target_os = "android")]
    let kernel = android(kernel);
    kernel
}

#[cfg(target_os = "android")]
fn android(kernel: Names) -> Names {
    let property = |name: &core::ffi::CStr, otherwise: Text| {
        let mut value = [0; libc::PROP_VALUE_MAX as usize];
        // SAFETY: a string that ends in a NUL, and as much room as the call asks for.
        let length = unsafe { libc::__system_property_get(name.as_ptr(), value.as_mut_ptr()) };
        if length > 0 { text(&value) } else { otherwise }
    };
    Names {
        machine: property(c"ro.product.model", kernel.machine),
        system: property(c"ro.build.version.sdk", kernel.system),
        release: property(c"ro.build.version.release", kernel.release),
    }
}

fn text(characters: &[c_char]) -> Text {
    let bytes = characters.iter().map(|character| *character as u8).take_while(|byte| *byte != 0);
    bytes.take(Text::new().remaining_capacity()).collect()
}
