//! Declarations of any bytes; what is checked is in the entry that the property
//! test `any_input` of typegen shares.
#![no_main]

#[path = "../../typegen/tests/any_input/entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::check(bytes));
