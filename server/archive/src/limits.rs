//! How much an archive may unpack to, checked while it is read.

const MIB: u64 = 1024 * 1024;

/// How much an archive may hold. The default is what the specification allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Members of any kind, records about long names included.
    ///
    /// As many names may be known, those of directories without a member of their own included.
    pub members: u64,
    /// Bytes that may come out of one byte of the archive.
    pub ratio: u64,
    /// The ratio counts from this many unpacked bytes on.
    ///
    /// Less cannot fill a disk, and small files of zeros are nothing unusual.
    pub ratio_from: u64,
    /// Bytes of the manifest: 200,000 files with long names need about 60 MiB.
    pub manifest_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total_bytes: 10 * 1024 * MIB,
            members: 200_000,
            ratio: 200,
            ratio_from: 16 * MIB,
            manifest_bytes: 96 * MIB,
        }
    }
}
