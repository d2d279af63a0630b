#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paddock_files::fuzzing::keeper_log(data));
