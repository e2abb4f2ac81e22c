//! The rules from outside: what they decide, table by table.

mod order;
mod predicates;
mod support;
mod trust;
