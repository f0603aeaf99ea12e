//! Random bytes for keys.

use std::io;

/// Random bytes for a key, a number that nobody can guess, or a question.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    const { assert!(N <= 256, "so many at once are given whole (getrandom(2))") };
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
