//! The rules from outside: what they decide, table by table.

mod counting;
mod definitions;
mod hostile;
mod lint;
mod order;
mod parsing;
mod predicates;
mod renamed;
mod support;
mod trust;
