//! Archives that somebody else made (H40, H120).
//!
//! They are refused as a whole, and nothing of them is written.

use crate::backups::{backed_up, tree};
use crate::harness::World;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use tar::{Archive, Builder, EntryType, Header};

/// One member as it is written, whatever it is.
#[derive(Clone)]
struct Member {
    kind: EntryType,
    name: Vec<u8>,
    content: Vec<u8>,
    /// A size that is not that of the content.
    size: Option<u64>,
}

fn file(name: &str, content: &[u8]) -> Member {
    let (name, content) = (name.as_bytes().to_vec(), content.to_vec());
    Member { kind: EntryType::Regular, name, content, size: None }
}

fn of_kind(kind: EntryType, name: &str) -> Member {
    Member { kind, ..file(name, b"") }
}

/// The members of a good archive without its manifest, and the manifest.
fn taken_apart(archive: &Path) -> (Value, Vec<Member>) {
    let mut tar = Archive::new(MultiGzDecoder::new(File::open(archive).unwrap()));
    let mut members = Vec::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path_bytes().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        members.push(Member { kind: entry.header().entry_type(), name, content, size: None });
    }
    let manifest = members.remove(0);
    assert_eq!(manifest.name, b"manifest.json", "it comes first");
    (serde_json::from_slice(&manifest.content).unwrap(), members)
}

/// A manifest that says of these members what is true.
fn told(manifest: &Value, members: &[Member]) -> Value {
    let files: Vec<Value> = members
        .iter()
        .filter(|member| member.kind == EntryType::Regular)
        .filter_map(|member| {
            let path = std::str::from_utf8(&member.name).ok()?;
            let sha256 = format!("{:x}", Sha256::digest(&member.content));
            let size = member.content.len();
            Some(json!({ "path": path, "size": size, "sha256": sha256, "mode": 384, "mtime": 1 }))
        })
        .collect();
    let mut manifest = manifest.clone();
    manifest["files"] = json!(files);
    manifest
}

fn bytes(members: &[Member]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for member in members {
        let mut header = Header::new_gnu();
        header.set_entry_type(member.kind);
        header.set_size(member.size.unwrap_or(member.content.len() as u64));
        header.set_mode(0o4777);
        let field = &mut header.as_old_mut().name;
        let length = member.name.len().min(field.len());
        field[..length].copy_from_slice(&member.name[..length]);
        header.set_cksum();
        builder.append(&header, member.content.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn packed(tar: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(tar).unwrap();
    gzip.finish().unwrap()
}

/// The whole archive, its manifest first.
fn forged(manifest: &Value, members: &[Member]) -> Vec<u8> {
    let head = file("manifest.json", manifest.to_string().as_bytes());
    packed(&bytes(&[&[head], members].concat()))
}

/// Tries to restore `archive` over a state directory; nothing may change anywhere.
async fn refused(world: &World, what: &str, archive: &[u8], reason: &str) {
    let path = world.root.join("hostile.tar.gz");
    fs::write(&path, archive).unwrap();
    let before = tree(&world.root);
    let state = world.state.to_str().unwrap();
    let args = ["restore", path.to_str().unwrap(), "--state-dir", state, "--force"];
    let ran = world.cli(&args).await;
    assert_eq!(ran.code, Some(1), "{what}: {}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(reason), "{what}: {}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
    let without_lock = |root: &Path| {
        let mut tree = tree(root);
        tree.remove(Path::new("state/run.lock"));
        tree
    };
    let mut before = before;
    before.remove(Path::new("state/run.lock"));
    let after = without_lock(&world.root);
    let changed: Vec<_> = after
        .iter()
        .filter(|(path, entry)| before.get(*path) != Some(entry))
        .map(|(path, _)| path)
        .chain(before.keys().filter(|path| !after.contains_key(*path)))
        .collect();
    assert!(changed.is_empty(), "{what}: {changed:?}");
}

/// A world with records, a backup of it, and what that backup is made of.
async fn prepared() -> (World, Value, Vec<Member>) {
    let world = World::new();
    world.cli(&["api-token", "issue", "phone"]).await.ok();
    let archive = backed_up(&world).await;
    let (manifest, members) = taken_apart(&archive);
    (world, manifest, members)
}

#[tokio::test]
async fn h40_h120_hostile_archives_are_refused_and_write_nothing() {
    let (world, manifest, good) = prepared().await;
    let with = |more: &[Member]| {
        let members = [&good[..], more].concat();
        forged(&told(&manifest, &members), &members)
    };
    // Members that the manifest does not list.
    let slipped = |more: &[Member]| forged(&told(&manifest, &good), &[&good[..], more].concat());
    // The forgery itself is sound: the same road leads to a restore.
    let target = world.root.join("good");
    fs::write(world.root.join("good.tar.gz"), with(&[file("state/more", b"x")])).unwrap();
    let state = target.to_str().unwrap();
    world.cli(&["restore", "good.tar.gz", "--state-dir", state]).await.ok();
    assert_eq!(fs::read(target.join("more")).unwrap(), b"x");

    let long = "x".repeat(5000);
    let mut long_name = long.into_bytes();
    long_name.push(0);
    let hidden = Member { name: b"state/a\0../../escaped".to_vec(), ..file("", b"x") };
    let slash = Member { name: b"state/dir/".to_vec(), ..file("", b"x") };
    let pax = |record: &str| Member { kind: EntryType::XHeader, ..file("pax", record.as_bytes()) };
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("an absolute name", slipped(&[file("/tmp/escaped", b"x")]), "absolute"),
        ("a drive", slipped(&[file("C:/escaped", b"x")]), "absolute"),
        ("a name that climbs", slipped(&[file("state/../../escaped", b"x")]), "`..`"),
        ("a name that begins climbing", slipped(&[file("../escaped", b"x")]), "`..`"),
        ("a dot", slipped(&[file("state/./x", b"x")]), "`.`"),
        ("an empty part", slipped(&[file("state//x", b"x")]), "empty part"),
        ("a backslash", slipped(&[file("state\\..\\x", b"x")]), "backslash"),
        ("a name behind a byte 0", slipped(&[hidden]), "control character"),
        ("a line break", slipped(&[file("state/a\nb", b"x")]), "control character"),
        ("another place", slipped(&[file("home/x", b"x")]), "outside"),
        ("a tree of configurations", with(&[file("config/a/b", b"x")]), "outside"),
        ("two configurations", with(&[file("config/a", b"x"), file("config/b", b"x")]), "second"),
        (
            "a file twice",
            {
                let twice = [&good[..], &[file("state/x", b"1"), file("state/x", b"2")]].concat();
                let once = [&good[..], &[file("state/x", b"1")]].concat();
                forged(&told(&manifest, &once), &twice)
            },
            "twice",
        ),
        (
            "a file twice in the list",
            with(&[file("state/x", b"1"), file("state/x", b"2")]),
            "twice",
        ),
        ("two cases", with(&[file("state/x", b"1"), file("state/X", b"2")]), "upper and lower"),
        (
            "a file below a file",
            with(&[file("state/x", b"1"), file("state/x/y", b"2")]),
            "no directory",
        ),
        (
            "a file below a link",
            {
                let link = of_kind(EntryType::Symlink, "state/x");
                with(&[link, file("state/x/y", b"2")])
            },
            "no directory",
        ),
        ("a file as its own directory", with(&[slash]), "name"),
        (
            "a listed file that is a link",
            {
                let listed = [&good[..], &[file("state/x", b"")]].concat();
                let link = [&good[..], &[of_kind(EntryType::Symlink, "state/x")]].concat();
                forged(&told(&manifest, &listed), &link)
            },
            "missing",
        ),
        ("a link with a bad name", with(&[of_kind(EntryType::Symlink, "/etc/x")]), "absolute"),
        ("a file with holes", with(&[of_kind(EntryType::GNUSparse, "state/x")]), "holes"),
        ("a volume label", with(&[of_kind(EntryType::new(b'V'), "state/x")]), "kind"),
        (
            "a long name without end",
            {
                let kind = EntryType::GNULongName;
                with(&[Member { kind, ..file("long", &long_name) }, file("state/x", b"x")])
            },
            "too long",
        ),
        (
            "a long name that climbs",
            {
                let kind = EntryType::GNULongName;
                let members = [
                    Member { kind, ..file("long", b"state/../../escaped\0") },
                    file("state/x", b"x"),
                ];
                with(&members)
            },
            "`..`",
        ),
        (
            "a pax name",
            with(&[pax("27 path=state/../../escape\n"), file("state/x", b"x")]),
            "another name",
        ),
        (
            "a pax size",
            with(&[pax("16 size=1000000\n"), file("state/x", b"x")]),
            "another name or size",
        ),
        ("a log of the database", with(&[file("state/svc.db-wal", &[0; 64])]), "svc.db-wal"),
        (
            "another digest",
            {
                let listed = [&good[..], &[file("state/x", b"1")]].concat();
                let sent = [&good[..], &[file("state/x", b"2")]].concat();
                forged(&told(&manifest, &listed), &sent)
            },
            "SHA-256",
        ),
        (
            "another size",
            {
                let listed = [&good[..], &[file("state/x", b"1")]].concat();
                let sent = [&good[..], &[file("state/x", b"22")]].concat();
                forged(&told(&manifest, &listed), &sent)
            },
            "another size",
        ),
        (
            "an unlisted file",
            {
                let sent = [&good[..], &[file("state/x", b"1")]].concat();
                forged(&told(&manifest, &good), &sent)
            },
            "not listed",
        ),
        ("no manifest", packed(&bytes(&good)), "first member"),
        (
            "a manifest that comes later",
            {
                let head = file("manifest.json", told(&manifest, &good).to_string().as_bytes());
                packed(&bytes(&[&good[..], &[head]].concat()))
            },
            "first member",
        ),
        ("a second manifest", with(&[file("manifest.json", b"{}")]), "outside"),
        ("a manifest that is no JSON", packed(&bytes(&[file("manifest.json", b"{")])), "unusable"),
        (
            "no state",
            {
                let config = [file("config/svc.yml", b"x")];
                forged(&told(&manifest, &config), &config)
            },
            "no state directory",
        ),
        (
            "a newer format",
            {
                let mut newer = told(&manifest, &good);
                newer["format"] = json!(3);
                forged(&newer, &good)
            },
            "newer version",
        ),
        (
            "a list of none",
            {
                let mut older = told(&manifest, &good);
                older["format"] = json!(1);
                forged(&older, &good)
            },
            "lists no files",
        ),
        (
            "something behind the end",
            {
                let mut tar = bytes(
                    &[
                        &[file("manifest.json", told(&manifest, &good).to_string().as_bytes())],
                        &good[..],
                    ]
                    .concat(),
                );
                tar.extend_from_slice(b"more");
                packed(&tar)
            },
            "follows its end",
        ),
        (
            "something behind the last part",
            [with(&[]), b"more".to_vec()].concat(),
            "not a complete",
        ),
        ("half of it", with(&[])[..1000].to_vec(), "not a complete"),
        (
            "all but its last byte",
            {
                let mut whole = with(&[]);
                whole.pop();
                whole
            },
            "not a complete",
        ),
        ("nothing", Vec::new(), "refused as a whole"),
        ("no gzip", b"PK\x03\x04 this is no archive".to_vec(), "not a complete"),
        ("a tar that is not packed", bytes(&good), "not a complete"),
        (
            "a size that is a lie",
            {
                let mut liar = file("state/x", b"x");
                liar.size = Some(11 * 1024 * 1024 * 1024);
                with(&[liar])
            },
            "more than is allowed",
        ),
        (
            "a bomb",
            with(&[file("state/zeros", &vec![0; 64 * 1024 * 1024])]),
            "more than is allowed",
        ),
    ];
    assert!(table.len() > 40);
    for (what, archive, reason) in &table {
        refused(&world, what, archive, reason).await;
    }
    assert!(!world.root.join("escaped").exists() && !Path::new("/tmp/escaped").exists());
}

/// Links, devices and pipes are left out and told of; what is left is restored.
#[tokio::test]
async fn h40_links_and_devices_of_an_archive_are_left_out() {
    let (world, manifest, good) = prepared().await;
    let kinds = [
        (EntryType::Symlink, "state/l1"),
        (EntryType::Link, "state/l2"),
        (EntryType::Char, "state/l3"),
        (EntryType::Block, "state/l4"),
        (EntryType::Fifo, "state/l5"),
    ];
    let odd: Vec<Member> = kinds.iter().map(|(kind, name)| of_kind(*kind, name)).collect();
    let program = file("state/deps/bin/tool", b"#!/bin/sh\n");
    let members = [&good[..], &odd, &[program]].concat();
    let archive = world.root.join("odd.tar.gz");
    fs::write(&archive, forged(&told(&manifest, &members), &members)).unwrap();
    let target = world.root.join("target");
    let args = ["restore", "odd.tar.gz", "--state-dir", target.to_str().unwrap(), "--json"];
    let done = world.cli(&args).await.ok().json();
    assert_eq!(done["warnings"].as_array().unwrap().len(), 5, "{done}");
    let restored = tree(&target);
    let is_there = |(_, name): &(EntryType, &str)| target.join(&name["state/".len()..]).exists();
    assert!(!kinds.iter().any(is_there));
    for (path, (mode, _)) in restored {
        let is_private = if path.starts_with("deps/bin") || target.join(&path).is_dir() {
            mode == 0o700
        } else {
            mode == 0o600
        };
        assert!(is_private, "{} {mode:o}", path.display());
    }
}

/// H86 over an archive: a database that is not ours, object by object, is refused.
#[tokio::test]
async fn h86_a_foreign_database_in_an_archive_is_refused() {
    let (world, manifest, good) = prepared().await;
    let at = good.iter().position(|member| member.name == b"state/svc.db").unwrap();
    let changed = async |sql: &str| {
        let path = world.root.join("changed.db");
        fs::write(&path, &good[at].content).unwrap();
        let mut open = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        sqlx::raw_sql(sql).execute(&mut open).await.unwrap();
        open.close().await.unwrap();
        let mut members = good.clone();
        members[at].content = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        forged(&told(&manifest, &members), &members)
    };
    let table = [
        (
            "a trigger",
            "CREATE TRIGGER t AFTER INSERT ON bridges BEGIN DELETE FROM api_tokens; END",
            "trigger t is not one of them",
        ),
        (
            "a view in the place of a table",
            "DROP TABLE withdrawn_tokens; CREATE VIEW withdrawn_tokens AS SELECT '' AS hash, 0 AS \
             withdrawn_at",
            "not one of them",
        ),
        ("another program", "PRAGMA application_id = 7", "another program"),
        ("a newer schema", "PRAGMA user_version = 999", "has schema 999, this version knows"),
        ("a lost index", "DROP INDEX bridges_by_revision", "missing"),
    ];
    for (what, sql, reason) in table {
        refused(&world, what, &changed(sql).await, reason).await;
    }
    let mut members = good.clone();
    members[at].content = b"SQLite format 3\0 and no more".to_vec();
    let archive = forged(&told(&manifest, &members), &members);
    refused(&world, "no database", &archive, "database").await;
    members[at].content = good[at].content.clone();
    let middle = members[at].content.len() / 2;
    members[at].content[middle..].fill(0xff);
    let archive = forged(&told(&manifest, &members), &members);
    refused(&world, "a damaged database", &archive, "database").await;
}
