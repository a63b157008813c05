//! Archives that a release has, and archives that somebody made to do harm.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::time::Instant;
use tar::{Builder, Header};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const NAME: &str = "svc-hosted";

fn packed(tar: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(tar).unwrap();
    gzip.finish().unwrap()
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o755);
    header
}

/// A tar file of members with their own names, whatever these are.
fn tar_of(members: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in members {
        let mut header = header(*kind, content.len() as u64);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    packed(&builder.into_inner().unwrap())
}

fn zip_of(members: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, content) in members {
        zip.start_file(*name, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[track_caller]
fn refused(archive: &[u8], words: &str) {
    let began = Instant::now();
    let error = read_program(archive, NAME).expect_err(words);
    let mut text = error.to_string();
    if let ProgramError::Damaged(cause) = &error {
        text = format!("{text}: {cause}");
    }
    assert!(text.contains(words), "{words}: {text}");
    eprintln!("{words}: {:?}", began.elapsed());
}

#[test]
fn the_program_is_read_and_nothing_else() {
    let regular = EntryType::Regular;
    for name in [NAME, "./svc-hosted"] {
        let tar = tar_of(&[
            ("README", regular, b"read me"),
            (name, regular, b"program"),
            ("bin/svc-hosted", regular, b"another"),
        ]);
        assert!(is_archive(&tar));
        assert_eq!(read_program(&tar, NAME).unwrap(), b"program", "{name}");
    }
    let zip = zip_of(&[("LICENSE", 0o644, b"text"), (NAME, 0o755, b"program")]);
    assert!(is_archive(&zip));
    assert_eq!(read_program(&zip, NAME).unwrap(), b"program");
    assert!(!is_archive(b"\x7fELF"));
}

#[test]
fn h124_only_one_regular_file_under_the_name_is_taken() {
    let regular = EntryType::Regular;
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Char,
        EntryType::Fifo,
    ] {
        refused(&tar_of(&[(NAME, kind, b"")]), "is not a regular file");
    }
    refused(&tar_of(&[(NAME, EntryType::GNUSparse, b"x")]), "holes");
    refused(
        &tar_of(&[
            ("././@LongLink", EntryType::GNULongName, b"svc-hosted\0"),
            ("x", regular, b"p"),
        ]),
        "another name",
    );
    let pax = b"19 path=svc-hosted\n";
    refused(&tar_of(&[("pax", EntryType::XHeader, pax), ("x", regular, b"p")]), "another name");
    refused(&tar_of(&[(NAME, regular, b"one"), (NAME, regular, b"two")]), "twice");
    refused(&tar_of(&[(NAME, regular, b"one"), ("./svc-hosted", regular, b"two")]), "twice");
    refused(&tar_of(&[("bin/svc-hosted", regular, b"one")]), "no file svc-hosted");
    for name in ["../svc-hosted", "/svc-hosted", "a\\svc-hosted", "x/../../y"] {
        refused(&tar_of(&[(name, regular, b"one")]), "leads out");
    }
    let mut link = ZipWriter::new(Cursor::new(Vec::new()));
    link.add_symlink(NAME, "/bin/sh", SimpleFileOptions::default()).unwrap();
    refused(&link.finish().unwrap().into_inner(), "is not a regular file");
    refused(&zip_of(&[("svc-hosted/", 0o755, b"")]), "is not a regular file");
    refused(&zip_of(&[("x", 0o644, b"")]), "no file svc-hosted");
    refused(&zip_of(&[("../svc-hosted", 0o644, b"")]), "leads out");
    let twice = zip_of(&[(NAME, 0o755, b"one"), ("svc-hostex", 0o755, b"two")]);
    let twice: Vec<u8> = {
        let mut bytes = twice;
        let wanted = b"svc-hostex";
        for at in 0..bytes.len() - wanted.len() {
            if bytes[at..].starts_with(wanted) {
                bytes[at..at + wanted.len()].copy_from_slice(NAME.as_bytes());
            }
        }
        bytes
    };
    refused(&twice, "duplicate");
}

#[test]
fn h120_h124_bombs_and_lying_sizes_are_refused() {
    let regular = EntryType::Regular;
    let zeros = vec![0_u8; 80 << 20];
    refused(&tar_of(&[(NAME, regular, &zeros)]), "unpacked bytes");
    refused(&zip_of(&[(NAME, 0o755, &zeros)]), "bytes of one file");
    let many: Vec<_> = (0..=MEMBERS).map(|_| ("x", regular, &b""[..])).collect();
    refused(&tar_of(&many), "more than is allowed");
    let names: Vec<String> = (0..=MEMBERS).map(|number| number.to_string()).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), 0o644, &b""[..])).collect();
    refused(&zip_of(&many), "members");
    let deep = "a/".repeat(40) + NAME;
    refused(&tar_of(&[(&deep, regular, b"x")]), "directories");
    // A header that promises far more than follows.
    let mut lying = header(regular, 1 << 40);
    lying.set_path(NAME).unwrap();
    lying.set_cksum();
    let mut tar = lying.as_bytes().to_vec();
    tar.extend_from_slice(&[0; 1024]);
    refused(&packed(&tar), "bytes of one file");
    let mut lying = header(regular, 4096);
    lying.set_path(NAME).unwrap();
    lying.set_cksum();
    let mut tar = lying.as_bytes().to_vec();
    tar.extend_from_slice(&[1; 100]);
    refused(&packed(&tar), "not a complete archive");
    // A table of a zip file that says less than comes out.
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut zip = zip_of(&[(NAME, 0o755, &content)]);
    let real = u32::try_from(content.len()).unwrap().to_le_bytes();
    for at in 0..zip.len() - 4 {
        if zip[at..at + 4] == real {
            zip[at..at + 4].copy_from_slice(&7_u32.to_le_bytes());
        }
    }
    refused(&zip, "not a complete archive");
}

#[test]
fn h124_what_is_cut_short_or_nested_is_refused() {
    let tar = tar_of(&[(NAME, EntryType::Regular, &[7; 5000])]);
    for end in [1, 2, 10, tar.len() / 2, tar.len() - 1] {
        assert!(read_program(&tar[..end], NAME).is_err(), "{end}");
    }
    let zip = zip_of(&[(NAME, 0o755, &[7; 5000])]);
    for end in [4, 30, zip.len() / 2, zip.len() - 1] {
        assert!(read_program(&zip[..end], NAME).is_err(), "{end}");
    }
    // An archive in an archive is a file like any other: nobody looks into it.
    let outer = tar_of(&[("svc-hosted.tar.gz", EntryType::Regular, &tar)]);
    refused(&outer, "no file svc-hosted");
}
