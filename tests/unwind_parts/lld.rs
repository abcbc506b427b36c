//! The linker that Android's programs are linked with.

use std::path::PathBuf;
use std::sync::Once;

/// What a compiler has to be told to link by it. One for another processor does not look for it where it is.
pub fn options() -> [String; 2] {
    static MADE: Once = Once::new();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("lld-{}", env!("CARGO_CRATE_NAME")));
    MADE.call_once(|| {
        let path = std::env::var_os("PATH").unwrap();
        let linker = std::env::split_paths(&path).map(|folder| folder.join("ld.lld")).find(|linker| linker.exists());
        std::fs::create_dir_all(&folder).unwrap();
        let _ = std::fs::remove_file(folder.join("ld.lld"));
        std::os::unix::fs::symlink(linker.expect("lld"), folder.join("ld.lld")).unwrap();
    });
    [format!("-B{}", folder.display()), "-fuse-ld=lld".to_owned()]
}
