//! What the interop tests share.
