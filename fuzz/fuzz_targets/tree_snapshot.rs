#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paddock_tree::fuzzing::tree_snapshot(data));
