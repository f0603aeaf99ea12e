//! Where there is no operating system, and so no compiler and no dynamic linker.

use crate::error::LoadError;
use crate::registry::Algorithm;
use std::path::Path;

impl Algorithm {
    /// A user's file: refused here.
    ///
    /// # Errors
    /// [`LoadError::NoCompiler`], always.
    pub fn load(_: &Path) -> Result<&'static Algorithm, LoadError> {
        Err(LoadError::NoCompiler)
    }
}
