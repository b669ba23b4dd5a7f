//! What this platform can do. All `unsafe` and all platform differences are here.
