//! What the tests share.

use kernel::Kernel;

/// The kernel, or a printed reason why the test is skipped.
pub fn kernel() -> Option<Kernel> {
    match Kernel::probe() {
        Ok(kernel) => Some(kernel),
        Err(missing) => {
            eprintln!("skipped: {missing}");
            None
        }
    }
}
