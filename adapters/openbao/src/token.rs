//! An identity's token file, read at every use so that a replaced token is used at once.
//!
//! Called by the transport alone. Never in this module: a token kept beyond one call, or
//! any part of the file in an error.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use reqwest::header::HeaderValue;
use rustix::fs::{Mode, OFlags};
use zeroize::Zeroizing;

/// Far above any token; a larger file is not one.
const LIMIT: u64 = 4096;

/// Bits a private file may have: read and write for its owner.
const PRIVATE: u32 = 0o600;

/// Why a token file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadToken {
    /// It cannot be opened, or is a link.
    Unreadable,
    /// A folder, a pipe, a device.
    NotAFile,
    /// Others than its owner may use it, or it may be executed.
    Mode,
    /// Empty, too long, or no header value once its ends are trimmed.
    Content,
}

impl BadToken {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            BadToken::Unreadable => "unreadable",
            BadToken::NotAFile => "not-a-file",
            BadToken::Mode => "mode-wider-than-0600",
            BadToken::Content => "no-token-in-it",
        }
    }
}

/// Reads the token as a header value that no debug output shows.
///
/// A pipe does not block here: it is opened without waiting and then refused by its kind.
pub(crate) fn read(path: &Path) -> Result<HeaderValue, BadToken> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(|_| BadToken::Unreadable)?;
    let file = File::from(opened);
    let metadata = file.metadata().map_err(|_| BadToken::Unreadable)?;
    if !metadata.is_file() {
        return Err(BadToken::NotAFile);
    }
    if metadata.mode() & 0o7777 & !PRIVATE != 0 {
        return Err(BadToken::Mode);
    }
    let mut text = Zeroizing::new(Vec::with_capacity(LIMIT as usize + 1));
    file.take(LIMIT + 1)
        .read_to_end(&mut text)
        .map_err(|_| BadToken::Unreadable)?;
    let token = text.trim_ascii();
    let visible = token.iter().all(u8::is_ascii_graphic);
    if token.is_empty() || text.len() as u64 > LIMIT || !visible {
        return Err(BadToken::Content);
    }
    let mut header = HeaderValue::from_bytes(token).map_err(|_| BadToken::Content)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_token_file_is_a_private_file_with_a_token_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let written = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read(&path)
        };
        for mode in [0o600, 0o400] {
            assert_eq!(
                written(" s.planted\n", mode).unwrap().as_bytes(),
                b"s.planted"
            );
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        }
        assert!(!format!("{:?}", written("s.planted", 0o600).unwrap()).contains("planted"));
        for mode in [0o640, 0o604, 0o660, 0o666, 0o700, 0o610, 0o601] {
            assert_eq!(written("s.planted", mode), Err(BadToken::Mode), "{mode:o}");
        }
        for text in ["", " \n", "two words", "a\nb", "s.\u{e9}", "s.\0"] {
            assert_eq!(written(text, 0o600), Err(BadToken::Content), "{text:?}");
        }
        assert_eq!(written(&"t".repeat(5000), 0o600), Err(BadToken::Content));

        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(read(&link), Err(BadToken::Unreadable));
        assert_eq!(read(&folder.path().join("none")), Err(BadToken::Unreadable));
        assert_eq!(read(folder.path()), Err(BadToken::NotAFile));
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(read(&path), Err(BadToken::NotAFile));
    }
}
