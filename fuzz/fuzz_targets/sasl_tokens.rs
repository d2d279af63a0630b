#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paddock_server::fuzzing::sasl_tokens(data));
