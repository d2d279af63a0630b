#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paddock_storage::fuzzing::log_recovery(data));
