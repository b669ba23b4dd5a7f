//! Integers.
