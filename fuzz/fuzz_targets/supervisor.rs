#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headman_fuzz::checks::supervisor(bytes));
