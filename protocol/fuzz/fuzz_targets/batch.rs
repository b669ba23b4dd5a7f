#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| suisei_protocol::fuzzing::batch(input));
