//! No code: the manifest says what it is for.
