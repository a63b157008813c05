//! An image for containers (OCI image layout), without a daemon that builds it.
//!
//! It holds the two static programs and nothing else: who runs agents in it adds the agent, git
//! and the certificates of authorities in an image of their own.

use anyhow::Result;

use super::tree::{Tree, digest, gzip, time};

/// The user that the service runs as.
const USER: u32 = 1000;

/// The layout as one tar file, which tools know as `oci-archive`.
pub(super) fn archive(installed: &Tree, version: &str, epoch: u64) -> Result<Vec<u8>> {
    let mut root = installed.clone();
    root.file("etc/passwd", 0o644, format!("svc:x:{USER}:{USER}::/home/svc:/sbin/nologin\n"));
    root.file("etc/group", 0o644, format!("svc:x:{USER}:\n"));
    root.directory("tmp", 0o1777);
    // Whoever runs it mounts something here; an empty volume takes the mode over.
    root.directory("home/svc", 0o1777);
    let plain = root.tar(epoch)?;
    let layer = gzip(&plain)?;
    let created = time(epoch);
    let config = format!(
        "{{\"architecture\":\"amd64\",\"os\":\"linux\",\"created\":\"{created}\",\"config\":{{\
         \"User\":\"{USER}:{USER}\",\"Entrypoint\":[\"/usr/bin/svc\"],\"Cmd\":[\"run\"],\
         \"Env\":[\"PATH=/usr/bin:/bin\",\"HOME=/home/svc\",\"SVC_SETUP_HOST=0.0.0.0\"],\
         \"WorkingDir\":\"/home/svc\",\"ExposedPorts\":{{\"7621/tcp\":{{}}}},\
         \"Volumes\":{{\"/home/svc\":{{}}}}}},\
         \"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[\"sha256:{}\"]}},\
         \"history\":[{{\"created\":\"{created}\",\"created_by\":\"cargo xtask package\"}}]}}",
        digest(&plain)
    );
    let described = |kind: &str, bytes: &[u8]| {
        format!(
            "\"mediaType\":\"application/vnd.oci.image.{kind}\",\"digest\":\"sha256:{}\",\"size\":{}",
            digest(bytes),
            bytes.len()
        )
    };
    let manifest = format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\
         \"config\":{{{}}},\"layers\":[{{{}}}]}}",
        described("config.v1+json", config.as_bytes()),
        described("layer.v1.tar+gzip", &layer)
    );
    let index = format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\",\
         \"manifests\":[{{{},\"annotations\":{{\"org.opencontainers.image.ref.name\":\"{version}\"}}}}]}}",
        described("manifest.v1+json", manifest.as_bytes())
    );
    let mut layout = Tree::default();
    layout.file("oci-layout", 0o644, "{\"imageLayoutVersion\":\"1.0.0\"}");
    layout.file("index.json", 0o644, index);
    for blob in [layer, config.into_bytes(), manifest.into_bytes()] {
        layout.file(&format!("blobs/sha256/{}", digest(&blob)), 0o644, blob);
    }
    layout.tar(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read as _;

    #[test]
    fn h141_every_part_of_the_image_is_named_by_its_digest() {
        let mut installed = Tree::default();
        installed.file("usr/bin/svc", 0o755, "program");
        let bytes = archive(&installed, "1.2.3", 86_400).unwrap();
        assert_eq!(bytes, archive(&installed, "1.2.3", 86_400).unwrap());
        let mut parts = BTreeMap::new();
        let mut tar = tar::Archive::new(bytes.as_slice());
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            parts.insert(name, content);
        }
        let blobs: Vec<_> = parts
            .iter()
            .filter(|(name, bytes)| name.contains("/sha256/") && !bytes.is_empty())
            .collect();
        assert_eq!(blobs.len(), 3);
        for (name, content) in blobs {
            assert!(name.ends_with(&digest(content)), "{name}");
        }
        let index = String::from_utf8(parts["index.json"].clone()).unwrap();
        let manifest = parts.keys().find(|name| {
            name.strip_prefix("blobs/sha256/")
                .is_some_and(|digest| !digest.is_empty() && index.contains(digest))
        });
        let manifest = String::from_utf8(parts[manifest.unwrap()].clone()).unwrap();
        assert!(manifest.contains("layer.v1.tar+gzip") && index.contains("1.2.3"), "{manifest}");
    }
}
