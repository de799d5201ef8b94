//! One owner per folder. The lock is the kernel's (`flock`), so it cannot be left behind; the process id in the file is
//! there only to be shown to whoever comes second.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use crate::account::private_file;
use crate::error::{StartError, at};

/// Held as long as this value lives. The file stays: to delete it would let two processes lock two files of one name.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(path: &Path, folder: &Path) -> Result<Self, StartError> {
        let mut file = open(path).map_err(at("open the lock file", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StartError::InUse {
                    folder: folder.to_path_buf(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(at("lock", path)(error)),
        }
        sign(&mut file).map_err(at("write our process id to", path))?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> io::Result<File> {
    private_file()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        // The holder has the lock and has not signed yet, or we may not read what it wrote.
        _ => "another process".to_owned(),
    }
}
