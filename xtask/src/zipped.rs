//! Zip archives that are the same, byte for byte, whenever and wherever they are made of the same files.

use crate::run::Outcome;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// Files by their paths, in whose order they are written.
pub type Files = BTreeMap<String, Vec<u8>>;

/// An archive of them.
pub fn pack(files: &Files) -> Outcome<Vec<u8>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let packed = (|| {
        for (path, bytes) in files {
            writer.start_file(path.as_str(), options)?;
            writer.write_all(bytes)?;
        }
        Ok::<_, zip::result::ZipError>(writer.finish()?.into_inner())
    })();
    packed.map_err(|error| format!("zip: {error}"))
}

/// The files of an archive that is one of these: sorted, without a time of its own or a folder as an entry.
pub fn unpack(archive: &[u8]) -> Outcome<Files> {
    let mut reader = ZipArchive::new(Cursor::new(archive)).map_err(|error| format!("no zip archive: {error}"))?;
    let mut files = Files::new();
    for number in 0..reader.len() {
        let mut entry = reader.by_index(number).map_err(|error| format!("entry {number}: {error}"))?;
        let name = entry.name().map_err(|error| format!("entry {number}: {error}"))?.into_owned();
        if entry.is_dir() {
            return Err(format!("{name} is a folder"));
        }
        if entry.last_modified() != Some(DateTime::DEFAULT) {
            return Err(format!("{name} tells when it was made"));
        }
        if files.last_key_value().is_some_and(|(last, _)| *last >= name) {
            return Err(format!("{name} is not in its place"));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
        files.insert(name, bytes);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let mut files = Files::new();
        files.insert("b/c".to_string(), b"second".to_vec());
        files.insert("a".to_string(), vec![7; 100_000]);
        let first = pack(&files).unwrap();
        assert!(first.len() < 10_000);
        assert_eq!(first, pack(&files).unwrap());
        assert_eq!(unpack(&first).unwrap(), files);
    }

    #[test]
    fn times_order_and_folders_are_told() {
        type Change<'a> = dyn Fn(&mut ZipWriter<Cursor<Vec<u8>>>) + 'a;
        let zip = |change: &Change<'_>| {
            let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
            change(&mut writer);
            writer.finish().unwrap().into_inner()
        };
        let plain = SimpleFileOptions::default().last_modified_time(DateTime::DEFAULT);
        let later = plain.last_modified_time(DateTime::from_date_and_time(2026, 3, 14, 15, 9, 26).unwrap());
        let made = zip(&|writer| writer.start_file("a", later).unwrap());
        assert!(unpack(&made).unwrap_err().contains("when it was made"));
        let unordered = zip(&|writer| {
            writer.start_file("b", plain).unwrap();
            writer.start_file("a", plain).unwrap();
        });
        assert!(unpack(&unordered).unwrap_err().contains("not in its place"));
        let folder = zip(&|writer| writer.add_directory("a", plain).unwrap());
        assert!(unpack(&folder).unwrap_err().contains("is a folder"));
        assert!(unpack(b"nothing").is_err());
    }
}
